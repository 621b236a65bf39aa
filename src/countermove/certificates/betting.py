r"""Tests of a mean of values in [0, 1], and of a share in clustered rows, by betting against it.

Under "the mean is at least :math:`\alpha`" the wealth
:math:`\prod_i (1 - \lambda_i (v_i - \alpha))`, with bets :math:`\lambda_i \ge 0` that look at
earlier people only, does not grow on average: that it ever exceeds :math:`1/p` has probability
at most :math:`p` (Ville). People, or clusters, are taken in random order, however the table is
sorted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.certificates import Assumption
from countermove.certificates.intervals import mean_interval
from countermove.randomness import generator

__all__ = [
    "betting_p_values",
    "clustered_interval",
    "fewest_clusters",
    "ratio_interval",
    "ratio_p_values",
    "together",
    "upper_means",
    "upper_ratios",
]

BOLDEST = 0.9
"""Largest bet, as a share of what could be lost at once."""
HALVINGS = 30
"""Steps of the bisection for an end of an interval: to nine digits."""
REFERENCE = "fixed-sequence test by betting (Waudby-Smith and Ramdas 2024)"
BOUND_REFERENCE = "Maurer and Pontil (2009)"
RATIOS: Floats = (np.arange(100, 0, -1) / 100.0) ** 2
"""Ratios tested one after the other for an upper bound, from 1 down, denser near 0."""


def betting_p_values(values: Floats, mean: float) -> Floats:
    """Return p-values of "the mean is at least ``mean``", from values (t, n) to (t,)."""
    tests, n = values.shape
    return _p_values(lambda i: values[:, i] - mean, n, np.full(tests, mean))


def ratio_p_values(sums: Floats, counts: Floats, most: int, ratio: float) -> Floats:
    r"""Return p-values of :math:`E[\text{sum}] \ge \text{ratio} \cdot E[\text{count}]`.

    Clusters are independent, their rows need not be: what is bet on is
    :math:`(\text{sum}_g - \text{ratio} \cdot \text{count}_g) / \text{most}`.

    Parameters
    ----------
    sums, counts
        Of each cluster, shape (t, clusters): the sum of values in [0, 1] over its rows, and
        how many rows these are, at most ``most``.
    """
    return betting_p_values(ratio + (sums - ratio * counts) / most, ratio)


def upper_ratios(sums: Floats, counts: Floats, most: int, failure_probability: float) -> Floats:
    """Return upper bounds on the ratios of `ratio_p_values`, shape (t,).

    `RATIOS` are tested in order, falling, up to the first that is not rejected: each bound
    fails with at most that probability.
    """
    # A share is at most 1 in any case; the others are tested.
    levels = RATIOS[1:, None]

    def excess(i: int) -> Floats:
        return np.asarray((sums[:, i] - levels * counts[:, i]) / most)

    found = _p_values(excess, sums.shape[1], np.broadcast_to(levels, (len(levels), len(sums))))
    rejected = np.logical_and.accumulate(found <= failure_probability, axis=0).sum(axis=0)
    bounds: Floats = RATIOS[rejected]
    return bounds


def ratio_interval(sums: Floats, counts: Floats, failure_probability: float) -> tuple[float, float]:
    r"""Return an interval of :math:`E[\text{sum}] / E[\text{count}]`, at every number of clusters.

    Clusters are as in `ratio_p_values`, of one test, shape (clusters,); ``most`` is the largest
    count. Counts of one make it the interval of a mean. Each end bets half of the probability,
    with bets of the size that :math:`n` clusters of the variance seen so far call for
    (Waudby-Smith and Ramdas 2024, without their choice of the bet by the mean tested).
    """
    order = generator(0, "order of the bets").permutation(len(sums))
    counted = counts[order] / counts.max()
    hits = sums[order] / counts.max()
    half = 0.5 * failure_probability
    return _lower_ratio(hits, counted, half), 1.0 - _lower_ratio(counted - hits, counted, half)


def clustered_interval(
    values: Floats | Mask, clusters: NDArray[Any], failure_probability: float
) -> tuple[float, float]:
    """Return an interval of the mean of values in [0, 1] whose rows belong to clusters."""
    _, codes = np.unique(clusters.astype(str), return_inverse=True)
    sums: Floats = np.bincount(codes, values).astype(np.float64)
    counts: Floats = np.bincount(codes).astype(np.float64)
    return ratio_interval(sums, counts, failure_probability)


def together(clusters: NDArray[Any]) -> Assumption:
    """Return what a claim about clustered rows rests on, in place of independent rows."""
    _, sizes = np.unique(clusters.astype(str), return_counts=True)
    return Assumption(
        f"clusters ({len(sizes):,}) are independent draws, rows of one cluster need not be; no "
        f"cluster has more than {sizes.max()} rows"
    )


def _lower_ratio(hits: Floats, counts: Floats, failure_probability: float) -> float:
    n, needed = len(hits), -math.log(failure_probability)
    before = np.arange(n)
    # A bet looks at earlier clusters only; before any the ratio is a half.
    seen, total = np.cumsum(counts) - counts, np.cumsum(hits) - hits
    square = (hits - (total + 0.5) / (seen + 1.0) * counts) ** 2
    variance = (0.25 + np.cumsum(square) - square) / (before + 1.0)
    bet = np.sqrt(2.0 * needed / (n * variance))

    def rejected(ratio: float) -> bool:
        gains = np.minimum(bet, BOLDEST / ratio) * (hits - ratio * counts)
        return bool(np.cumsum(np.log1p(gains)).max() >= needed)

    # The wealth falls as the ratio rises, so that bisection finds where it stops being enough.
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if rejected(middle) else (low, middle)
    return low


def _p_values(excess: Callable[[int], Floats], n: int, mean: Floats) -> Floats:
    """Return the p-values of tests whose i-th excesses over ``mean`` a function tells."""
    order = generator(0, "order of the bets").permutation(n)
    wealth = most = np.zeros(mean.shape)
    # Before anybody is seen the bet is that of a quarter of a person with the value zero.
    total, square, seen = -0.25 * mean, 0.25 * mean * mean, 0.25
    largest = BOLDEST / (1.0 - mean)
    for i in order:
        below = -total / seen
        bet = np.clip(below / (square / seen), 0.0, largest)
        gone = excess(int(i))
        wealth = wealth + np.log1p(-bet * gone)
        most = np.maximum(most, wealth)
        total, square, seen = total + gone, square + gone * gone, seen + 1.0
    p_values: Floats = np.exp(-most)
    return p_values


def fewest_clusters(ratio: float, failure_probability: float) -> int:
    """Return how many full clusters without one miss reject a ratio; of smaller ones it is more."""
    grown = math.log1p(BOLDEST * ratio / (1.0 - ratio))
    return math.ceil(-math.log(failure_probability) / grown)


def upper_means(values: Floats, failure_probability: float) -> Floats:
    """Return upper bounds on the means of values (t, n) in [0, 1], each except with that chance."""
    if 2.0 * failure_probability >= 1.0 or values.shape[1] < 2:
        return np.ones(len(values))
    return np.array([mean_interval(row, 0.0, 1.0, 2.0 * failure_probability)[1] for row in values])
