r"""The platform: a learner fits its model exactly, and says how the model responds to data.

.. math:: A(D) = \arg\min_\theta \; E_{z \sim D}[\ell(z, \theta)] + \frac\lambda2 |\theta|^2

Everything that looks ahead (collectives, stability, recourse through retraining)
reads a learner only through these derivatives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, cast

import numpy as np
import torch

from countermove._types import Floats
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners.newton import Local, newton, solve_definite
from countermove.errors import DataError, NotConvergedError, ParameterError, SolverError, shown
from countermove.scores import LinearScore, Score


class Learner(ABC):
    r"""Minimises a risk over a crowd; the parameters are one vector ``theta`` of shape (p,)."""

    name: ClassVar[str]
    differentiable: ClassVar[bool] = True
    """Whether there are derivatives; a learner that only fits has none."""

    @abstractmethod
    def fit(self, crowd: Crowd, start: Floats | None = None) -> Floats:
        """Return the minimiser of the risk; raises `NotConvergedError` where there is none."""

    @abstractmethod
    def losses(self, theta: Floats, crowd: Crowd) -> Floats:
        """Return each person's loss, without the penalty, shape (n,)."""

    @abstractmethod
    def risk(self, theta: Floats, crowd: Crowd) -> float:
        """Return what `fit` minimises: the mean loss and the penalty."""

    @abstractmethod
    def row_gradients(self, theta: Floats, crowd: Crowd) -> Floats:
        r"""Return :math:`\nabla_\theta \ell(z_i, \theta)` without the penalty, shape (n, p)."""

    @abstractmethod
    def gradient(self, theta: Floats, crowd: Crowd) -> Floats:
        """Return the gradient of the risk, shape (p,): zero at the fitted model."""

    @abstractmethod
    def solve(self, theta: Floats, crowd: Crowd, v: Floats) -> Floats:
        r"""Return :math:`H^{-1} v`, H the Hessian of the risk; refuse a singular one."""

    @abstractmethod
    def pull(self, theta: Floats, crowd: Crowd, v: Floats) -> tuple[Floats, Floats]:
        r"""Contract the mixed derivative of the risk with a vector over the *parameters*.

        .. math:: \frac{\partial}{\partial x_i} \; v \cdot \nabla_\theta \mathrm{risk}(\theta),
                  \qquad
                  \frac{\partial}{\partial y_i} \; v \cdot \nabla_\theta \mathrm{risk}(\theta)

        Returns
        -------
        tuple of ndarray
            Shapes (n, d) and (n,), each row with its weight in the crowd.
        """

    @abstractmethod
    def loss_slopes(self, theta: Floats, crowd: Crowd) -> tuple[Floats, Floats]:
        """Return how each person's own loss changes with its features and label, (n, d), (n,)."""

    @abstractmethod
    def score(self, theta: Floats) -> Score:
        """Return the model as a published score, to which people can respond."""

    @property
    @abstractmethod
    def strong_convexity(self) -> float:
        r"""The :math:`\gamma` that holds for every crowd; 0 where the penalty promises none."""


