r"""Importance weights: on cells of (score bin, label), and for reweighted training (App. D).

A rule's mistakes are constant on cells that have its threshold on a bin edge, so the
identity Err_D = E_S[w e] holds with the cells' weights, and their variance is never above
that of weights on the features.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from countermove._types import Floats
from countermove.certificates.intervals import lower_share, share_interval
from countermove.errors import DataError, ParameterError, shown
from countermove.transfer.sample import Pair, Sample

LEAST = 30
"""Rows a cell should have where its bins are chosen: below, an interval says little."""


@dataclass(frozen=True, eq=False)
class CellWeights:
    """Shares of the cells before and after, shape (bins, 2); column 1 holds label +1."""

    edges: Floats
    source: Floats
    induced: Floats

    @property
    def outside(self) -> float:
        """Share of the induced people in cells without source people: weights miss them."""
        return float(self.induced[self.source == 0.0].sum())

    @property
    def ratio(self) -> Floats:
        """The weights, 0 where nobody ever is; refused where people leave the support."""
        if self.outside > 0.0:
            raise DataError(
                f"{self.outside:.2%} of the induced people stand in cells of (score bin, label) "
                "without source people: they have no weight, and the bounds of Section 4 "
                "(Theorem 4.2) drop out; use fewer bins, or the bounds of Section 3"
            )
        here = self.source > 0.0
        return np.divide(self.induced, self.source, out=np.zeros_like(self.source), where=here)

    @property
    def variance(self) -> float | None:
        """Variance of the weights over the source; None where people leave its support."""
        if self.outside > 0.0:
            return None
        here = self.source > 0.0
        return float(np.sum((self.induced - self.source)[here] ** 2 / self.source[here]))


def score_edges(sample: Sample, bins: int = 6, threshold: float = 0.0) -> Floats:
    """Return bin edges with the threshold among them: quantiles on either side of it."""
    # As many as leave every cell at least LEAST rows. The sample is of other people than those the
    # weights are computed for: a bound that holds from n rows needs bins fixed beforehand.
    if bins < 2:
        raise ParameterError(f"bins must be at least 2, one on either side, got {bins}")
    above = sample.accepted(threshold)
    if above.all() or not above.any():
        raise ParameterError(
            f"threshold {threshold:g} lies outside the range of the scores, "
            f"{sample.score.min():g} to {sample.score.max():g}; expected people on either side"
        )
    parts = [_inner_edges(sample.of_rows(side), bins // 2) for side in (~above, above)]
    return np.concatenate([parts[0], [threshold], parts[1]])


def cell_weights(pair: Pair, edges: Floats) -> CellWeights:
    """Return the shares of every cell before and after."""
    shares = [cell_shares(sample, edges) for sample in (pair.source, pair.induced)]
    return CellWeights(edges, shares[0], shares[1])


def cell_shares(sample: Sample, edges: Floats) -> Floats:
    """Return the share of every cell, shape (bins, 2)."""
    counts = np.bincount(_cells(sample, edges), sample.weight, 2 * len(edges) + 2)
    shares: Floats = counts.reshape(-1, 2) / counts.sum()
    return shares


def variance_upper(pair: Pair, edges: Floats, failure_probability: float) -> float:
    """Return a bound on the variance of the weights from n draws; infinite if a cell is empty."""
    # Var w = sum (q_c - p_c)^2 / p_c; every term gets Clopper-Pearson intervals, the failure
    # probability divided among all. Of paired people only those who change their cell count.
    before, after = _cells(pair.source, edges), _cells(pair.induced, edges)
    cells = 2 * len(edges) + 2
    each = failure_probability / (3 * cells)
    counts = np.bincount(before, minlength=cells)
    least = lower_share(counts, pair.source.n, each)
    if pair.paired:
        changed = before != after
        came = np.bincount(after[changed], minlength=cells)
        left = np.bincount(before[changed], minlength=cells)
        ends = [share_interval(count, pair.n, each) for count in (came, left)]
    else:
        came = np.bincount(after, minlength=cells)
        ends = [
            share_interval(count, n, each)
            for count, n in ((came, pair.induced.n), (counts, pair.source.n))
        ]
    (gained_low, gained_high), (lost_low, lost_high) = ends
    apart = np.maximum(gained_high - lost_low, lost_high - gained_low)
    if np.any(least <= 0.0):
        return float("inf")
    return float(np.sum(apart**2 / least))


def _cells(sample: Sample, edges: Floats) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    return 2 * np.searchsorted(edges, sample.score, "right") + sample.favourable


def _inner_edges(side: Sample, bins: int) -> Floats:
    """Return quantiles that cut one side into at most so many bins with enough rows each."""
    for parts in range(max(bins, 1), 1, -1):
        edges = np.unique(np.quantile(side.score, np.arange(1, parts) / parts))
        if np.bincount(_cells(side, edges), minlength=2 * len(edges) + 2).min() >= LEAST:
            return np.asarray(edges, dtype=np.float64)
    return np.empty(0)


@dataclass(frozen=True)
class ReweightedMinimum:
    """The candidate with the smallest reweighted loss."""

    index: int  # of the candidate
    risks: Floats  # reweighted losses of all candidates, shape (m,)


def reweighted_erm(weights: Floats, losses: Floats) -> ReweightedMinimum:
    r"""Return which candidate rule has the smallest loss on the people it would induce.

    :math:`E_{D(h)}[\ell] = E_S[w(h)\,\ell(h)]`, so every candidate is judged on source rows.

    Parameters
    ----------
    weights
        :math:`w_{x_i}(h_j)`, not negative, shape (m, n): candidates by rows.
    losses
        :math:`\ell(h_j; x_i, y_i)`, shape (m, n).
    """
    weights, losses = np.asarray(weights, np.float64), np.asarray(losses, np.float64)
    if weights.shape != losses.shape or weights.ndim != 2:
        raise ParameterError(
            "weights and losses must both have shape (candidates, rows), got "
            f"{weights.shape} and {losses.shape}"
        )
    wrong = np.argwhere(~(np.isfinite(weights) & (weights >= 0.0)))
    if len(wrong):
        listed = shown(f"candidate {j}, row {i} ({weights[j, i]:g})" for j, i in wrong)
        raise DataError(
            f"weights must be finite and not negative, not so for {listed}", rows=wrong[:, 1]
        )
    nobody = np.flatnonzero(~weights.any(axis=1))
    if nobody.size:
        raise DataError(
            f"all weights of candidate(s) {shown(nobody)} are 0: the people they induce are "
            "nowhere among the source rows"
        )
    risks = (weights * losses).mean(axis=1)
    return ReweightedMinimum(int(np.argmin(risks)), risks)
