r"""Tests of two samples: one column, all columns together, and labels given the score.

*Columns* (Kolmogorov and Smirnov): given the pooled values, every choice of who is "new" is as
likely as any other; the chance of the walk between the two distribution functions to stray that far
is summed up exactly, looked at only where a group of equal values ends. *Together*: random Fourier
features :math:`\phi` turn the squared kernel distance into
:math:`\|\bar\phi_1 - \bar\phi_2\|^2`, linear in the rows, with an exact permutation test.
*Labels*: in a stratum of equal scores who is new is a draw without replacement.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.certificates.intervals import share_interval

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


Singles = NDArray[np.float32]

FREQUENCIES = 32
"""Random frequencies per width of the kernel in the block of all features."""
SCORE_FREQUENCIES = 16
"""The same for the score, which is one number."""
WIDTHS = (0.5, 1.0, 2.0)
"""Widths of the Gaussian kernels, in medians of the distance between people."""
SCORE_WIDTHS = (0.1, 0.3, 1.0)
"""Narrower for the score: people who stop on the boundary make a narrow heap."""
PAIRS = 2_000
"""Pairs of people whose median distance sets the widths."""
BATCH = 250
"""Permutations at a time: their choice of rows is held in memory."""


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """Random Fourier features of all columns (features, and the score last) in units of spread.

    ``frequencies`` has shape (d + 1, k), ``centre`` and ``spread`` shape (d + 1,); ``blocks``
    says to which block a frequency belongs.
    """

    frequencies: Floats
    centre: Floats
    spread: Floats
    blocks: NDArray[np.intp]

    def __call__(self, columns: Floats) -> Singles:
        """Return cosines and sines, shape (n, 2 k), all blocks of equal size."""
        rows = ((columns - self.centre) / self.spread).astype(np.float32)
        angles = rows @ self.frequencies.astype(np.float32)
        mapped: Singles = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
        number = np.bincount(self.blocks)[self.blocks]
        mapped /= np.sqrt(np.tile(number, 2)).astype(np.float32)
        return mapped


def feature_map(columns: Floats, rng: np.random.Generator) -> FeatureMap:
    """Draw the features for a pooled table: the widths must not know which row is from where."""
    spread = spread_of(columns)
    centre = columns.mean(axis=0)
    pairs = rng.integers(0, len(columns), size=(2, PAIRS))
    apart = (columns[pairs[0]] - columns[pairs[1]]) / spread
    d = columns.shape[1] - 1
    parts, blocks = [], []
    for block, (rows, widths, number) in enumerate(
        (
            (slice(0, d), WIDTHS, FREQUENCIES),
            (slice(d, d + 1), SCORE_WIDTHS, SCORE_FREQUENCIES),
        )
    ):
        typical = float(np.median(np.linalg.norm(apart[:, rows], axis=1))) or 1.0
        for width in widths:
            drawn = np.zeros((d + 1, number))
            drawn[rows] = rng.standard_normal(drawn[rows].shape) / (width * typical)
            parts.append(drawn)
            blocks += [block] * number
    return FeatureMap(np.hstack(parts), centre, spread, np.asarray(blocks, dtype=np.intp))


def spread_of(columns: Floats) -> Floats:
    """Return standard deviations; a column that never varies counts as it is."""
    spread: Floats = columns.std(axis=0)
    return np.where(spread > 0.0, spread, 1.0)


def permutation_test(
    one: Singles, other: Singles, permutations: int, rng: np.random.Generator
) -> float:
    r"""Return the p-value of the kernel distance between two samples of mapped rows.

    .. math:: p = \frac{1 + \#\{b : T_b \ge T\}}{1 + B}, \qquad T = \|\bar\phi_1 - \bar\phi_2\|^2

    valid at every level if the rows are exchangeable (Phipson and Smyth, 2010).
    """
    pooled = np.concatenate([one, other])
    pooled -= pooled.mean(axis=0, dtype=np.float64).astype(np.float32)
    total, small = len(pooled), min(len(one), len(other))
    # The sum over the smaller sample tells the difference of means: the sum over both is zero.
    chosen = np.arange(small) if len(one) == small else np.arange(len(one), total)
    found = float(_sizes(_sums(pooled, [chosen]))[0])
    beaten = 0
    for start in range(0, permutations, BATCH):
        number = min(BATCH, permutations - start)
        drawn = [rng.choice(total, small, replace=False, shuffle=False) for _ in range(number)]
        # Single precision: equal up to rounding counts as equal.
        beaten += int(np.sum(_sizes(_sums(pooled, drawn)) >= found * (1.0 - 1e-5)))
    return (1.0 + beaten) / (1.0 + permutations)


def squared_distance(one: Singles, other: Singles) -> float:
    r"""Return the unbiased squared kernel distance; below zero by chance where there is none.

    .. math:: \|\bar\phi_1 - \bar\phi_2\|^2 - \operatorname{tr} \Sigma_1 / n
        - \operatorname{tr} \Sigma_2 / m
    """
    apart = one.mean(axis=0, dtype=np.float64) - other.mean(axis=0, dtype=np.float64)
    return float(apart @ apart) - noise_of(one) - noise_of(other)


def noise_of(mapped: Singles) -> float:
    """Return the expected squared error of a sample's mean."""
    return float(mapped.var(axis=0, dtype=np.float64, ddof=1).sum()) / len(mapped)


def _sums(pooled: Singles, chosen: list[NDArray[np.int64]]) -> Singles:
    """Return the sums over every choice of rows."""
    marks = np.zeros((len(chosen), len(pooled)), dtype=np.float32)
    for mark, rows in zip(marks, chosen, strict=True):
        mark[rows] = 1.0
    return marks @ pooled


def _sizes(sums: Singles) -> Floats:
    result: Floats = np.einsum("ij,ij->i", sums, sums, dtype=np.float64)
    return result


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
