"""Some members move while the others keep to what was agreed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from countermove._types import Floats, Index
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners import Learner
from countermove.dynamics.spaces import Space
from countermove.dynamics.utilities import Utility


@dataclass(frozen=True, eq=False)
class Part(Space):
    """The strategies of a space in which all rows of ``eta`` but some are held.

    Parameters
    ----------
    space
        Its strategies have one row per member and are bounded row by row.
    held
        The strategy the others keep to.
    rows
        The rows that move.
    """

    space: Space
    held: Floats
    rows: Index

    @property
    def metric(self) -> Floats:  # type: ignore[override]
        """Return that of the rows that move."""
        part: Floats = np.broadcast_to(self.space.metric, self.held.shape)[self.rows]
        return part

    def whole(self, eta: Floats) -> Floats:
        """Return everybody's strategy."""
        everybody = self.held.copy()
        everybody[self.rows] = eta
        return everybody

    def stay(self) -> Floats:
        """Return what was agreed."""
        part: Floats = self.held[self.rows]
        return part

    def drawn(self, rng: np.random.Generator) -> Floats:
        """Return a random strategy of those who move."""
        part: Floats = self.space.drawn(rng)[self.rows]
        return part

    def project(self, eta: Floats) -> Floats:
        """Return the nearest allowed strategy of those who move."""
        part: Floats = self.space.project(self.whole(eta))[self.rows]
        return part

    def crowd_at(self, eta: Floats) -> Crowd:
        """Return everybody the learner sees."""
        return self.space.crowd_at(self.whole(eta))

    def members_at(self, eta: Floats) -> Crowd:
        """Return all members."""
        return self.space.members_at(self.whole(eta))

    def cost(self, eta: Floats) -> float:
        """Return what everybody's strategy costs."""
        return self.space.cost(self.whole(eta))

    def cost_slope(self, eta: Floats) -> Floats:
        """Return its derivative in the rows that move."""
        part: Floats = self.space.cost_slope(self.whole(eta))[self.rows]
        return part

    def own_slope(self, eta: Floats, theta: Floats, utility: Utility, learner: Learner) -> Floats:
        """Return the slope at a fixed model in the rows that move."""
        part: Floats = self.space.own_slope(self.whole(eta), theta, utility, learner)[self.rows]
        return part

    def steering(
        self, eta: Floats, theta: Floats, whole: Crowd, v: Floats, learner: Learner
    ) -> Floats:
        """Return the slope through the model in the rows that move."""
        slope = self.space.steering(self.whole(eta), theta, whole, v, learner)
        part: Floats = slope[self.rows]
        return part
