r"""The one engine of everyone who acts *through* the retraining.

.. math:: \max_\eta \; U(\eta) = f(D_\eta, \theta_\eta) - C(\eta), \qquad
          \nabla_\theta\,\mathrm{risk}(\theta_\eta, D_\eta) = 0

Differentiating the learner's condition gives the gradient; nothing is unrolled.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from countermove._types import Floats
from countermove.dynamics.collective.spaces import Space
from countermove.dynamics.collective.utilities import Utility
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners import Learner
from countermove.errors import NotConvergedError, ParameterError
from countermove.randomness import generator

REMEMBERED = 10
"""Values a step may fall back to: lets long spectral steps through."""
ENOUGH = 1e-4
"""Share of the promised climb a step must keep."""
SHORTEST, LONGEST = 1e-12, 1e12
"""Limits of the spectral step length."""
ROUNDING = 1e-10
"""Values that differ by less than this share are the same."""
HALVINGS = 50
STRIDE = 10.0
"""A step moves no entry farther than this many times one more than the largest entry."""


def within_reach(length: float, eta: Floats, slope: Floats, reach: float | None = None) -> float:
    """Return a length that moves no entry farther than ``reach``; None: a few times its size."""
    farthest = STRIDE * (1.0 + float(np.abs(eta).max())) if reach is None else reach
    largest = float(np.abs(slope).max())
    return length if length * largest <= farthest else farthest / largest


def spectral_length(step: Floats, change: Floats, metric: Floats) -> float:
    r"""Return :math:`\langle s, s\rangle / -\langle s, g' - g\rangle`, the fitting length."""
    bend = -float(np.sum(metric * step * change))
    square = float(np.sum(metric * step * step))
    return LONGEST if bend <= square / LONGEST else max(square / bend, SHORTEST)


def projected_slope(space: Space, eta: Floats, slope: Floats) -> float:
    """Return how far a unit step along the slope moves any entry within the space."""
    return float(np.abs(space.project(eta + slope) - eta).max())


def least_residual(direction: Floats, stride: float) -> float:
    """Return what `projected_slope` is at least, from the move that a stride along it led to."""
    # A projection onto a convex set moves a row no less the further it aims, and no more than in
    # proportion; some entry of a row of k is at least its length over the root of k.
    rows = np.atleast_2d(direction)
    farthest = float(np.linalg.norm(rows, axis=1).max())
    return farthest / (max(stride, 1.0) * float(np.sqrt(rows.shape[1])))


class Platform(ABC):
    """What a crowd's data leads to: a model, and how it yields to a change of the data."""

    learner: Learner

    @abstractmethod
    def settle(self, crowd: Crowd, start: Floats | None = None) -> tuple[Floats, Crowd]:
        """Return the model and the whole crowd it is fitted to, whose first rows are ``crowd``."""

    def meet(self, crowd: Crowd, theta: Floats) -> Crowd:
        """Return everybody the learner sees while ``theta`` is deployed: the crowd by default."""
        return crowd

    @abstractmethod
    def adjoint(self, theta: Floats, whole: Crowd, v: Floats) -> Floats:
        r"""Return :math:`J^{-\top} v`, J the derivative of the condition that fixes the model."""


@dataclass(frozen=True)
class Fitted(Platform):
    r"""The learner sees the crowd and nobody else; J is its Hessian."""

    learner: Learner

    def settle(self, crowd: Crowd, start: Floats | None = None) -> tuple[Floats, Crowd]:
        """Return the fitted model."""
        return self.learner.fit(crowd, start), crowd

    def adjoint(self, theta: Floats, whole: Crowd, v: Floats) -> Floats:
        r"""Return :math:`H^{-1} v`."""
        return self.learner.solve(theta, whole, v)


