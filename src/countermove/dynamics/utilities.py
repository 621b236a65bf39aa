r"""What the members of a collective want: an objective at the model that meets them.

.. math:: f(D_h, \theta) = E_{z \sim D_h}[u(z, \theta)]

A utility is read through three things: each member's value, the slope in the
model, and the slope in the member's own reported row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from countermove._types import Floats
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners import Learner
from countermove.errors import DataError, ParameterError, shown


class Utility(ABC):
    """The members' objective; members are a crowd whose weights add up to 1."""

    name: ClassVar[str]

    @abstractmethod
    def of_rows(self, theta: Floats, members: Crowd, learner: Learner) -> Floats:
        r"""Return :math:`u(z_i, \theta)`, shape (m,)."""

    @abstractmethod
    def by_theta(self, theta: Floats, members: Crowd, learner: Learner) -> Floats:
        r"""Return :math:`\partial f / \partial\theta`, shape (p,)."""

    @abstractmethod
    def by_rows(self, theta: Floats, members: Crowd, learner: Learner) -> tuple[Floats, Floats]:
        r"""Return :math:`\partial f / \partial x_i` and :math:`\partial f / \partial y_i`.

        Shapes (m, d) and (m,), each row with its weight; the model is held fixed.
        """

    def value(self, theta: Floats, members: Crowd, learner: Learner) -> float:
        r"""Return :math:`f(D_h, \theta)`."""
        return float(members.mean(self.of_rows(theta, members, learner)))


@dataclass(frozen=True)
class LossUtility(Utility):
    r""":math:`u = c\,\ell`: against the platform for c > 0, with it for c < 0."""

    c: float = 1.0
    name: ClassVar[str] = "loss"

    def __post_init__(self) -> None:
        if not np.isfinite(self.c) or self.c == 0.0:
            raise ParameterError(f"the factor of a loss utility is a number, not 0; got {self.c}")

    def of_rows(self, theta: Floats, members: Crowd, learner: Learner) -> Floats:
        r"""Return :math:`c\,\ell(z_i, \theta)`."""
        return self.c * learner.losses(theta, members)

    def by_theta(self, theta: Floats, members: Crowd, learner: Learner) -> Floats:
        r"""Return :math:`c\,E[\nabla_\theta\ell]`, the learner's penalty left out."""
        slope: Floats = self.c * members.mean(learner.row_gradients(theta, members))
        return slope

    def by_rows(self, theta: Floats, members: Crowd, learner: Learner) -> tuple[Floats, Floats]:
        """Return the slopes of each member's loss in its own row."""
        by_x, by_y = learner.loss_slopes(theta, members)
        mass = self.c * members.mass
        return mass[:, None] * by_x, mass * by_y


@dataclass(frozen=True)
class PenalisedLossUtility(LossUtility):
    r""":math:`u = c\,\ell - \lambda|\theta|^2`, the paper's (5) at c = 1."""

    penalty: float = 0.0
    name: ClassVar[str] = "penalised_loss"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not np.isfinite(self.penalty) or self.penalty < 0.0:
            raise ParameterError(f"a utility's penalty is a number >= 0, got {self.penalty}")

    def of_rows(self, theta: Floats, members: Crowd, learner: Learner) -> Floats:
        """Return the loss less the model's squared length."""
        return super().of_rows(theta, members, learner) - self.penalty * float(theta @ theta)

    def by_theta(self, theta: Floats, members: Crowd, learner: Learner) -> Floats:
        """Return the slope of both terms."""
        return super().by_theta(theta, members, learner) - 2.0 * self.penalty * theta


@dataclass(frozen=True, eq=False)
class TargetModelUtility(Utility):
    r""":math:`u = -|\theta - \theta_{target}|^2`, the paper's (6): everybody wants one model."""

    target: Floats
    name: ClassVar[str] = "target_model"

    def of_rows(self, theta: Floats, members: Crowd, learner: Learner) -> Floats:
        """Return the same distance for every member."""
        return np.full(members.n, -float(self._gap(theta) @ self._gap(theta)))

    def by_theta(self, theta: Floats, members: Crowd, learner: Learner) -> Floats:
        r"""Return :math:`-2(\theta - \theta_{target})`."""
        return -2.0 * self._gap(theta)

    def by_rows(self, theta: Floats, members: Crowd, learner: Learner) -> tuple[Floats, Floats]:
        """Return zeros: a member's own row matters only through the model."""
        return np.zeros_like(members.X), np.zeros(members.n)

    def _gap(self, theta: Floats) -> Floats:
        if np.shape(self.target) != theta.shape:
            raise DataError(
                f"the target model has shape {np.shape(self.target)}, the fitted one {theta.shape}"
            )
        gap: Floats = theta - self.target
        return gap


@dataclass(frozen=True, eq=False)
class TargetPredictionUtility(Utility):
    r""":math:`u = -\ell((x, g), \theta)`: members want to be predicted as g, whatever they report.

    With a ridge learner this is Example 5's :math:`-(f_\theta(x) - g(x))^2`.

    Parameters
    ----------
    target
        :math:`g_i` of each member, in the order of the members, shape (m,), or one for all.
    """

    target: Floats | float
    name: ClassVar[str] = "target_prediction"

    def of_rows(self, theta: Floats, members: Crowd, learner: Learner) -> Floats:
        """Return the negative loss each member would have with its target as label."""
        return -learner.losses(theta, self._wished(members))

    def by_theta(self, theta: Floats, members: Crowd, learner: Learner) -> Floats:
        """Return the slope in the model."""
        slope: Floats = -members.mean(learner.row_gradients(theta, self._wished(members)))
        return slope

    def by_rows(self, theta: Floats, members: Crowd, learner: Learner) -> tuple[Floats, Floats]:
        """Return the slope in a member's features; its reported label is not read."""
        by_x, _ = learner.loss_slopes(theta, self._wished(members))
        return -members.mass[:, None] * by_x, np.zeros(members.n)

    def _wished(self, members: Crowd) -> Crowd:
        target = np.asarray(self.target, dtype=np.float64)
        if target.ndim and target.shape != (members.n,):
            raise DataError(f"targets are one per member, shape ({members.n},); got {target.shape}")
        wrong = np.flatnonzero(~np.isfinite(target))
        if wrong.size:
            raise DataError(f"targets are finite; not so in rows {shown(wrong)}", rows=wrong)
        return members.moved(y=np.broadcast_to(target, (members.n,)))