@dataclass(frozen=True)
class LinearLearner(Learner):
    r"""A learner of :math:`s(x) = w \cdot x + b` with a loss of the score alone.

    ``theta`` is :math:`(w, b)`, or :math:`w` without an intercept.

    Parameters
    ----------
    penalty
        :math:`\lambda \ge 0` in the risk :math:`E[\ell] + \frac\lambda2 |\theta|^2`.
    intercept
        Whether there is a :math:`b`.
    penalise_intercept
        Whether the penalty reads :math:`b` too. If it does not, the risk is not strongly
        convex by its penalty alone.
    tolerance
        A fit ends when no entry of the gradient is larger.
    max_steps
        Newton steps before a fit is given up.
    """

    penalty: float = 0.0
    intercept: bool = True
    penalise_intercept: bool = False
    tolerance: float = 1e-11
    max_steps: int = 100

    def __post_init__(self) -> None:
        if not np.isfinite(self.penalty) or self.penalty < 0.0:
            raise ParameterError(f"a penalty is a number >= 0, got {self.penalty}")
        if not self.tolerance > 0.0 or self.max_steps < 1:
            raise ParameterError(
                f"a fit needs tolerance > 0 and max_steps >= 1, got {self.tolerance} "
                f"and {self.max_steps}"
            )

    @abstractmethod
    def _loss(self, s: Floats, y: Floats) -> Floats:
        """Return the loss of scores."""

    @abstractmethod
    def _slopes(self, s: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Return the first two derivatives of the loss in the score."""

    @abstractmethod
    def _label_slopes(self, s: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Return the derivative in the label of the loss, and of its derivative in the score."""

    def _check(self, crowd: Crowd) -> None:
        """Refuse labels the loss cannot read."""

    @property
    def strong_convexity(self) -> float:
        """Return the penalty, or 0 where it leaves the intercept out."""
        return 0.0 if self.intercept and not self.penalise_intercept else self.penalty

    def design(self, X: Floats) -> Floats:
        """Return the rows as the parameters meet them: with a column of ones for ``b``."""
        return np.column_stack([X, np.ones(len(X))]) if self.intercept else X

    def scores(self, theta: Floats, X: Floats) -> Floats:
        """Return the score of each row, shape (n,)."""
        return X @ self.slope(theta, X.shape[1]) + self._bias(theta)

    def slope(self, theta: Floats, d: int) -> Floats:
        """Return ``w`` after checking that ``theta`` is made for ``d`` features."""
        if theta.shape != (d + self.intercept,):
            raise DataError(
                f"the model has {theta.shape} parameters; {d} features "
                f"{'with an intercept' if self.intercept else 'without an intercept'} need "
                f"{d + self.intercept}"
            )
        return theta[:d]

    def losses(self, theta: Floats, crowd: Crowd) -> Floats:
        """Return each person's loss, shape (n,)."""
        return self._loss(self.scores(theta, crowd.X), crowd.y)

    def risk(self, theta: Floats, crowd: Crowd) -> float:
        """Return the mean loss and the penalty."""
        penalty = 0.5 * float(self._ridge(len(theta)) @ theta**2)
        return float(crowd.mean(self.losses(theta, crowd))) + penalty

    def row_gradients(self, theta: Floats, crowd: Crowd) -> Floats:
        r"""Return :math:`\ell'(s_i)\,(x_i, 1)`."""
        first, _ = self._slopes(self.scores(theta, crowd.X), crowd.y)
        return first[:, None] * self.design(crowd.X)

    def gradient(self, theta: Floats, crowd: Crowd) -> Floats:
        """Return the gradient of the risk."""
        first, _ = self._slopes(self.scores(theta, crowd.X), crowd.y)
        return (crowd.mass * first) @ self.design(crowd.X) + self._ridge(len(theta)) * theta

    def hessian(self, theta: Floats, crowd: Crowd) -> Floats:
        """Return the Hessian of the risk, shape (p, p)."""
        _, second = self._slopes(self.scores(theta, crowd.X), crowd.y)
        rows = self.design(crowd.X)
        ridge = np.diag(self._ridge(len(theta)))
        return rows.T @ ((crowd.mass * second)[:, None] * rows) + ridge

    def solve(self, theta: Floats, crowd: Crowd, v: Floats) -> Floats:
        r"""Return :math:`H^{-1} v` from the eigenvectors of H."""
        return solve_definite(self.hessian(theta, crowd), v)

    def pull(self, theta: Floats, crowd: Crowd, v: Floats) -> tuple[Floats, Floats]:
        r"""Contract over the parameters, with :math:`a_i = v_w \cdot x_i + v_b`.

        .. math:: m_i (\ell'_i v_w + \ell''_i a_i w), \qquad
                  m_i a_i \, \partial \ell'_i / \partial y_i
        """
        s = self.scores(theta, crowd.X)
        first, second = self._slopes(s, crowd.y)
        along = self.scores(v, crowd.X)
        w, v_w = theta[: crowd.d], v[: crowd.d]
        by_x = np.outer(crowd.mass * first, v_w) + np.outer(crowd.mass * second * along, w)
        _, mixed = self._label_slopes(s, crowd.y)
        return by_x, crowd.mass * mixed * along

    def loss_slopes(self, theta: Floats, crowd: Crowd) -> tuple[Floats, Floats]:
        r"""Return :math:`\ell'_i w` and :math:`\partial\ell_i/\partial y_i`."""
        s = self.scores(theta, crowd.X)
        first, _ = self._slopes(s, crowd.y)
        return np.outer(first, self.slope(theta, crowd.d)), self._label_slopes(s, crowd.y)[0]

    def score(self, theta: Floats) -> LinearScore:
        """Return the model as a linear score: favourable at or above 0."""
        d = len(theta) - self.intercept
        found = LinearScore(d)
        with torch.no_grad():
            found.weight.copy_(torch.from_numpy(self.slope(theta, d).copy()))
            found.bias.fill_(self._bias(theta))
        return found

    def fit(self, crowd: Crowd, start: Floats | None = None) -> Floats:
        """Return the minimiser by Newton's method."""
        self._check(crowd)
        zero = np.zeros(crowd.d + self.intercept)
        fitted = partial(
            newton, self.local(crowd), tolerance=self.tolerance, max_steps=self.max_steps,
            name=self.name,
        )  # fmt: skip
        if start is None:
            return fitted(zero)
        try:
            return fitted(start)
        except (NotConvergedError, SolverError):
            # People may be so far from the old model that its risk is flat there.
            return fitted(zero)

    def local(self, crowd: Crowd) -> Callable[[Floats], Local]:
        """Return the risk on a crowd as Newton's method reads it: one pass over the rows a point.

        Rows lie along the memory, so that weighing them is one sweep per column.
        """
        columns = np.ones((crowd.d + self.intercept, crowd.n))
        columns[: crowd.d] = crowd.X.T
        mass, ridge = crowd.mass, self._ridge(len(columns))

        def at(theta: Floats) -> Local:
            losses, first, second = self._curve(theta @ columns, crowd.y)

            def gradient() -> Floats:
                found: Floats = columns @ (mass * first) + ridge * theta
                return found

            def hessian() -> Floats:
                weighed = columns * np.sqrt(mass * second)
                found: Floats = weighed @ weighed.T + np.diag(ridge)
                return found

            def risk() -> float:
                return float(mass @ losses()) + 0.5 * float(ridge @ theta**2)

            return Local(risk, gradient, hessian)

        return at

    def _curve(self, s: Floats, y: Floats) -> tuple[Callable[[], Floats], Floats, Floats]:
        """Return the loss of scores, on demand, and its first two derivatives."""
        return (lambda: self._loss(s, y), *self._slopes(s, y))

    def _bias(self, theta: Floats) -> float:
        return float(theta[-1]) if self.intercept else 0.0

    def _ridge(self, p: int) -> Floats:
        ridge = np.full(p, self.penalty)
        if self.intercept and not self.penalise_intercept:
            ridge[-1] = 0.0
        return ridge


@dataclass(frozen=True)
class LogisticLearner(LinearLearner):
    r"""Logistic regression, :math:`\ell = \log(1 + e^s) - y s`; labels in [0, 1]."""

    name: ClassVar[str] = "logistic"

    def _loss(self, s: Floats, y: Floats) -> Floats:
        return cast(Floats, np.log1p(np.exp(-np.abs(s))) + np.maximum(s, 0.0) - y * s)

    def _slopes(self, s: Floats, y: Floats) -> tuple[Floats, Floats]:
        chance = self.chances(s)
        return chance - y, chance * (1.0 - chance)

    def _curve(self, s: Floats, y: Floats) -> tuple[Callable[[], Floats], Floats, Floats]:
        # One exponential serves the loss and its slopes, without overflow.
        small = np.exp(-np.abs(s))
        chance = np.where(s >= 0.0, 1.0, small) / (1.0 + small)

        def losses() -> Floats:
            return cast(Floats, np.log1p(small) + np.maximum(s, 0.0) - y * s)

        return losses, chance - y, chance * (1.0 - chance)

    def _label_slopes(self, s: Floats, y: Floats) -> tuple[Floats, Floats]:
        return -s, np.full_like(s, -1.0)

    def _check(self, crowd: Crowd) -> None:
        wrong = np.flatnonzero((crowd.y < 0.0) | (crowd.y > 1.0))
        if wrong.size:
            raise DataError(
                f"a logistic learner reads labels in [0, 1]; not so in rows {shown(wrong)}",
                rows=wrong,
            )

    @staticmethod
    def chances(s: Floats) -> Floats:
        """Return the sigmoid of scores, without overflow."""
        from scipy.special import expit

        return cast(Floats, expit(s))


@dataclass(frozen=True)
class RidgeLearner(LinearLearner):
    r"""Least squares, :math:`\ell = (s - y)^2`; any real labels."""

    name: ClassVar[str] = "ridge"

    def _loss(self, s: Floats, y: Floats) -> Floats:
        return (s - y) ** 2

    def _slopes(self, s: Floats, y: Floats) -> tuple[Floats, Floats]:
        return 2.0 * (s - y), np.full_like(s, 2.0)

    def _label_slopes(self, s: Floats, y: Floats) -> tuple[Floats, Floats]:
        return -2.0 * (s - y), np.full_like(s, -2.0)
