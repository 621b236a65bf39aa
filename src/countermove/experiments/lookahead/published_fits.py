r"""The learners as the look-ahead paper's code runs them, to reproduce its curves.

Neither reaches the minimiser: the descent stops where the loss falls by less than 1e-7 a
step, the quasi-Newton fit where its gradient is below 1e-5. What the paper reads as dynamics
in Figure 1 is the tolerance of these fits; `LogisticLearner` is the exact one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from countermove._types import Floats
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners.linear import LogisticLearner
from countermove.errors import DataError, NotConvergedError, ParameterError


@dataclass(frozen=True)
class PublishedDescent(LogisticLearner):
    r"""Gradient descent from zero with step :math:`1/(\frac14 E|x|^2 + \lambda)`.

    It ends when the reported loss, whose penalty is :math:`\frac\lambda2|w|` instead of
    :math:`\frac\lambda2|w|^2`, falls by less than ``loss_decrease``; a step that raises it is
    repeated a tenth as long. The bias is not penalised.

    Parameters
    ----------
    loss_decrease
        The published 1e-7.
    max_descents
        Steps before it is given up; the published loop has no end.
    """

    loss_decrease: float = 1e-7
    max_descents: int = 1_000_000
    name: ClassVar[str] = "published_descent"

    def fit(self, crowd: Crowd, start: Floats | None = None) -> Floats:
        """Return where the descent stops; it starts at zero, whatever ``start`` says."""
        self._check(crowd)
        columns = np.ascontiguousarray(self.design(crowd.X).T)
        mass, ridge = crowd.mass, self._ridge(len(columns))
        longest = 1.0 / (0.25 * float(mass @ (columns**2).sum(axis=0)) + self.penalty)

        def local(theta: Floats) -> tuple[float, Floats]:
            losses, first, _ = self._curve(theta @ columns, crowd.y)
            size = float(np.sqrt((ridge > 0.0) @ theta**2))
            return float(mass @ losses()) + 0.5 * self.penalty * size, mass * first

        theta, step = np.zeros(len(columns)), longest
        before, weighed = local(theta)
        for _ in range(self.max_descents):
            there = theta - step * (columns @ weighed + ridge * theta)
            loss, slopes = local(there)
            if loss > before:
                step *= 0.1
                continue
            fallen, theta, before, weighed, step = before - loss, there, loss, slopes, longest
            if fallen <= self.loss_decrease:
                return theta
        raise NotConvergedError(
            f"the published descent still falls by {fallen:.2g} a step after {self.max_descents} "
            f"steps; it stops at {self.loss_decrease:.2g}"
        )


@dataclass(frozen=True)
class PublishedQuasiNewton(LogisticLearner):
    """scikit-learn's lbfgs, started at zero each time; the bias is penalised as a column of ones.

    Parameters
    ----------
    fit_tolerance
        The published 1e-5.
    """

    penalise_intercept: bool = True
    fit_tolerance: float = 1e-5
    name: ClassVar[str] = "published_quasi_newton"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.penalise_intercept or not self.penalty > 0.0:
            raise ParameterError("the published fit has a penalty > 0, on the bias too")

    def fit(self, crowd: Crowd, start: Floats | None = None) -> Floats:
        """Return what lbfgs returns; it starts at zero, whatever ``start`` says."""
        from sklearn.linear_model import LogisticRegression

        self._check(crowd)
        if not np.isin(crowd.y, (0.0, 1.0)).all():
            raise DataError("the published fit reads labels 0 and 1")
        model = LogisticRegression(
            C=1.0 / (self.penalty * crowd.n), fit_intercept=False, tol=self.fit_tolerance,
            max_iter=10_000,
        )  # fmt: skip
        weight = None if crowd.weight is None else crowd.weight * crowd.n
        model.fit(self.design(crowd.X), crowd.y > 0.5, sample_weight=weight)
        return np.asarray(model.coef_[0], dtype=np.float64)
