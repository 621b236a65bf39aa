"""The nearest point of two convex sets at once, from the projections onto each (Dykstra, 1983)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from countermove._types import Floats
from countermove.errors import NotConvergedError

TOLERANCE = 1e-9
"""A sweep that moves no entry by more than this share of one more than the largest ends it."""
SWEEPS = 5_000


def project_to_both(
    point: Floats, first: Callable[[Floats], Floats], second: Callable[[Floats], Floats]
) -> Floats:
    """Return the point of both sets nearest to ``point``; the second set holds exactly.

    Raises
    ------
    NotConvergedError
        If the projections do not settle, as where the sets do not meet.
    """
    at = np.asarray(point, dtype=np.float64)
    left_first, left_second = np.zeros_like(at), np.zeros_like(at)
    for _ in range(SWEEPS):
        inside = first(at + left_first)
        left_first += at - inside
        there = second(inside + left_second)
        left_second += inside - there
        moved = float(np.abs(there - at).max(initial=0.0))
        apart = float(np.abs(there - inside).max(initial=0.0))
        at = there
        size = TOLERANCE * (1.0 + float(np.abs(at).max(initial=0.0)))
        if moved <= size and apart <= 1e3 * size:
            return at
    raise NotConvergedError(
        f"no nearest move within both the ball and the constraints after {SWEEPS} sweeps; they may "
        "hardly meet: widen the ball or the constraints"
    )
