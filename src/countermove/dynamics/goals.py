r"""What a model thinks of people who want a certain decision: loss, slopes, decision.

A goal is a class; its loss at a person is :math:`-\log p(\text{goal} \mid x)`. For learners whose
own loss is that already (logistic, networks) it is read from the learner.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch

from countermove._types import Floats
from countermove.dynamics.centroids import CentroidLearner
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners import Learner
from countermove.errors import ParameterError, shown


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
    r"""Goals at a nearest-centroid model, :math:`p(c \mid x) \propto e^{-\beta|x - \mu_c|}`.

    Parameters
    ----------
    learner
        Names the classes.
    sharpness
        :math:`\beta`: 1 as published; the larger, the more the loss counts the nearest rival alone.
        The loss is divided by it.
    softening
        :math:`\eta`: distances are :math:`\sqrt{|x - \mu|^2 + \eta^2}`, which rounds off their kink
        at a centroid and changes the loss by at most :math:`\eta`.
    """

    learner: CentroidLearner
    sharpness: float = 1.0
    softening: float = 0.0

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
        r"""Return slopes through the distances, :math:`[c = g] - p(c \mid x)` per class.

        At a centroid, where the distance has none, its slope is taken as zero.
        """
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
