"""Shares, rates and changes with the intervals that n draws leave them."""

from __future__ import annotations

from dataclasses import dataclass

from countermove._types import Mask
from countermove.certificates.intervals import share_interval
from countermove.errors import NotEnoughRowsError
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

    Of weighted rows the ends are approximate; they serve to doubt assumptions, not to certify.
    """
    share = sample.share(among)
    low, high = share_interval(*_count(sample, share), failure_probability)
    return Range(share, float(low), float(high))


def rate_range(sample: Sample, among: Mask, label: int, failure_probability: float) -> Range:
    """Return the share among the people with a label, given how many they are."""
    given = sample.label == label
    if not given.any():
        raise NotEnoughRowsError(f"no row has label {label:+d}; a rate needs at least one such row")
    return share_range(sample.of_rows(given), among[given], failure_probability)


def change_range(pair: Pair, before: Mask, after: Mask, failure_probability: float) -> Range:
    """Return the share after minus the share before.

    Of paired people only those who change count: two shares, each with half of the
    probability. Else the two samples' shares do.
    """
    half = 0.5 * failure_probability
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
