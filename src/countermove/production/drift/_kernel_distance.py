r"""How far apart two tables are as a whole: a kernel distance with an exact permutation test.

Random Fourier features :math:`\phi` turn the squared kernel distance (MMD) of two samples into
:math:`\|\bar\phi_1 - \bar\phi_2\|^2`: linear in the rows, so that a thousand permutations are one
product of matrices. All features together form one block, the deployed score another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats

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