@dataclass(frozen=True, eq=False)
class FixedModel(Platform):
    """A platform that keeps its model, whatever the data say."""

    learner: Learner
    theta: Floats

    def settle(self, crowd: Crowd, start: Floats | None = None) -> tuple[Floats, Crowd]:
        """Return the model as it is."""
        return self.theta, crowd

    def adjoint(self, theta: Floats, whole: Crowd, v: Floats) -> Floats:
        """Return zeros: nothing is reached through the model."""
        return np.zeros_like(theta)


@dataclass(frozen=True, eq=False)
class Point:
    """A strategy and what it leads to."""

    eta: Floats  # the strategy, in the units of its space
    theta: Floats  # the model it leads to
    value: float  # the members' utility less the strategy's cost
    whole: Crowd  # everybody the model was fitted to


@dataclass(frozen=True, eq=False)
class Solution:
    """A best strategy found."""

    point: Point
    values: tuple[float, ...]  # utility after each step, of the start that led here
    slope: Floats  # of the utility at the point, per member
    space: Space
    tolerance: float
    start_values: tuple[float, ...] = ()  # utility each start ended at: local maxima show here

    @cached_property
    def residual(self) -> float:
        """Largest entry of the projected gradient per member."""
        return projected_slope(self.space, self.eta, self.slope)

    @property
    def converged(self) -> bool:
        """Whether the projected gradient fell below the tolerance."""
        return self.residual <= self.tolerance

    @property
    def eta(self) -> Floats:
        """The strategy."""
        return self.point.eta

    @property
    def theta(self) -> Floats:
        """The model it leads to."""
        return self.point.theta

    @property
    def value(self) -> float:
        """The members' utility less the strategy's cost."""
        return self.point.value


