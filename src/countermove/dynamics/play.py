r"""Members who do not coordinate: each answers the model, the learner refits, until both rest.

.. math:: h^* \in \arg\max_h f(D_h, \theta^*) - C(h), \qquad \theta^* = A(D_{h^*})

Each member climbs its own utility at the model in force, as far as pays before the
refit: full answers of people whom a cost does not hold would jump from end to end.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from countermove._types import Floats
from countermove.dynamics.ascent import REMEMBERED, spectral_length, within_reach
from countermove.dynamics.bilevel import Bilevel, Point
from countermove.errors import NotConvergedError

HALVINGS = 12
"""Shorter steps tried before one that raises the members' wish to move is taken all the same."""


@dataclass(frozen=True, eq=False)
class SelfishPoint:
    """A selfish stable point.

    Parameters
    ----------
    point
        Strategy, model and utility.
    converged
        Whether no member wishes to move by more than the tolerance.
    residual
        The largest such wish: the projected slope of a member's own utility, the model held fixed.
    residuals
        The same after each round.
    """

    point: Point
    converged: bool
    residual: float
    residuals: tuple[float, ...]


def selfish_point(
    problem: Bilevel,
    start: Floats | None = None,
    tolerance: float = 1e-6,
    max_steps: int = 500,
    strict: bool = True,
    stride: float | None = None,
) -> SelfishPoint:
    """Return where members and learner rest when nobody coordinates.

    Parameters
    ----------
    problem
        Members, what they want, and the platform.
    start
        Where members start; None: nobody has moved.
    tolerance
        On a member's projected own slope.
    max_steps
        Rounds of moving and refitting.
    strict
        Raise where the play has not come to rest; else the point says so.
    stride
        How far a member moves at most before the learner refits. Where many points are stable
        (members who become indifferent stop anywhere), short strides lead to the one that
        members reach who are never surprised by the refit.

    Notes
    -----
    The point is stationary for every member; where a member's own utility is concave in its
    move, it is that member's best answer.
    """
    space = problem.space
    point = problem.at(space.stay() if start is None else space.project(start))
    slope = problem.own(point) / space.metric
    length = 1.0 / max(float(np.abs(slope).max()), 1e-3)
    residuals = [_wish(problem, point, slope)]
    recent, best = deque([residuals[0]], REMEMBERED), (residuals[0], point)
    while best[0] > tolerance and len(residuals) <= max_steps:
        after, slope_after = _round(problem, point, slope, length, max(recent), stride)
        length = spectral_length(after.eta - point.eta, slope_after - slope, space.metric)
        point, slope = after, slope_after
        residuals.append(_wish(problem, point, slope))
        recent.append(residuals[-1])
        best = min(best, (residuals[-1], point), key=lambda pair: pair[0])
    if strict and best[0] > tolerance:
        raise NotConvergedError(
            f"selfish members still wish to move by {best[0]:.2g} after {max_steps} rounds "
            f"(tolerance {tolerance:.2g}): there may be no stable point without lotteries; bound "
            "the moves more tightly, make them cost something, or take strict=False"
        )
    return SelfishPoint(best[1], best[0] <= tolerance, best[0], tuple(residuals))


def _round(
    problem: Bilevel,
    point: Point,
    slope: Floats,
    length: float,
    ceiling: float,
    stride: float | None,
) -> tuple[Point, Floats]:
    """Let everybody climb and the learner refit; shorter if that leaves them less content."""
    space = problem.space
    length = within_reach(length, point.eta, slope, stride)
    direction = space.project(point.eta + length * slope) - point.eta
    for halving in range(HALVINGS):
        after = problem.at(point.eta + 0.5**halving * direction, point.theta)
        slope_after = problem.own(after) / space.metric
        if _wish(problem, after, slope_after) <= ceiling:
            break
    return after, slope_after


def _wish(problem: Bilevel, point: Point, slope: Floats) -> float:
    return float(np.abs(problem.space.project(point.eta + slope) - point.eta).max())
