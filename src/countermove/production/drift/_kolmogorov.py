r"""Kolmogorov and Smirnov's test of two samples, exact also where people stand on one point.

Given the pooled values, every choice of who is "new" is as likely as any other. The
distance of the two distribution functions is then a walk whose chance to stray that far is
summed up exactly, looked at only where a group of equal values ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats

Integers = NDArray[np.int64]

NEGLIGIBLE = 1e-18
"""Probability of a place in the walk below which it is no longer followed, but counted."""


@dataclass(frozen=True)
class KolmogorovResult:
    """Largest distance of two distribution functions, and its exact p-value."""

    distance: float
    p_value: float


def snapped(columns: Floats, spread: Floats, resolution: float) -> Integers:
    """Return values in whole steps of ``resolution`` times the spread; what rounds alike is equal.

    Zero is the middle of a step, so that people on the boundary of a score stay together.
    """
    steps: Integers = np.rint(columns / (resolution * spread)).astype(np.int64)
    return steps


def kolmogorov_test(one: NDArray[Any], other: NDArray[Any]) -> KolmogorovResult:
    r"""Test whether two samples come from one distribution.

    .. math:: D = \sup_t |F_n(t) - G_m(t)|, \qquad
              p = P\bigl(D' \ge D \mid \text{pooled values}\bigr)
    """
    n, m = len(one), len(other)
    values = np.concatenate([one, other])
    order = np.argsort(values, kind="stable")
    arranged = values[order]
    ends = np.flatnonzero(np.append(arranged[1:] != arranged[:-1], True)) + 1
    first = np.cumsum(order < n)[ends - 1]
    # Whole numbers, n m times the distance: comparisons are exact.
    gaps = np.abs(first * np.int64(m) - (ends - first) * np.int64(n))
    largest = int(gaps.max())
    if largest == 0:
        return KolmogorovResult(0.0, 1.0)
    p = float(_kernel()(ends.astype(np.int64), n, m, largest))
    return KolmogorovResult(largest / (n * m), min(p, 1.0))


def chance_to_stray(ends: Integers, n: int, m: int, largest: int) -> float:
    """Return the chance that a random walk strays at least that far at the end of a group."""
    mass = np.zeros(n + 2)
    mass[0] = 1.0
    low, high, place, gone = 0, 0, 0, 0.0
    for end in ends:
        while place < end:
            # The next of the pooled rows is one of the first sample's, or not.
            rest = 1.0 / (n + m - place)
            for j in range(high, low - 1, -1):
                mass[j + 1] += mass[j] * (n - j) * rest
                mass[j] *= (m - place + j) * rest
            high = min(high + 1, n)
            place += 1
            # What is hardly ever reached counts as strayed: the p-value is never too small.
            while low < high and mass[low] < NEGLIGIBLE:
                gone += mass[low]
                low += 1
            while high > low and mass[high] < NEGLIGIBLE:
                gone += mass[high]
                mass[high] = 0.0
                high -= 1
        for j in range(low, high + 1):
            if abs(j * m - (place - j) * n) >= largest:
                gone += mass[j]
                mass[j] = 0.0
    return gone


@cache
def _kernel() -> Any:
    import numba

    return numba.njit(cache=True, error_model="numpy", nogil=True)(chance_to_stray)
