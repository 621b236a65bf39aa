"""What the solvers say about everybody."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats


@dataclass(frozen=True)
class Answer:
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
    def empty(cls, n: int, out: Floats) -> Answer:
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
