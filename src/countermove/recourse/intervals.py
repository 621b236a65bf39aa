"""Shares of people with exact intervals, and what two groups differ by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from countermove._types import Mask
from countermove.certificates.intervals import share_interval
from countermove.errors import ParameterError


@dataclass(frozen=True)
class Share:
    """``count`` of ``n`` people, and the interval that covers the true share.

    ``low`` and ``high`` are Clopper and Pearson's: over independent draws of people
    they cover with probability at least ``level``. ``value`` is None when nobody counts.
    """

    count: int
    n: int
    value: float | None
    low: float
    high: float
    level: float


@dataclass(frozen=True)
class Contrast:
    """A share minus, and over, the share of a reference, with intervals.

    Both shares lie in their intervals of level ``sqrt(level)`` at once with probability
    ``level`` (the groups are independent), and difference and ratio follow from them:
    coverage is guaranteed and on the safe side. An unknown upper ratio is None.
    """

    difference: float | None
    difference_low: float
    difference_high: float
    ratio: float | None
    ratio_low: float
    ratio_high: float | None
    level: float


def share(among: Mask, level: float = 0.95) -> Share:
    """Return the share of True with its exact binomial interval."""
    return share_of(int(np.count_nonzero(among)), len(among), level)


def share_of(count: int, n: int, level: float = 0.95) -> Share:
    """Return ``count / n`` with its exact binomial interval."""
    if not 0.0 < level < 1.0:
        raise ParameterError(f"level must lie strictly between 0 and 1, got {level!r}")
    if n == 0:
        return Share(0, 0, None, 0.0, 1.0, level)
    low, high = share_interval(count, n, 1.0 - level)
    return Share(count, n, count / n, float(low), float(high), level)


def contrast(one: Share, reference: Share) -> Contrast:
    """Return how the share of one group differs from that of a reference group."""
    part = one.level**0.5
    a, b = (share_of(s.count, s.n, part) for s in (one, reference))
    known = a.value is not None and b.value is not None
    value, base = a.value or 0.0, b.value or 0.0
    return Contrast(
        difference=value - base if known else None,
        difference_low=a.low - b.high,
        difference_high=a.high - b.low,
        ratio=value / base if known and base > 0.0 else None,
        ratio_low=a.low / b.high if b.high > 0.0 else 0.0,
        ratio_high=a.high / b.low if b.low > 0.0 else None,
        level=one.level,
    )
