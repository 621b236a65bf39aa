"""Recourse by group, shares with exact intervals: who has recourse, at what cost, who has less."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.certificates.intervals import share_interval
from countermove.errors import DataError, ParameterError, shown


@dataclass(frozen=True)
class ShareInterval:
    """``count`` of ``n`` people, and Clopper and Pearson's interval of the true share."""

    count: int
    n: int
    value: float | None  # None when nobody counts
    low: float
    high: float
    level: float  # the least coverage, over independent draws of people


@dataclass(frozen=True)
class Contrast:
    """A share minus, and over, the share of a reference, with intervals; None where unknown."""

    difference: float | None
    difference_low: float
    difference_high: float
    ratio: float | None
    ratio_low: float
    ratio_high: float | None
    level: float


def share(among: Mask, level: float = 0.95) -> ShareInterval:
    """Return the share of True with its exact binomial interval."""
    return share_of(int(np.count_nonzero(among)), len(among), level)


def share_of(count: int, n: int, level: float = 0.95) -> ShareInterval:
    """Return ``count / n`` with its exact binomial interval."""
    if not 0.0 < level < 1.0:
        raise ParameterError(f"level must lie strictly between 0 and 1, got {level!r}")
    if n == 0:
        return ShareInterval(0, 0, None, 0.0, 1.0, level)
    low, high = share_interval(count, n, 1.0 - level)
    return ShareInterval(count, n, count / n, float(low), float(high), level)


def contrast(one: ShareInterval, reference: ShareInterval) -> Contrast:
    """Return how the share of one group differs from that of a reference group."""
    # The groups are independent: both shares lie in their intervals of level sqrt(level) at once
    # with probability level, and difference and ratio follow from them.
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


@dataclass(frozen=True)
class GroupRecourse:
    """Recourse of one group, and how it differs from the reference group (None: it is that)."""

    group: str
    people: int
    refused: int
    recourse_neg: ShareInterval  # over the group's refused
    recourse_all: ShareInterval  # over the whole group, the approved included
    mean_cost: float | None  # over those with recourse
    disparity_neg: Contrast | None = None
    disparity_all: Contrast | None = None


def recourse_by_group(
    groups: NDArray[np.generic],
    refused: Mask,
    has_recourse: Mask,
    cost: Floats,
    *,
    reference: str | None = None,
    level: float = 0.95,
) -> tuple[GroupRecourse, ...]:
    """Return one entry per group, by name."""
    if groups.shape != refused.shape:
        raise DataError(f"{len(refused)} people need as many groups, got shape {groups.shape}")
    named = groups.astype(str)
    names, sizes = np.unique(named, return_counts=True)
    base = str(names[np.argmax(sizes)]) if reference is None else str(reference)
    if base not in names:
        raise ParameterError(f"no person is of the reference group {base!r}: {shown(names)}")
    found = {
        str(name): _one_group(str(name), named == name, refused, has_recourse, cost, level)
        for name in names
    }
    return tuple(_compared(entry, found[base]) for entry in found.values())


def _one_group(
    name: str, members: Mask, refused: Mask, has_recourse: Mask, cost: Floats, level: float
) -> GroupRecourse:
    paid = cost[members & has_recourse]
    return GroupRecourse(
        group=name,
        people=int(members.sum()),
        refused=int((members & refused).sum()),
        recourse_neg=share(has_recourse[members & refused], level),
        recourse_all=share((~refused | has_recourse)[members], level),
        mean_cost=float(paid.mean()) if paid.size else None,
    )


def _compared(entry: GroupRecourse, base: GroupRecourse) -> GroupRecourse:
    if entry.group == base.group:
        return entry
    return replace(
        entry,
        disparity_neg=contrast(entry.recourse_neg, base.recourse_neg),
        disparity_all=contrast(entry.recourse_all, base.recourse_all),
    )
