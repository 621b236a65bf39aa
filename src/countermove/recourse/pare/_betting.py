r"""A test of the mean of values in [0, 1], by betting against it.

Under "the mean is at least :math:`\alpha`" the wealth
:math:`\prod_i (1 - \lambda_i (v_i - \alpha))`, with bets :math:`\lambda_i \ge 0` that look at
earlier people only, does not grow on average: that it ever exceeds :math:`1/p` has probability
at most :math:`p` (Ville). People are taken in random order, however the table is sorted.
"""

from __future__ import annotations

import numpy as np

from countermove._types import Floats
from countermove.certificates.intervals import mean_interval
from countermove.randomness import generator

BOLDEST = 0.9
"""Largest bet, as a share of what could be lost at once."""
REFERENCE = "fixed-sequence test by betting (Waudby-Smith and Ramdas 2024)"
BOUND_REFERENCE = "Maurer and Pontil (2009)"


def betting_p_values(values: Floats, mean: float) -> Floats:
    """Return p-values of "the mean is at least ``mean``", from values (t, n) to (t,)."""
    tests, n = values.shape
    order = generator(0, "order of the bets").permutation(n)
    wealth = most = np.zeros(tests)
    # Before anybody is seen the bet is that of a quarter of a person with the value zero.
    total, square, seen = np.full(tests, -0.25 * mean), np.full(tests, 0.25 * mean * mean), 0.25
    for i in order:
        below = -total / seen
        bet = np.clip(below / (square / seen), 0.0, BOLDEST / (1.0 - mean))
        excess = values[:, i] - mean
        wealth = wealth + np.log1p(-bet * excess)
        most = np.maximum(most, wealth)
        total, square, seen = total + excess, square + excess * excess, seen + 1.0
    p_values: Floats = np.exp(-most)
    return p_values


def upper_means(values: Floats, failure_probability: float) -> Floats:
    """Return upper bounds on the means of values (t, n) in [0, 1], each except with that chance."""
    if 2.0 * failure_probability >= 1.0 or values.shape[1] < 2:
        return np.ones(len(values))
    return np.array([mean_interval(row, 0.0, 1.0, 2.0 * failure_probability)[1] for row in values])
