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

import numpy as np

from countermove._types import Floats
from countermove.certificates.intervals import mean_interval
from countermove.randomness import generator

__all__ = [
    "betting_p_values",
    "fewest_clusters",
    "ratio_p_values",
    "upper_means",
    "upper_ratios",
]

BOLDEST = 0.9
"""Largest bet, as a share of what could be lost at once."""
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
