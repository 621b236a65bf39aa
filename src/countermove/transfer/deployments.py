"""One rule deployed among some people, at any threshold, under any response, labels either way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from countermove._types import Floats
from countermove.errors import ParameterError
from countermove.response import Response
from countermove.response.base import people
from countermove.scores.reading import score_of, values
from countermove.transfer.chances import Chances, chances_at, followed_labels
from countermove.transfer.induced import answered
from countermove.transfer.sample import Labels, Pair, Sample


class Deployments:
    """The people before and after every deployment of a rule; answers are computed once.

    Parameters
    ----------
    rule
        A score, or a model that has one.
    X, y
        People before they move (n, d) and their labels in {-1, +1}.
    chances
        Model of P(Y | X), for labels that follow.
    seed
        Of the luck that decides labels, the same in every deployment.
    """

    def __init__(
        self, rule: Any, X: Floats, y: Floats, chances: Chances | None = None, seed: int = 0
    ) -> None:
        self._score, self._chances, self._seed = score_of(rule), chances, seed
        self._X = people(X, self._score)
        self.source = Sample(values(self._score, self._X), y, self._X)
        self._answers: dict[tuple[int, float], tuple[Floats, Floats]] = {}
        self._before = None if chances is None else chances_at(chances, self._X)

    def at(self, response: Response, labels: Labels, threshold: float = 0.0) -> Pair:
        """Return the people before and after the rule "score at least this" is deployed."""
        key = id(response), threshold
        if key not in self._answers:
            self._answers[key] = answered(self._score, self._X, response, threshold)
        x_new, scores = self._answers[key]
        label = self._followed(x_new) if labels == "follow" else self.source.label
        return Pair(self.source, Sample(scores, label, x_new), labels, paired=True)

    def deploy(self, response: Response, labels: Labels) -> Callable[[float], Pair]:
        """Return the deployments as a function of the threshold."""
        return lambda threshold: self.at(response, labels, threshold)

    def thresholds(self, count: int) -> list[float]:
        """Return 0 and evenly spaced quantiles of the scores before people move."""
        shares = np.linspace(0.0, 1.0, count + 2)[1:-1]
        return [0.0, *np.quantile(self.source.score, shares).tolist()]

    def _followed(self, x_new: Floats) -> Floats:
        if self._chances is None or self._before is None:
            raise ParameterError("labels that follow need chances, a model of P(Y | X)")
        after = chances_at(self._chances, x_new)
        return followed_labels(self._before, after, self.source.label, self._seed)
