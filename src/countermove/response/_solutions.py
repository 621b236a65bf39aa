"""From the kernel's row codes to errors that name the people."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.errors import DataError, UnboundedResponseError, shown
from countermove.people.actions import infeasible
from countermove.response._reduction import KernelArrays

FINE, NOT_FINITE, INFEASIBLE, NOT_CONVERGED, UNBOUNDED, STOPPED = range(6)
"""How a row ended; ``STOPPED`` rows met a bound and wait for their polyline."""


def raise_not_finite(rows: NDArray[np.float64], scores: NDArray[np.float64]) -> None:
    """Raise with the people whose features or score are NaN or infinite.

    A score is a sum over all features, so it is finite only if they are.
    """
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


def raise_failures(
    rows: NDArray[np.float64], status: NDArray[np.int64], arrays: KernelArrays
) -> NDArray[np.bool_]:
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
    converged: NDArray[np.bool_] = status != NOT_CONVERGED
    return converged


@dataclass(frozen=True)
class RowSolutions:
    """One row per person.

    Parameters
    ----------
    out
        The action, or the place it leads to, shape (n, d); (0, d) if nobody asked.
    price
        The price of score at the answer, zero for those who stay.
    multiplier
        The multiplier of the cost's kink, in [0, 1].
    cost
        What the move costs.
    favoured
        The decision afterwards (hard answers only).
    crossed
        Who crossed the boundary to get it (hard answers only).
    moved
        Who moved at all.
    status
        How the row ended (see `failures`).
    """

    out: Floats
    price: Floats
    multiplier: Floats
    cost: Floats
    favoured: NDArray[np.bool_]
    crossed: NDArray[np.bool_]
    moved: NDArray[np.bool_]
    status: NDArray[np.int64]

    @classmethod
    def empty(cls, n: int, out: Floats) -> RowSolutions:
        """Allocate an answer for ``n`` people around an output array."""
        return cls(
            out,
            np.zeros(n),
            np.zeros(n),
            np.zeros(n),
            np.zeros(n, dtype=bool),
            np.zeros(n, dtype=bool),
            np.zeros(n, dtype=bool),
            np.zeros(n, dtype=np.int64),
        )
