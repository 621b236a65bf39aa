"""From the kernel's row codes to errors that name the people."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from countermove.errors import DataError, UnboundedResponseError, shown
from countermove.people.actions import infeasible
from countermove.response.trade import Trade

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
    rows: NDArray[np.float64], status: NDArray[np.int64], trade: Trade
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
        free = np.flatnonzero((trade.slope != 0.0) | (trade.kink != 0.0))
        raise UnboundedResponseError(
            "a linear cost lets people move without end: some combination of features "
            f"{shown(free)} raises the score at no cost, so no best response exists for the "
            f"people in rows {shown(runaway)}. Bound the actions (lower, upper, min_value, "
            "max_value) of those features, or add a quadratic part (MixtureCost)",
            rows=runaway,
        )
    converged: NDArray[np.bool_] = status != NOT_CONVERGED
    return converged
