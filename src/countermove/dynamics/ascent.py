r"""Spectral projected gradient ascent over a convex set (Birgin, Martinez and Raydan, 2000).

Steps follow the projection of a gradient step whose length is read off the last
change of the gradient; a step is kept when it climbs above the lowest of the
last few values. Memory is a few copies of the variable.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from countermove._types import Floats

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


class State(Protocol):
    """A point of the search."""

    @property
    def eta(self) -> Floats:
        """The variable."""

    @property
    def value(self) -> float:
        """What is maximised."""


S = TypeVar("S", bound=State)


@dataclass(frozen=True, eq=False)
class Ascent(Generic[S]):
    """How a search went: its best state with its residual, values and residuals after each step."""

    state: S
    residual: float
    converged: bool
    values: tuple[float, ...]
    residuals: tuple[float, ...]


def ascend(
    at: Callable[[Floats, S | None], S],
    gradient: Callable[[S], Floats],
    project: Callable[[Floats], Floats],
    metric: Floats,
    start: Floats,
    tolerance: float,
    max_steps: int,
) -> Ascent[S]:
    r"""Maximise a smooth function over a convex set.

    Parameters
    ----------
    at
        Evaluates the function; its second argument is a state nearby.
    gradient
        The gradient in the metric, :math:`M^{-1}\nabla U`.
    project
        Nearest point of the set, in the metric.
    metric
        :math:`M`, a diagonal that broadcasts to the variable.
    start
        An allowed variable.
    tolerance
        On :math:`\max|P(\eta + M^{-1}\nabla U) - \eta|`, zero exactly at stationary points.
    max_steps
        Steps at most.
    """
    state = at(start, None)
    slope = gradient(state)
    length = 1.0 / max(float(np.abs(slope).max()), 1e-3)
    values, residuals = [state.value], [_residual(state, slope, project)]
    recent, best = deque([state.value], REMEMBERED), (state, residuals[0])
    while residuals[-1] > tolerance and len(values) <= max_steps:
        direction = project(state.eta + within_reach(length, state.eta, slope) * slope) - state.eta
        promised = float(np.sum(metric * slope * direction))
        there = _search(at, state, direction, promised, min(recent))
        if there is None:
            break
        there_slope = gradient(there)
        length = spectral_length(there.eta - state.eta, there_slope - slope, metric)
        state, slope = there, there_slope
        values.append(state.value)
        residuals.append(_residual(state, slope, project))
        recent.append(state.value)
        best = max(best, (state, residuals[-1]), key=lambda pair: pair[0].value)
    # The last state is the stationary one; an earlier one may lie a rounding above it.
    rounding = ROUNDING * (1.0 + abs(best[0].value))
    if residuals[-1] <= tolerance and state.value >= best[0].value - rounding:
        best = (state, residuals[-1])
    return Ascent(*best, best[1] <= tolerance, tuple(values), tuple(residuals))


def within_reach(length: float, eta: Floats, slope: Floats, reach: float | None = None) -> float:
    """Return a length that moves no entry farther than ``reach``; None: a few times its size."""
    farthest = STRIDE * (1.0 + float(np.abs(eta).max())) if reach is None else reach
    return min(length, farthest / max(float(np.abs(slope).max()), np.finfo(np.float64).tiny))


def _search(
    at: Callable[[Floats, S | None], S], state: S, direction: Floats, promised: float, floor: float
) -> S | None:
    """Return the longest of the halved steps that climbs enough; None where rounding stops it."""
    rounding = 4.0 * np.finfo(np.float64).eps * max(1.0, abs(floor))
    share = 1.0
    for _ in range(HALVINGS):
        there = at(state.eta + share * direction, state)
        if there.value >= floor + ENOUGH * share * promised - rounding:
            return there
        share /= 2.0
    return None


def spectral_length(step: Floats, change: Floats, metric: Floats) -> float:
    r"""Return :math:`\langle s, s\rangle / -\langle s, g' - g\rangle`, the fitting length."""
    bend = -float(np.sum(metric * step * change))
    square = float(np.sum(metric * step * step))
    return LONGEST if bend <= square / LONGEST else max(square / bend, SHORTEST)


def _residual(state: State, slope: Floats, project: Callable[[Floats], Floats]) -> float:
    return float(np.abs(project(state.eta + slope) - state.eta).max())
