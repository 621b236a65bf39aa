"""Recognising a category that a table brings already expanded into 0/1 columns."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pandas as pd

from countermove.data.parsing import numbers, truth_values

_SEPARATOR = re.compile(r"[_=.:\- ]+")


def expanded_groups(table: pd.DataFrame, columns: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the groups of columns of which exactly one is 1 in every row, by shared prefix.

    Columns such as ``housing_own``, ``housing_rent`` (or ``housing=own``, …) form
    the group ``housing``. A longer prefix wins over a shorter one.

    Parameters
    ----------
    table
        The table as read.
    columns
        The columns to look at.
    """
    compound = [column for column in columns if _SEPARATOR.search(column)]
    bits = {column: found for column in compound if (found := _bits(table[column])) is not None}
    sharing: dict[str, list[str]] = defaultdict(list)
    for column in bits:
        for match in _SEPARATOR.finditer(column):
            if match.start() > 0 and match.end() < len(column):
                sharing[column[: match.start()]].append(column)
    groups: dict[str, tuple[str, ...]] = {}
    taken: set[str] = set()
    for prefix in sorted(sharing, key=len, reverse=True):
        members = [column for column in sharing[prefix] if column not in taken]
        if len(members) > 1 and np.all(sum(bits[column] for column in members) == 1.0):
            groups[prefix] = tuple(members)
            taken |= set(members)
    return groups


def _bits(values: pd.Series) -> np.ndarray | None:
    """Return a column as zeros and ones, or None if it holds anything else, or only one."""
    read = numbers(truth_values(values))[0]
    return read if np.isin(read, (0.0, 1.0)).all() and len(np.unique(read)) == 2 else None
