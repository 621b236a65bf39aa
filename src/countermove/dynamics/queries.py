r"""People who ask others for help: a query's utility, and a platform that does not refit.

Collective recourse (3) is the engine with this utility; individual recourse (2) is the same
engine above a model that stays as it is.

.. math:: U = -\sum_j w_j \, \ell(g_j \mid x_j, \theta)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from countermove._types import Floats, Index
from countermove.dynamics.bilevel import Platform
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.goals import Goals
from countermove.dynamics.learners import Learner
from countermove.dynamics.utilities import Utility


@dataclass(frozen=True, eq=False)
class QueryUtility(Utility):
    """What some people lose at the decisions they want, negative, averaged.

    Parameters
    ----------
    goals
        Judges a goal under a model.
    X
        Features of the queries, shape (m, d).
    goal
        The class each wants, shape (m,).
    weight
        How much each counts, adding up to 1, shape (m,).
    place
        Where each stands among the members, -1 for those who are not members and stay; the
        features of members are read where they have moved to. None: nobody is.
    """

    goals: Goals
    X: Floats
    goal: Floats
    weight: Floats
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


@dataclass(frozen=True, eq=False)
class Unmoved(Platform):
    """A platform that keeps its model, whatever the data say."""

    learner: Learner
    theta: Floats

    def settle(self, crowd: Crowd, start: Floats | None = None) -> tuple[Floats, Crowd]:
        """Return the model as it is."""
        return self.theta, crowd

    def meet(self, crowd: Crowd, theta: Floats) -> Crowd:
        """Return the crowd: nobody answers the model."""
        return crowd

    def adjoint(self, theta: Floats, whole: Crowd, v: Floats) -> Floats:
        """Return zeros: nothing is reached through the model."""
        return np.zeros_like(theta)
