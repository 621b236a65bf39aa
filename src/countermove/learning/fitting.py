"""The recipe of strategic training: start, train, settle the intercept.

Training starts from a rule that is already fair to the people it will meet, so
that gradients only have to turn it; hard decisions, which gradients cannot
see, get the last word on the intercept.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from countermove.errors import ParameterError, UnknownNameError, nearest
from countermove.learning.intercept import best_shift, shift_intercept
from countermove.learning.objectives import StrategicRisk
from countermove.learning.populations import Population
from countermove.learning.regularisers import Regulariser
from countermove.randomness import torch_generator
from countermove.response.base import NoResponse
from countermove.scores import LinearScore, Score
from countermove.training import History, Loss, Sample, Trainer

STARTS = ("blind", "means", "random", "given")


@dataclass(frozen=True)
class Recipe:
    """How a score is fitted to a population.

    Parameters
    ----------
    trained_against, judged_by
        Whom the loss meets, and whom validation and the intercept meet.
    trainer, loss, regulariser
        Of the strategic objective, and of the blind warm-up alike.
    start
        ``"blind"``: train as if nobody moved, then move the intercept to where it is
        best after response; the line between the class means is used instead if
        that is better. ``"means"``: that line. ``"random"``: as published.
        ``"given"``: the score as handed over. None suits the population: as
        published for ``published``, means for ``none``, else blind.
    calibrate
        Whether hard decisions settle the intercept after training; None: yes,
        except for ``published``.
    """

    trained_against: Population
    judged_by: Population
    trainer: Trainer
    loss: Loss
    regulariser: Regulariser | None = None
    start: str | None = None
    calibrate: bool | None = None

    def __post_init__(self) -> None:
        if self.start is not None and self.start not in STARTS:
            raise UnknownNameError(
                f"no start is called {self.start!r}: {nearest(self.start, STARTS)}"
            )

    def fit(
        self,
        score: Score | None,
        sample: Sample,
        *,
        checkpoint: Path | None = None,
        progress: bool = False,
    ) -> tuple[Score, History]:
        """Return the fitted score (a copy) and the history of its strategic epochs."""
        fitted = self.begin(score, sample)
        judges = () if self.judged_by is self.trained_against else self.judged_by.members
        objective = StrategicRisk(
            self.trained_against.members,
            self.loss,
            self.regulariser,
            judged_by=judges,
            weights=self.trained_against.weights,
            softness=self.trained_against.softness,
        )
        history = self.trainer.fit(
            fitted, objective, sample, checkpoint=checkpoint, progress=progress
        )
        settle = not self.judged_by.published if self.calibrate is None else self.calibrate
        if settle:
            # Early stopping is over, so the validation rows may speak too.
            X = torch.cat([sample.X, sample.X_validation])
            y = torch.cat([sample.y, sample.y_validation])
            fitted = self._settled(fitted, X, y)[0]
        return fitted, history

    def of_rows(self, rows: NDArray[np.intp]) -> Recipe:
        """Return the recipe whose per-person bounds follow ``rows``: training, then validation."""
        trained = self.trained_against.of_rows(rows)
        same = self.judged_by is self.trained_against
        judges = trained if same else self.judged_by.of_rows(rows)
        return replace(self, trained_against=trained, judged_by=judges)

    def begin(self, score: Score | None, sample: Sample) -> Score:
        """Return the score strategic training starts from."""
        start = self.start or self._usual_start(score)
        if start == "given":
            if score is None:
                raise ParameterError("start='given' needs a score to start from")
            return copy.deepcopy(score)
        if start == "random":
            return score_or_random(score, sample.X.shape[1], self.trainer.seed)
        means = class_means(sample) if score is None else copy.deepcopy(score)
        if start == "means":
            return means
        blind = copy.deepcopy(means)
        nobody = StrategicRisk((NoResponse(),), self.loss, self.regulariser)
        self.trainer.fit(blind, nobody, sample)
        candidates = [self._settled(rule, sample.X, sample.y) for rule in (blind, means)]
        return max(candidates, key=lambda candidate: candidate[1])[0]

    def _usual_start(self, score: Score | None) -> str:
        if self.trained_against.published:
            return "random"
        if [member.name for member in self.trained_against.members] == ["none"]:
            return "means" if score is None else "given"
        return "blind"

    def _settled(self, score: Score, X: Tensor, y: Tensor) -> tuple[Score, float]:
        """Return the score with the best intercept after response, and its accuracy."""
        # The sample lists the training rows first: these are its first people.
        people = self.judged_by.of_rows(range(len(y)))
        # A cut's rank among n people is known to about half of 1/sqrt(n): judge it as far around.
        smoothing = 0.5 / len(y) ** 0.5
        cut = best_shift(score, people.members, X.numpy(), y.numpy(), people.weights, smoothing)
        return shift_intercept(score, cut.shift), cut.accuracy


def class_means(sample: Sample) -> LinearScore:
    r"""Return the rule along the line between the class means.

    .. math:: s(x) = (\bar x_+ - \bar x_-) \cdot (x - \bar x) / \operatorname{sd}

    The scores of the sample have mean zero and standard deviation one, the scale
    at which a hinge of width one bites. All zero where the means coincide.
    """
    X, y = sample.X, sample.y
    direction = X[y > 0].mean(dim=0) - X[y <= 0].mean(dim=0)
    spread = (X @ direction).std(correction=0)
    score = LinearScore(X.shape[1])
    if float(spread) > 0.0:
        with torch.no_grad():
            score.weight.copy_(direction / spread)
            score.bias.copy_(-(X @ score.weight).mean())
    return score


def score_or_random(score: Score | None, n_features: int, seed: int) -> Score:
    """Return a copy of the score, or a linear one with random weights."""
    if score is not None:
        return copy.deepcopy(score)
    return LinearScore(n_features, torch_generator(seed, "start"))
