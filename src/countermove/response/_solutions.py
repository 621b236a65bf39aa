"""What the solvers found for everybody, and the errors that name those they found nothing for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.errors import DataError, UnboundedResponseError, shown
from countermove.people.actions import infeasible
from countermove.response._reduction import KernelArrays

FINE, NOT_FINITE, INFEASIBLE, NOT_CONVERGED, UNBOUNDED, STOPPED = range(6)
"""How a row ended; ``STOPPED`` rows met a bound and wait for their polyline."""


@dataclass(frozen=True)
class RowSolutions:
    """What the solvers found, one row per person."""

    out: Floats  # the action, or where it leads, (n, d); (0, d) if not asked for
    price: Floats  # of score there, zero for those who stay
    multiplier: Floats  # of the cost's kink, in [0, 1]
    cost: Floats
    favoured: Mask  # the decision afterwards (hard step only)
    crossed: Mask  # who crossed the boundary for it (hard step only)
    moved: Mask
    status: NDArray[np.int64]  # how the row ended, see above

    @classmethod
    def empty(cls, n: int, out: Floats) -> RowSolutions:
        """Allocate the solutions of ``n`` people around an output array."""
        price, multiplier, cost = (np.zeros(n) for _ in range(3))
        favoured, crossed, moved = (np.zeros(n, dtype=bool) for _ in range(3))
        status = np.zeros(n, dtype=np.int64)
        return cls(out, price, multiplier, cost, favoured, crossed, moved, status)


def raise_not_finite(rows: Floats, scores: Floats) -> None:
    """Raise with the people whose features or score are NaN or infinite."""
    # A score is a sum over all features, so it is finite only if they are.
    bad = np.flatnonzero(~np.isfinite(scores))
    if not bad.size:
        return
    inside = ~np.isfinite(rows[bad]).all(axis=1)
    if inside.any():
        who = bad[inside]
        raise DataError(
            f"the features of the people in rows {shown(who)} hold NaN or infinity; "
            "clean or drop them first",
            rows=who,
        )
    raise DataError(
        f"the score is NaN or infinite for the people in rows {shown(bad)}; check its weights",
        rows=bad,
    )


def raise_failures(rows: Floats, status: NDArray[np.int64], arrays: KernelArrays) -> Mask:
    """Raise for bad input, impossible actions and runaway responses; return who converged."""
    if not status.any():
        return np.ones(len(status), dtype=bool)
    raise_not_finite(rows, np.where(status == NOT_FINITE, np.nan, 0.0))
    blocked = np.flatnonzero(status == INFEASIBLE)
    if blocked.size:
        raise infeasible(blocked)
    runaway = np.flatnonzero(status == UNBOUNDED)
    if runaway.size:
        free = np.flatnonzero((arrays.slope != 0.0) | (arrays.kink != 0.0))
        raise UnboundedResponseError(
            "a linear cost lets people move without end: some combination of features "
            f"{shown(free)} raises the score at no cost, so no best response exists for the "
            f"people in rows {shown(runaway)}. Bound the actions (lower, upper, min_value, "
            "max_value) of those features, or add a quadratic part (MixtureCost)",
            rows=runaway,
        )
    converged: Mask = status != NOT_CONVERGED
    return converged
