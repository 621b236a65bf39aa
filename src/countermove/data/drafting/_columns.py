"""What one column probably is, and which 0/1 columns are one category."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove.data.drafting._words import BAD, GOOD, ordered_words
from countermove.data.parsing import (
    BOOLEAN_WORDS,
    EXACT_INTEGERS,
    MISSING_WORDS,
    numbers,
    texts,
    truth_values,
)
from countermove.errors import shown

MOST_CATEGORIES = 30
"""Beyond this many different words a column is free text, not a category."""

MOSTLY_EMPTY = 0.5
"""A column without a value in more than this share of the rows is left out."""

MOSTLY_NUMBERS = 0.9
"""A column with numbers in at least this share of its cells was meant as numbers."""

_SEPARATOR = re.compile(r"[_=.:\- ]+")


@dataclass(frozen=True)
class Guess:
    """A column's entry under ``features:``, or, with an empty entry, why it is left out."""

    entry: dict[str, Any] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()


def guess_column(values: pd.Series) -> Guess:
    """Return the entry a column probably deserves, ``change`` left open.

    Every value of a column without gaps or stray cells fits the entry.
    """
    words = texts(values)
    read, missing, strange = numbers(values)
    distinct = sorted(map(str, words.dropna().unique()))
    gaps = float(np.mean(missing | words.isna().to_numpy(np.bool_)))
    if gaps == 1.0:
        return Guess(reasons=("holds no value at all",))
    if len(distinct) == 1:
        return Guess(reasons=(f"constant: every row holds {distinct[0]!r}",))
    if gaps > MOSTLY_EMPTY:
        return Guess(reasons=(f"no value in {gaps:.0%} of the rows",))
    if not strange.any():
        return _as_numbers(read, _gap_reasons(missing))
    if len(distinct) > MOST_CATEGORIES and strange.mean() <= 1 - MOSTLY_NUMBERS:
        stray = tuple(dict.fromkeys(repr(str(cell)) for cell in values[strange].head(100)))
        reason = f"{int(strange.sum())} cells are not numbers, such as {shown(stray, cap=3)}"
        return _as_numbers(read, (reason, *_gap_reasons(missing)))
    return _as_words(words, distinct)


def round_bounds(low: float, high: float) -> tuple[float, float]:
    """Return round numbers around a range, 0 below it where the range begins near 0.

    >>> round_bounds(18.0, 42.2), round_bounds(0.02, 0.93), round_bounds(1990, 2024)
    ((0.0, 50.0), (0.0, 1.0), (1990.0, 2030.0))
    """
    spread = high - low
    half = spread / 2
    unit = 10.0 ** math.floor(math.log10(half)) if 0.0 < half < math.inf else 0.0
    if not unit or max(abs(low), abs(high)) / unit > EXACT_INTEGERS:
        return low, high
    down = float(f"{math.floor(low / unit) * unit:.15g}")
    up = float(f"{math.ceil(high / unit) * unit:.15g}")
    down = 0.0 if 0.0 <= low <= spread else down
    return (down, up) if down <= low and high <= up and math.isfinite(up - down) else (low, high)


def _as_numbers(read: NDArray[np.float64], reasons: tuple[str, ...]) -> Guess:
    finite = read[np.isfinite(read)]
    distinct = np.unique(finite)
    if len(distinct) < 2:
        return Guess(reasons=("constant, but for cells that are no finite numbers",))
    if np.isinf(read).any():
        reasons = (*reasons, "holds infinite values")
    whole = bool((np.floor(finite) == finite).all())
    if whole and np.abs(finite).max() > EXACT_INTEGERS:
        return Guess(reasons=("whole numbers beyond 2^53: a code or an identifier",))
    if np.isin(distinct, (0.0, 1.0)).all():
        return Guess({"kind": "binary"}, reasons)
    if whole and len(distinct) == 2:
        pair = [str(int(value)) for value in distinct]
        return Guess({"kind": "binary", "categories": pair}, (f"{pair[1]} counts as 1", *reasons))
    low, high = float(distinct[0]), float(distinct[-1])
    least, most = round_bounds(low, high)
    entry = {"kind": "integer" if whole else "numeric", "min": least, "max": most}
    seen = f"{low:g} to {high:g} seen, bounds rounded outwards"
    codes = (f"{len(distinct)} different values: amounts or codes?",) if len(distinct) < 8 else ()
    return Guess(entry, (seen, *(codes if whole else ()), *reasons))


def _as_words(words: pd.Series, distinct: list[str]) -> Guess:
    reasons = _gap_reasons(words.isna().to_numpy(np.bool_))
    if {word.lower() for word in distinct} == set(BOOLEAN_WORDS):
        return Guess({"kind": "binary"}, reasons)
    if len(distinct) > MOST_CATEGORIES or 2 * len(distinct) > len(words):
        return Guess(reasons=(f"free text: {len(distinct)} different words in {len(words)} rows",))
    if len({word.casefold() for word in distinct}) < len(distinct):
        reasons = (*reasons, "words that differ in capitals only: one category or two?")
    blank = [repr(word) for word in distinct if word.lower() in MISSING_WORDS]
    if blank:
        reasons = (*reasons, f"is {shown(blank)} a category, or no value?")
    if len(distinct) == 2:
        pair = sorted(distinct, key=lambda word: (word.lower() in GOOD) - (word.lower() in BAD))
        return Guess({"kind": "binary", "categories": pair}, (f"{pair[1]!r} counts as 1", *reasons))
    order = ordered_words(distinct)
    if order is not None:
        return Guess(
            {"kind": "ordered", "categories": list(order)}, ("is this the order?", *reasons)
        )
    counts = words.value_counts()
    rare = [repr(word) for word in distinct if counts[word] < 5]
    if rare:
        reasons = (*reasons, f"fewer than 5 rows hold {shown(rare, cap=3)}: merge rare categories")
    return Guess({"kind": "onehot", "categories": distinct}, reasons)


def _gap_reasons(missing: NDArray[np.bool_]) -> tuple[str, ...]:
    count = int(missing.sum())
    return (f"no value in {count} row(s): fill them or take them out",) if count else ()


def expanded_groups(table: pd.DataFrame, columns: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the groups of columns of which exactly one is 1 in every row, by shared prefix.

    Columns such as ``housing_own``, ``housing_rent`` (or ``housing=own``, …) form
    the group ``housing``. A longer prefix wins over a shorter one.
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
