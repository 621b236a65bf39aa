r"""The learner of a centroid: :math:`\ell(z, \theta) = |x - \theta|^2`, the paper's Appendix B."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners import Learner
from countermove.errors import ParameterError
from countermove.scores import Score

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class MeanLearner(Learner):
    """Fits the mean of the features; labels are not read."""

    name: ClassVar[str] = "mean"

    @property
    def strong_convexity(self) -> float:
        """Return 2: the Hessian is twice the identity for every crowd."""
        return 2.0

    def fit(self, crowd: Crowd, start: Floats | None = None) -> Floats:
        """Return the weighted mean."""
        mean: Floats = crowd.mean(crowd.X)
        return mean

    def losses(self, theta: Floats, crowd: Crowd) -> Floats:
        """Return squared distances."""
        squares: Floats = ((crowd.X - theta) ** 2).sum(axis=1)
        return squares

    def risk(self, theta: Floats, crowd: Crowd) -> float:
        """Return the mean squared distance."""
        return float(crowd.mean(self.losses(theta, crowd)))

    def row_gradients(self, theta: Floats, crowd: Crowd) -> Floats:
        r"""Return :math:`2(\theta - x_i)`."""
        return 2.0 * (theta - crowd.X)

    def gradient(self, theta: Floats, crowd: Crowd) -> Floats:
        """Return twice the distance to the mean."""
        return 2.0 * (theta - self.fit(crowd))

    def solve(self, theta: Floats, crowd: Crowd, v: Floats) -> Floats:
        r"""Return :math:`v / 2`."""
        return 0.5 * v

    def pull(self, theta: Floats, crowd: Crowd, v: Floats) -> tuple[Floats, Floats]:
        r"""Return :math:`-2 m_i v` and zeros."""
        return -2.0 * np.outer(crowd.mass, v), np.zeros(crowd.n)

    def loss_slopes(self, theta: Floats, crowd: Crowd) -> tuple[Floats, Floats]:
        r"""Return :math:`2(x_i - \theta)` and zeros."""
        return 2.0 * (crowd.X - theta), np.zeros(crowd.n)

    def score(self, theta: Floats) -> Score:
        """Refuse: a mean decides about nobody."""
        raise ParameterError("a mean is no score that people could respond to; use another learner")
