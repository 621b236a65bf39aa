"""Columns that give the outcome away.

A column that separates the two outcomes without a single error is rarely a
feature: more often it was recorded afterwards, or is the outcome in other words.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from numpy.typing import NDArray

CHANCE = 1e-4
"""A separation that a shuffled outcome would show more often than this proves nothing."""

ROWS_PER_WORD = 5
"""Words that are rarer than this on average could separate anything."""


def gives_away(values: pd.Series, favourable: NDArray[np.bool_]) -> bool:
    r"""Return whether a column separates the outcomes perfectly, beyond chance.

    Numbers by one threshold, words by their value. Under a shuffled outcome, n
    rows with k of the rarer outcome are separated by a threshold with probability

    .. math:: 2 / \binom{n}{k}

    Parameters
    ----------
    values
        Numbers or words; rows without a value do not count.
    favourable
        The outcome, one per row.
    """
    present = values.notna().to_numpy(np.bool_)
    good = favourable[present]
    n, rare = len(good), int(min(good.sum(), (~good).sum()))
    if not rare or math.log(2) - _log_binomial(n, rare) > math.log(CHANCE):
        return False
    if not pd.api.types.is_numeric_dtype(values.dtype):
        words = values[present]
        pure = pd.Series(good).groupby(words.to_numpy(object)).nunique().max() == 1
        return bool(pure) and words.nunique() * ROWS_PER_WORD <= n
    numbers = values[present].to_numpy(np.float64)
    high, low = numbers[good], numbers[~good]
    return bool(low.max() < high.min() or high.max() < low.min())


def _log_binomial(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
