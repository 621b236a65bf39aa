r"""What the members of a collective want: an objective at the model that meets them.

.. math:: f(D_h, \theta) = E_{z \sim D_h}[u(z, \theta)]

A utility is read through three things: each member's value, the slope in the
model, and the slope in the member's own reported row. A query's utility is the negative loss
of the decision it wants, :math:`-\log p(\text{goal} \mid x)`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
import torch

from countermove._types import Floats, Index
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners import Learner
from countermove.dynamics.learners.centroids import CentroidLearner
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
        return -learner.losses(theta, self._with_targets(members))

    def by_theta(self, theta: Floats, members: Crowd, learner: Learner) -> Floats:
        """Return the slope in the model."""
        slope: Floats = -members.mean(learner.row_gradients(theta, self._with_targets(members)))
        return slope

    def by_rows(self, theta: Floats, members: Crowd, learner: Learner) -> tuple[Floats, Floats]:
        """Return the slope in a member's features; its reported label is not read."""
        by_x, _ = learner.loss_slopes(theta, self._with_targets(members))
        return -members.mass[:, None] * by_x, np.zeros(members.n)

    def _with_targets(self, members: Crowd) -> Crowd:
        target = np.asarray(self.target, dtype=np.float64)
        if target.ndim and target.shape != (members.n,):
            raise DataError(f"targets are one per member, shape ({members.n},); got {target.shape}")
        wrong = np.flatnonzero(~np.isfinite(target))
        if wrong.size:
            raise DataError(f"targets are finite; not so in rows {shown(wrong)}", rows=wrong)
        return members.moved(y=np.broadcast_to(target, (members.n,)))


class Goals(ABC):
    """How far people are from the decisions they want, under a model ``theta``."""

    @property
    @abstractmethod
    def known(self) -> tuple[float, ...]:
        """The classes that can be wanted."""

    @abstractmethod
    def losses(self, theta: Floats, X: Floats, goal: Floats) -> Floats:
        """Return the loss of each person's goal, shape (m,)."""

    @abstractmethod
    def slopes(self, theta: Floats, X: Floats, goal: Floats) -> tuple[Floats, Floats]:
        """Return its slopes by the model and by the person's features, (m, p) and (m, d)."""

    @abstractmethod
    def decide(self, theta: Floats, X: Floats) -> Floats:
        """Return the class each person is given, shape (m,)."""

    def check(self, goal: Floats) -> None:
        """Refuse a goal that is no class."""
        strange = sorted({float(g) for g in np.ravel(goal)} - set(self.known))
        if strange:
            raise ParameterError(
                f"unknown goal class {shown(strange)}; the learner knows {shown(self.known)}"
            )


@dataclass(frozen=True)
class CentroidGoals(Goals):
    r"""Goals at a nearest-centroid model, :math:`p(c \mid x) \propto e^{-\beta|x - \mu_c|}`."""

    learner: CentroidLearner
    sharpness: float = 1.0  # beta, 1 as published; the loss is divided by it
    softening: float = 0.0  # distances are sqrt(|x - mu|^2 + this^2), which rounds off their kink

    @property
    def known(self) -> tuple[float, ...]:
        """The learner's classes."""
        return self.learner.classes

    def losses(self, theta: Floats, X: Floats, goal: Floats) -> Floats:
        """Return the loss of each person's goal."""
        from scipy.special import logsumexp

        away, _ = self._distances(theta, X)
        own = away[np.arange(len(X)), self.learner.codes(goal)]
        rest = logsumexp(-self.sharpness * away, axis=1) / self.sharpness
        return cast(Floats, own + rest)

    def slopes(self, theta: Floats, X: Floats, goal: Floats) -> tuple[Floats, Floats]:
        r"""Return slopes through the distances, :math:`[c = g] - p(c \mid x)` per class."""
        # At a centroid, where the distance has none, its slope is taken as zero.
        from scipy.special import softmax

        away, apart = self._distances(theta, X)
        weight = -softmax(-self.sharpness * away, axis=1)
        weight[np.arange(len(X)), self.learner.codes(goal)] += 1.0
        units = apart / np.where(away > 0.0, away, 1.0)[:, :, None]
        by_class = weight[:, :, None] * units
        return -by_class.reshape(len(X), -1), by_class.sum(axis=1)

    def decide(self, theta: Floats, X: Floats) -> Floats:
        """Return the class of the nearest centroid."""
        away, _ = self._distances(theta, X)
        named: Floats = np.asarray(self.learner.classes, dtype=np.float64)[away.argmin(axis=1)]
        return named

    def _distances(self, theta: Floats, X: Floats) -> tuple[Floats, Floats]:
        apart = X[:, None, :] - self.learner.centroids(theta)
        squares = np.einsum("mkd,mkd->mk", apart, apart)
        return np.sqrt(squares + self.softening**2), apart


