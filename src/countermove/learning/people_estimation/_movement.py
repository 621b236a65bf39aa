r"""How far a candidate model says each person advances.

The cost is :math:`t\,c_1` with :math:`c_1` scaled so that a person without bounds pays
:math:`a^2` for an advance :math:`a`; its scale :math:`t` is then the price of an advance of
one unit, and the reach of a best responder is :math:`\sqrt{2/t}` in the same units.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.learning.people_estimation.observation import Observation
from countermove.people import ActionSet, Cost, QuadraticCost, WeightedQuadraticCost
from countermove.response.action_plan import ActionPlan
from countermove.response.base import GAIN
from countermove.response.best import BestResponse
from countermove.response.smooth import ScalarResponse
from countermove.scores import LinearScore, Score

NODES = 400
"""Gaps at which people without bounds are solved for; the others lie between two of them."""
JUMP = 0.05
"""Two neighbouring nodes further apart than this share of the largest move enclose the jump."""
NEARER = 32
"""Parts into which the space between two people is divided to place the jump."""
CONCAVE = 0.2277
r"""From :math:`t\tau^2` of half the largest curvature of the smoothed step on there is no jump."""


def reach_of(scale: float) -> float:
    r"""Return :math:`\sqrt{2/t}`: how far a best responder advances at most."""
    return float(np.sqrt(GAIN / scale)) if scale > 0.0 else np.inf


def scale_of(reach: float) -> float:
    """Return the cost scale with that reach."""
    return float(GAIN / reach**2) if reach > 0.0 else np.inf


class Movement:
    """Predicted advances of the people of an observation under one shape of the cost."""

    def __init__(
        self,
        observed: Observation,
        weights: Floats | None = None,  # shape of the cost, scaled as above; None: all alike
        rows: NDArray[np.intp] | None = None,
    ) -> None:
        chosen = np.arange(len(observed.X)) if rows is None else rows
        self.X = observed.X[chosen]
        self.gap = observed.gap[chosen]
        self.score: Score = observed.score
        self.actions = observed.actions.of_rows(chosen)
        self.unit = observed.unit
        self.weights = weights
        self.free = self._without_bounds()
        self._nodes = np.quantile(self.gap, np.linspace(0.0, 1.0, NODES))
        self._cell = np.searchsorted(self._nodes, self.gap)

    def cost(self, scale: float) -> Cost:
        """Return the cost of that scale."""
        if self.weights is None:
            return QuadraticCost(scale)
        return WeightedQuadraticCost(scale * self.weights)

    def difficulty(self) -> Floats:
        """Return what must be reached to cross, shape (n,): crosses iff below the reach."""
        # The root of the cheapest crossing at scale 1; the gap itself where nothing bounds the
        # move, infinite where no allowed move crosses, 0 for the approved.
        if self.free:
            return np.maximum(self.gap, 0.0)
        price = BestResponse(self.cost(1.0), self.actions).crossing_cost(self.score, self.X)
        result: Floats = np.sqrt(price)
        return result

    def smooth(self, scale: float, temperature: float, exact: bool = False) -> Floats:
        """Return the advance of people who climb a smoothed step, shape (n,)."""
        if not self.free:
            people = ScalarResponse(self.cost(scale), self.actions, temperature)
            return self._gained(people, self.score, self.X, self.unit, self.gap)
        people = ScalarResponse(QuadraticCost(scale), ActionSet(), temperature)
        # Else people are interpolated between neighbours, except around the jump.
        if exact or len(self.gap) <= NODES:
            return _along(people, self.gap)
        solved = _along(people, self._nodes)
        advance: Floats = np.interp(self.gap, self._nodes, solved)
        if scale * temperature**2 < CONCAVE:
            leaps = np.abs(np.diff(solved)) > JUMP * float(np.abs(solved).max())
            near = np.concatenate([[False], leaps, [False]])[self._cell]
            if near.any():
                advance[near] = _along(people, self.gap[near])
        return advance

    def jump(
        self, scale: float, temperature: float, advance: Floats
    ) -> tuple[float, float, float] | None:
        """Return the gap at which the smooth response jumps, and the advance on either side."""
        # None where it does not jump, or where bounds let everybody jump elsewhere. People must be
        # sorted by gap; ``advance`` is what `smooth` returned for them.
        if not self.free or scale * temperature**2 >= CONCAVE or len(self.gap) < 2:
            return None
        k = int(np.argmin(np.diff(advance)))
        if advance[k] - advance[k + 1] <= JUMP * float(np.abs(advance).max()):
            return None
        gaps = np.linspace(self.gap[k], self.gap[k + 1], NEARER + 1)
        nearer = _along(ScalarResponse(QuadraticCost(scale), ActionSet(), temperature), gaps)
        j = int(np.argmin(np.diff(nearer)))
        return float(0.5 * (gaps[j] + gaps[j + 1])), float(nearer[j]), float(nearer[j + 1])

    def _without_bounds(self) -> bool:
        plan = ActionPlan(self.actions, self.X.shape[1])
        return plan.actions.A is None and plan.facts(len(self.X))[0]

    @staticmethod
    def _gained(
        people: ScalarResponse, score: Score, X: Floats, unit: float, gap: Floats
    ) -> Floats:
        with torch.no_grad():
            after: Floats = people.scores_after(score, torch.from_numpy(X)).numpy()
        return after / unit + gap


def _along(people: ScalarResponse, gap: Floats) -> Floats:
    """Return the advance of people who differ in their gap alone: a line is all there is."""
    line = LinearScore(1)
    with torch.no_grad():
        line.weight.fill_(1.0)
        after: Floats = people.scores_after(line, torch.from_numpy(-gap[:, None])).numpy()
    return after + gap
