"""Our own trainer as a platform: any classifier around a score, refitted round after round."""

from __future__ import annotations

import copy
from typing import Any, ClassVar, NoReturn

import numpy as np
import torch
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from countermove._types import Floats
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners import Learner
from countermove.errors import DataError, ParameterError
from countermove.scores import Score
from countermove.training.estimator import ScoreClassifier
from countermove.training.losses import LOSSES

EVEN = 1e-9
"""Weights this near to each other are equal but for rounding."""


class TrainedLearner(Learner):
    """A learner that only fits: a `StrategicClassifier` or another classifier around a score.

    The model is the vector of all parameters of ``score_``. There are no derivatives, hence no
    gradient descent and none of the theory's constants; retraining itself runs.

    Parameters
    ----------
    classifier
        Trained anew, as configured, on the people of every round. A strategic one expects the
        people it sees to move once more; ``response="none"`` takes them as they are.
    """

    name: ClassVar[str] = "trained"
    differentiable: ClassVar[bool] = False

    def __init__(self, classifier: ScoreClassifier) -> None:
        self.classifier = classifier
        self._pattern: Score | None = None

    def fit(self, crowd: Crowd, start: Floats | None = None) -> Floats:
        """Return the parameters of the trained score; ``start`` is not read."""
        from sklearn.base import clone

        if crowd.weight is not None and np.ptp(crowd.weight) > EVEN / crowd.n:
            raise DataError(
                "the trainer counts all rows alike, but the people given count differently; draw "
                "who does what instead (LevelKPopulation.drawn), so that nobody needs a weight"
            )
        if set(np.unique(crowd.y)) != {0.0, 1.0}:
            raise DataError("the trainer reads labels 0 and 1, both present")
        trained = clone(self.classifier).fit(crowd.X, crowd.y.astype(np.int64))
        self._pattern = trained.score_
        with torch.no_grad():
            return np.asarray(parameters_to_vector(trained.score_.parameters()).numpy().copy())

    def losses(self, theta: Floats, crowd: Crowd) -> Floats:
        """Return the loss of the classifier where people stand, shape (n,)."""
        loss = LOSSES[getattr(self.classifier, "loss", "logistic")]
        with torch.no_grad():
            scores = self.score(theta)(torch.from_numpy(crowd.X))
            return np.asarray(loss(scores, torch.from_numpy(2.0 * crowd.y - 1.0)).numpy())

    def risk(self, theta: Floats, crowd: Crowd) -> float:
        """Return the mean loss where people stand, without regularisers."""
        return float(crowd.mean(self.losses(theta, crowd)))

    def score(self, theta: Floats) -> Score:
        """Return the score with these parameters."""
        if self._pattern is None:
            raise ParameterError(
                "what the parameters mean is known after the first fit; call fit, or leave start "
                "out so that retraining begins with one"
            )
        score = copy.deepcopy(self._pattern)
        with torch.no_grad():
            vector_to_parameters(torch.from_numpy(np.array(theta)), score.parameters())
        return score

    @property
    def strong_convexity(self) -> float:
        """Return 0: nothing is promised for a trained score."""
        return 0.0

    def row_gradients(self, theta: Floats, crowd: Crowd) -> Floats:
        """Refuse."""
        self._refuse()

    def gradient(self, theta: Floats, crowd: Crowd) -> Floats:
        """Refuse."""
        self._refuse()

    def solve(self, theta: Floats, crowd: Crowd, v: Floats) -> Floats:
        """Refuse."""
        self._refuse()

    def pull(self, theta: Floats, crowd: Crowd, v: Floats) -> tuple[Floats, Floats]:
        """Refuse."""
        self._refuse()

    def loss_slopes(self, theta: Floats, crowd: Crowd) -> tuple[Floats, Floats]:
        """Refuse."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ParameterError(
            f"{type(self.classifier).__name__} only fits: it has no derivatives to descend or look "
            "ahead by; use LogisticLearner or RidgeLearner for that"
        )

    def describe(self) -> dict[str, Any]:
        """Return the classifier and its settings, as text."""
        return {"kind": self.name, "classifier": repr(self.classifier)}