@dataclass(frozen=True)
class ScoreGoals(Goals):
    """Goals at a model with a score: 1 is favourable (a score of at least 0), 0 is not."""

    learner: Learner

    @property
    def known(self) -> tuple[float, ...]:
        """Unfavourable and favourable."""
        return (0.0, 1.0)

    def losses(self, theta: Floats, X: Floats, goal: Floats) -> Floats:
        """Return the learner's own loss where the goal is the label."""
        return self.learner.losses(theta, Crowd(X, goal))

    def slopes(self, theta: Floats, X: Floats, goal: Floats) -> tuple[Floats, Floats]:
        """Return the slopes of the learner's own loss."""
        people = Crowd(X, goal)
        return self.learner.row_gradients(theta, people), self.learner.loss_slopes(theta, people)[0]

    def decide(self, theta: Floats, X: Floats) -> Floats:
        """Return 1 where the score is at least 0."""
        with torch.no_grad():
            score = self.learner.score(theta)(torch.from_numpy(np.ascontiguousarray(X)))
        return cast(Floats, (score.numpy() >= 0.0).astype(np.float64))


def goals_of(learner: Learner) -> Goals:
    """Return how a learner's models judge goals."""
    return CentroidGoals(learner) if isinstance(learner, CentroidLearner) else ScoreGoals(learner)


@dataclass(frozen=True, eq=False)
class QueryUtility(Utility):
    """What some people lose at the decisions they want, negative, averaged."""

    goals: Goals
    X: Floats  # features of the queries, shape (m, d)
    goal: Floats  # the class each wants, shape (m,)
    weight: Floats  # how much each counts, adding up to 1, shape (m,)
    # where each stands among the members, -1 for those who stay; None: nobody is a member
    place: Index | None = None
    name: ClassVar[str] = "query"

    def of_rows(self, theta: Floats, members: Crowd, learner: Learner) -> Floats:
        """Return one and the same value for every member: they all want it."""
        return np.full(members.n, self.value(theta, members, learner))

    def value(self, theta: Floats, members: Crowd, learner: Learner) -> float:
        """Return the negative mean loss of the goals."""
        return -float(self.weight @ self.goals.losses(theta, self.at(members), self.goal))

    def by_theta(self, theta: Floats, members: Crowd, learner: Learner) -> Floats:
        """Return its slope in the model."""
        return -self.weight @ self.goals.slopes(theta, self.at(members), self.goal)[0]

    def by_rows(self, theta: Floats, members: Crowd, learner: Learner) -> tuple[Floats, Floats]:
        """Return its slope in the rows of the members who are queries themselves."""
        slopes = np.zeros_like(members.X)
        if self.place is not None:
            by_x = self.goals.slopes(theta, self.at(members), self.goal)[1]
            inside = self.place >= 0
            np.add.at(slopes, self.place[inside], -(self.weight[:, None] * by_x)[inside])
        return slopes, np.zeros(members.n)

    def at(self, members: Crowd) -> Floats:
        """Return the queries where they stand now, shape (m, d)."""
        if self.place is None:
            return self.X
        inside = self.place >= 0
        X = self.X.copy()
        X[inside] = members.X[self.place[inside]]
        return X
