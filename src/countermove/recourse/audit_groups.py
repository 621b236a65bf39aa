"""Recourse by group: who has a way back, at what cost, and who has less of one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.errors import DataError, ParameterError, shown
from countermove.recourse.intervals import Contrast, Share, contrast, share


@dataclass(frozen=True)
class GroupRecourse:
    """Recourse of one group, and how it differs from the reference group (None: it is that).

    ``recourse_neg`` is over the group's refused, ``recourse_all`` over all of it;
    ``mean_cost`` is over those with recourse.
    """

    group: str
    people: int
    refused: int
    recourse_neg: Share
    recourse_all: Share
    mean_cost: float | None
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
    """Return one entry per group, by name.

    Parameters
    ----------
    groups
        Group of each person, shape (n,).
    refused, has_recourse
        Who is refused, and which of them have a verified action, shape (n,).
    cost
        Of the action, shape (n,); NaN where there is none.
    reference
        Group the others are compared with; None: the largest, whatever its rates, so
        that the choice does not bend the intervals.
    level
        Of each interval on its own.
    """
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
    return GroupRecourse(
        entry.group,
        entry.people,
        entry.refused,
        entry.recourse_neg,
        entry.recourse_all,
        entry.mean_cost,
        contrast(entry.recourse_neg, base.recourse_neg),
        contrast(entry.recourse_all, base.recourse_all),
    )
