"""The people a rule will meet once it is deployed: D(h), for any rule and response of ours."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from countermove._types import Floats
from countermove.errors import ParameterError
from countermove.response import Response, named_response
from countermove.response.base import people
from countermove.scores import Score
from countermove.scores.reading import score_of, values
from countermove.transfer.chances import (
    Chances,
    chances_at,
    expected_chances,
    followed_labels,
)
from countermove.transfer.sample import Labels, Pair, Sample


def induce(
    rule: Any,
    X: Any,
    y: Any,
    response: Response | str,
    labels: Labels = "kept",
    *,
    chances: Chances | None = None,
    expected: bool = False,
    threshold: float = 0.0,
    seed: int = 0,
) -> Pair:
    r"""Return people before and after a rule is deployed, both scored by it.

    Parameters
    ----------
    rule
        A score, or a model that has one (a published model, a fitted classifier).
    X
        People before they move, shape (n, d), standardised units.
    y
        Labels in {-1, +1}, +1 favourable, shape (n,).
    response
        How people answer the rule, or its name.
    labels
        ``kept``: moving does not change a label. ``follow``: P(Y | X) is kept.
    chances
        For ``follow``: the probability of label +1 at given features, fitted on other rows
        (`fit_chances` does that).
    expected
        For ``follow``: instead of drawing each label, return every person twice, once per
        label, weighted by its probability. Less noise, but no draws: no finite-sample bound.
    threshold
        People answer the rule "score at least this". Scores are returned as they are, so
        the deployed rule decides at ``threshold``, not at 0.
    seed
        Of drawn labels; equal seeds give all rules and thresholds the same luck.
    """
    score = score_of(rule)
    rows, given = people(X, score), np.asarray(y, dtype=np.float64)
    source = Sample(values(score, rows), given, rows)
    answer = named_response(response) if isinstance(response, str) else response
    x_new, scores = answered(score, rows, answer, threshold)
    if labels != "follow":
        return Pair(source, Sample(scores, given, x_new), labels, paired=True)
    if chances is None:
        raise ParameterError(
            "labels='follow' needs a model of P(Y | X); pass chances=fit_chances(X, y) made "
            "from other rows, or your own function of the features"
        )
    before, after = chances_at(chances, rows), chances_at(chances, x_new)
    if expected:
        doubled = _both_labels(scores, x_new, expected_chances(before, after, given))
        return Pair(source, doubled, labels, paired=False)
    new = followed_labels(before, after, given, seed)
    return Pair(source, Sample(scores, new, x_new), labels, paired=True)


def answered(
    score: Score, X: Floats, response: Response, threshold: float = 0.0
) -> tuple[Floats, Floats]:
    """Return where people move to once the rule at a threshold is deployed, and their scores.

    Whom the deployed rule accepts has a score of at least the threshold, rounding aside.
    """
    deployed = at(score, threshold)
    x_new: Floats = response.respond(deployed, X).x_new
    scores = values(score, x_new)
    below = np.minimum(scores, np.nextafter(threshold, -np.inf))
    accepted = values(deployed, x_new) >= 0.0
    return x_new, np.where(accepted, np.maximum(scores, threshold), below)


def _both_labels(scores: Floats, x_new: Floats, p: Floats) -> Sample:
    """Return every person once per label, weighted by its probability."""
    return Sample(
        np.tile(scores, 2),
        np.repeat([1.0, -1.0], len(p)),
        np.tile(x_new, (2, 1)),
        np.concatenate([p, 1.0 - p]),
    )


def at(score: Score, threshold: float) -> Score:
    """Return the score whose favourable decision starts at a threshold of the given one."""
    import torch

    if not np.isfinite(threshold):
        raise ParameterError(f"a threshold that people answer must be finite, got {threshold!r}")
    if threshold == 0.0:
        return score
    shifted = copy.deepcopy(score)
    with torch.no_grad():
        shifted.bias.sub_(threshold)
    return shifted


@dataclass(frozen=True)
class Support:
    """Shares of the induced people who stand where no source people stood.

    ``score``: beyond the range of the source's scores. ``features``: beyond the range of at
    least one feature; None without features.
    """

    score: float
    features: float | None

    @property
    def largest(self) -> float:
        """The larger share."""
        return max(self.score, self.features or 0.0)

    @property
    def words(self) -> str:
        """The shares as a phrase."""
        parts = f"{self.score:.2%} of the induced people beyond the source's scores"
        return parts + ("" if self.features is None else f", {self.features:.2%} beyond a feature")


def support(pair: Pair) -> Support:
    """Return how many induced people left the support of the source."""
    source, induced = pair.source, pair.induced
    beyond = (induced.score < source.score.min()) | (induced.score > source.score.max())
    if source.features is None or induced.features is None:
        return Support(induced.share(beyond), None)
    low, high = source.features.min(axis=0), source.features.max(axis=0)
    away = ((induced.features < low) | (induced.features > high)).any(axis=1)
    return Support(induced.share(beyond), induced.share(away))