@dataclass(frozen=True, eq=False)
class Bilevel:
    r"""Members with a utility and a space of strategies, above a platform that refits.

    Parameters
    ----------
    space
        What the members can do.
    utility
        What they want at the model that results.
    platform
        Whom they face; a learner stands for one that sees the space's crowd alone.
    """

    space: Space
    utility: Utility
    platform: Platform | Learner

    def __post_init__(self) -> None:
        if not self.learner.differentiable:
            raise ParameterError(
                "acting through the retraining needs a learner with derivatives (LogisticLearner, "
                f"RidgeLearner, TorchLearner); {self.learner.name} only fits"
            )

    @property
    def facing(self) -> Platform:
        """The platform the members face."""
        return Fitted(self.platform) if isinstance(self.platform, Learner) else self.platform

    @property
    def learner(self) -> Learner:
        """The learner of the platform."""
        return self.facing.learner

    def at(self, eta: Floats, start: Floats | None = None) -> Point:
        """Return what a strategy leads to; ``start`` is a model to warm-start the fit from."""
        theta, whole = self.facing.settle(self.space.crowd_at(eta), start)
        value = self.utility.value(theta, self.space.members_at(eta), self.learner)
        return Point(eta, theta, value - self.space.cost(eta), whole)

    def own(self, point: Point) -> Floats:
        r"""Return :math:`\partial_1 f - \nabla C`: what selfish members see."""
        slope = self.space.own_slope(point.eta, point.theta, self.utility, self.learner)
        return slope - self.space.cost_slope(point.eta)

    def steered(self, point: Point) -> Floats:
        r"""Return what only a collective sees: the utility's change through the model.

        .. math:: -\frac{\partial}{\partial\eta}\, v \cdot \nabla_\theta\mathrm{risk}, \qquad
                  v = J^{-\top}\, \partial_\theta f
        """
        v = self.leverage(point)
        return -self.space.steering(point.eta, point.theta, point.whole, v, self.learner)

    def leverage(self, point: Point) -> Floats:
        r"""Return :math:`v = J^{-\top}\,\partial_\theta f`: the worth of a push."""
        members = self.space.members_at(point.eta)
        slope = self.utility.by_theta(point.theta, members, self.learner)
        return self.facing.adjoint(point.theta, point.whole, slope)

    def gradient(self, point: Point) -> Floats:
        r"""Return :math:`\nabla U(\eta)`, in the shape of ``eta``."""
        return self.own(point) + self.steered(point)

    def maximise(
        self,
        start: Floats | None = None,
        starts: int = 1,
        tolerance: float = 1e-6,
        max_steps: int = 500,
        seed: int = 0,
        strict: bool = True,
    ) -> Solution:
        """Return the best strategy found by projected gradient ascent.

        Parameters
        ----------
        start
            Where to start; None: nobody moves.
        starts
            Starts in all; those after the first are drawn at random.
        tolerance
            On the largest entry of the projected gradient per member. With many members in balls of
            p = 1 a few keep changing features long after the utility has settled: ask for 1e-2
            there, or cap ``max_steps`` with ``strict=False``.
        max_steps
            Ascent steps per start.
        seed
            Of the random starts.
        strict
            Raise `NotConvergedError` where the best start did not converge; else the solution
            says so.

        Notes
        -----
        U is not concave in general: what is found is a stationary strategy no worse than its
        start, a global maximiser where U is concave.
        """
        if starts < 1 or max_steps < 1 or not tolerance > 0.0:
            raise ParameterError(
                "a search needs starts >= 1, max_steps >= 1 and tolerance > 0; got "
                f"{starts}, {max_steps} and {tolerance}"
            )
        rng = generator(seed, "collective starts")
        first = self.space.stay() if start is None else self.space.project(start)
        begun = [first] + [self.space.drawn(rng) for _ in range(starts - 1)]
        ascents = [self._ascend(eta, tolerance, max_steps) for eta in begun]
        best = max(ascents, key=lambda ascent: ascent.value)
        if strict and not best.converged:
            raise NotConvergedError(
                f"the best strategy's projected gradient is still {best.residual:.2g} after "
                f"{len(best.values) - 1} steps (tolerance {tolerance:.2g}); allow more steps or a "
                "larger tolerance, or take what was found with strict=False"
            )
        return replace(best, start_values=tuple(ascent.value for ascent in ascents))

    def _ascend(self, eta: Floats, tolerance: float, max_steps: int) -> Solution:
        # Spectral projected gradients in the diagonal metric M of the space. The residual,
        # max |P(eta + M^-1 grad U) - eta|, is zero exactly at stationary points.
        space, metric = self.space, self.space.metric
        point = self.at(eta)
        slope = self.gradient(point) / metric
        length = 1.0 / max(float(np.abs(slope).max()), 1e-3)
        values, recent, best = [point.value], deque([point.value], REMEMBERED), (point, slope)
        while len(values) <= max_steps:
            stride = within_reach(length, point.eta, slope)
            direction = space.project(point.eta + stride * slope) - point.eta
            if (
                least_residual(direction, stride) <= tolerance
                and projected_slope(space, point.eta, slope) <= tolerance
            ):
                break
            promised = float(np.sum(metric * slope * direction))
            there = self._search(point, direction, promised, min(recent))
            if there is None:
                break
            there_slope = self.gradient(there) / metric
            length = spectral_length(there.eta - point.eta, there_slope - slope, metric)
            point, slope = there, there_slope
            values.append(point.value)
            recent.append(point.value)
            best = max(best, (point, slope), key=lambda pair: pair[0].value)
        # The last point is the stationary one; an earlier one may lie a rounding above it.
        if point.value < best[0].value - ROUNDING * (1.0 + abs(best[0].value)):
            point, slope = best
        return Solution(point, tuple(values), slope, space, tolerance)

    def _search(
        self, point: Point, direction: Floats, promised: float, floor: float
    ) -> Point | None:
        """Return the longest of the halved steps that climbs enough; None where none does."""
        rounding = 4.0 * np.finfo(np.float64).eps * max(1.0, abs(floor))
        share = 1.0
        for _ in range(HALVINGS):
            there = self.at(point.eta + share * direction, point.theta)
            if there.value >= floor + ENOUGH * share * promised - rounding:
                return there
            share /= 2.0
        return None
