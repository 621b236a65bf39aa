r"""Do labels still go with the score as before? A stratified test of P(y | score).

Within a stratum of equal scores, and given how many labels are favourable there, which rows are
the new ones is a draw without replacement: the null distribution is hypergeometric, exactly.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.certificates.intervals import share_interval

STRATA = 20
"""Groups of equal size by score; people on the boundary are a group of their own."""
LEAST = 20
"""Labelled rows of a table below which nothing is said about labels."""


@dataclass(frozen=True)
class LabelTest:
    """Whether P(y | score) changed.

    ``intercept`` and ``slope`` are standard deviations by which favourable labels are more
    frequent than expected, and more so at high scores; errors are shares judged wrongly by
    the deployed rule, each with its interval.
    """

    p_value: float
    intercept: float
    slope: float
    error_expected: tuple[float, float, float]
    error_observed: tuple[float, float, float]
    n: int

    def to_json(self) -> dict[str, Any]:
        """Return the test, JSON-ready."""
        return asdict(self)


def label_test(
    expected: tuple[Floats, Floats],
    observed: tuple[Floats, Floats],
    at_boundary: float,
    permutations: int,
    level: float,
    rng: np.random.Generator,
) -> LabelTest | None:
    r"""Test whether labels given the score are those expected.

    With :math:`a_k` favourable new rows in stratum k, :math:`e_k, v_k` their hypergeometric mean
    and variance, and :math:`c_k` the stratum's centred rank,

    .. math:: T = \frac{(\sum_k a_k - e_k)^2}{\sum_k v_k}
        + \frac{(\sum_k c_k (a_k - e_k))^2}{\sum_k c_k^2 v_k} .
    """
    expected, observed = _known(*expected), _known(*observed)
    if min(len(expected[0]), len(observed[0])) < LEAST:
        return None
    p_value, (intercept, slope) = _stratified(
        _tables(expected, observed, at_boundary), permutations, rng
    )
    return LabelTest(
        p_value,
        intercept,
        slope,
        error_expected=_error(*expected, level),
        error_observed=_error(*observed, level),
        n=len(observed[0]),
    )


def _stratified(
    tables: NDArray[np.int64], permutations: int, rng: np.random.Generator
) -> tuple[float, list[float]]:
    """Return the p-value, and intercept and slope in standard deviations."""
    good, new, size, good_new = tables.T
    mean = good * new / size
    variance = mean * (size - good) * (size - new) / (size * np.maximum(size - 1, 1))
    rank = np.linspace(-1.0, 1.0, len(size))
    # Centred by the strata's weight, so that intercept and slope are uncorrelated.
    rank = rank - float(rank @ variance) / max(float(variance.sum()), 1e-300)
    spread = np.sqrt(np.maximum([variance.sum(), rank**2 @ variance], 1e-300))

    def scores(counts: NDArray[np.int64]) -> Floats:
        off = counts - mean
        result: Floats = np.stack([off.sum(axis=-1), off @ rank], axis=-1) / spread
        return result

    found = scores(good_new)
    drawn = rng.hypergeometric(good, size - good, new, size=(permutations, len(size)))
    beaten = (scores(drawn) ** 2).sum(axis=1) >= float(found @ found) * (1.0 - 1e-9)
    return (1.0 + float(beaten.sum())) / (1.0 + permutations), found.tolist()


def _known(score: Floats, y: Floats) -> tuple[Floats, Floats]:
    there = np.isfinite(y)
    return score[there], y[there]


def _tables(
    expected: tuple[Floats, Floats], observed: tuple[Floats, Floats], at_boundary: float
) -> NDArray[np.int64]:
    """Return favourable, new, all, and favourable new rows of every stratum, by rising score."""
    score = np.concatenate([expected[0], observed[0]])
    good = np.concatenate([expected[1], observed[1]]) > 0.0
    new = np.arange(len(score)) >= len(expected[0])
    cuts = np.quantile(score, np.linspace(0.0, 1.0, STRATA + 1)[1:-1])
    cuts = np.concatenate([cuts[np.abs(cuts) > at_boundary], [-at_boundary, at_boundary]])
    stratum = np.searchsorted(np.unique(cuts), score)
    counts = [
        np.bincount(stratum, weights=what, minlength=int(stratum.max()) + 1)
        for what in (good, new, np.ones(len(score)), good & new)
    ]
    table = np.stack(counts, axis=1).astype(np.int64)
    return table[table[:, 2] > 0]


def _error(score: Floats, y: Floats, level: float) -> tuple[float, float, float]:
    wrong = int(np.sum((score >= 0.0) != (y > 0.0)))
    low, high = share_interval(wrong, len(y), level)
    return wrong / len(y), float(low), float(high)
