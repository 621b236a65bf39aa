"""Shares, rates and changes with the intervals that n draws leave them; divergences of samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from countermove._types import Floats, Mask
from countermove.certificates.betting import clustered_interval
from countermove.certificates.intervals import distribution_function_radius, share_interval
from countermove.errors import DataError, NotEnoughRowsError, ParameterError
from countermove.transfer.sample import Pair, Sample


@dataclass(frozen=True)
class Range:
    """A plug-in value, and where the population's lies but for the failure probability."""

    value: float
    low: float
    high: float

    def magnitude(self) -> Range:
        """Return the range of the absolute value."""
        least = max(self.low, -self.high, 0.0)
        return Range(abs(self.value), least, max(abs(self.low), abs(self.high)))

    def spread(self) -> Range:
        """Return the range of e (1 - e), largest at one half."""
        ends = [e * (1.0 - e) for e in (self.low, self.high)]
        most = 0.25 if self.low <= 0.5 <= self.high else max(ends)
        return Range(self.value * (1.0 - self.value), min(ends), most)

    def plus(self, other: Range) -> Range:
        """Return the range of a sum."""
        return Range(self.value + other.value, self.low + other.low, self.high + other.high)

    def minus(self, other: Range) -> Range:
        """Return the range of a difference."""
        return Range(self.value - other.value, self.low - other.high, self.high - other.low)


def share_range(sample: Sample, among: Mask, failure_probability: float) -> Range:
    """Return the share of the rows for which something holds (Clopper and Pearson).

    Of rows in clusters the ends are bet on clusters as units.
    """
    # Of weighted rows the ends are approximate; they serve to doubt assumptions, not to certify.
    share = sample.share(among)
    if sample.clusters is not None and sample.weight is None:
        return Range(share, *clustered_interval(among, sample.clusters, failure_probability))
    low, high = share_interval(*_count(sample, share), failure_probability)
    return Range(share, float(low), float(high))


def rate_range(sample: Sample, among: Mask, label: int, failure_probability: float) -> Range:
    """Return the share among the people with a label, given how many they are."""
    given = sample.label == label
    if not given.any():
        raise NotEnoughRowsError(f"no row has label {label:+d}; a rate needs at least one such row")
    return share_range(sample.of_rows(given), among[given], failure_probability)


def change_range(pair: Pair, before: Mask, after: Mask, failure_probability: float) -> Range:
    """Return the share after minus the share before; each of two shares may fail by half."""
    half = 0.5 * failure_probability
    # Of paired people only those who change count.
    if pair.paired and not pair.weighted:
        gained, lost = (
            share_range(pair.source, mask, half) for mask in (after & ~before, before & ~after)
        )
        return gained.minus(lost)
    first, second = share_range(pair.source, before, half), share_range(pair.induced, after, half)
    return second.minus(first)


def contrast_range(
    sample: Sample, one: Mask, other: Mask, failure_probability: float, label: int | None = None
) -> Range:
    """Return the share of one mask minus that of another on the same rows, of a class if asked."""
    half = 0.5 * failure_probability
    if label is None:
        parts = [share_range(sample, mask, half) for mask in (one & ~other, other & ~one)]
    else:
        parts = [rate_range(sample, mask, label, half) for mask in (one & ~other, other & ~one)]
    return parts[0].minus(parts[1])


def _count(sample: Sample, share: float) -> tuple[int, int]:
    """Return how many of how many draws the share stands for."""
    n = sample.n if sample.weight is None else max(1, round(sample.effective_n))
    return round(share * n), n


def threshold_divergence(one: Sample, other: Sample) -> float:
    """Return the H∆H-divergence for thresholds on the score: twice Kuiper's statistic."""
    # Two thresholds disagree on an interval of scores, so d = 2 (sup (F - G) - inf (F - G)).
    gap = _gaps(one, other)
    return float(2.0 * (gap.max() - gap.min()))


def kolmogorov_distance(one: Sample, other: Sample) -> float:
    r"""Return :math:`\sup_t |F(t) - G(t)|` of the two score distributions."""
    return float(np.abs(_gaps(one, other)).max())


def threshold_divergence_upper(one: Sample, other: Sample, failure_probability: float) -> float:
    """Return a bound the true divergence exceeds with at most the failure probability."""
    # Both distribution functions stay within a band (Dvoretzky, Kiefer, Wolfowitz), each with half
    # of the probability; the supremum and the infimum move by both bands.
    half = 0.5 * failure_probability
    bands = sum(distribution_function_radius(sample.n, half) for sample in (one, other))
    return min(2.0, threshold_divergence(one, other) + 4.0 * bands)


def linear_divergence_estimate(one: Floats, other: Floats, paired: bool) -> float:
    """Return a *lower estimate* of the H∆H-divergence for linear rules, 2 (1 - 2 error)."""
    # The error is that of a classifier which learns on one half to separate the populations and is
    # judged on the other; the supremum over pairs of rules may be larger, so no bound follows from
    # it.
    from sklearn.linear_model import LogisticRegression

    if one.ndim != 2 or other.ndim != 2 or one.shape[1] != other.shape[1]:
        raise DataError(f"expected features of the same columns, got {one.shape}, {other.shape}")
    if min(len(one), len(other)) < 4:
        raise NotEnoughRowsError(
            f"separating two populations needs 4 rows each, got {len(one)} and {len(other)}"
        )
    rng = np.random.default_rng(0)
    # A person of paired samples stays in one half.
    first = rng.permutation(len(one)) < len(one) // 2
    second = first if paired else rng.permutation(len(other)) < len(other) // 2
    X = np.concatenate([one[first], other[second]])
    which = np.repeat([0.0, 1.0], [first.sum(), second.sum()])
    separator = LogisticRegression(max_iter=500, class_weight="balanced").fit(X, which)
    missed = (
        np.mean(separator.predict(one[~first]) != 0.0),
        np.mean(separator.predict(other[~second]) != 1.0),
    )
    return float(max(0.0, 2.0 * (1.0 - sum(missed))))


def binned_total_variation(one: Sample, other: Sample, edges: Floats) -> float:
    r"""Return :math:`\tfrac12 \sum_k |p_k - q_k|` over bins of the score that refine the rule."""
    if 0.0 not in edges:
        raise ParameterError(
            "the bins must refine the rule: its threshold, 0, is none of the edges"
        )
    shares = [
        np.bincount(np.searchsorted(edges, s.score, "right"), s.mass, len(edges) + 1)
        for s in (one, other)
    ]
    return float(0.5 * np.abs(shares[0] - shares[1]).sum())


def _gaps(one: Sample, other: Sample) -> Floats:
    """Return F - G before the first score and after every distinct one."""
    values = np.concatenate([one.score, other.score])
    steps = np.concatenate([one.mass, -other.mass])
    order = np.argsort(values, kind="stable")
    ends = np.append(values[order][1:] != values[order][:-1], True)
    return np.append(0.0, np.cumsum(steps[order])[ends])
