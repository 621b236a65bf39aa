"""What each column probably is: outcome, id, entity, time, or a feature of some kind."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from countermove._types import Floats, Mask
from countermove.data.drafting._words import (
    BAD,
    ENTITY,
    GOOD,
    IDENTIFIER,
    LABEL,
    SENSITIVE,
    TIME,
    UNFAVOURABLE_NAME,
    YES,
    name_words,
    ordered_words,
)
from countermove.data.parsing import (
    BOOLEAN_WORDS,
    EXACT_INTEGERS,
    MISSING_WORDS,
    is_number,
    numbers,
    texts,
    truth_values,
)
from countermove.data.schema import Label, Series
from countermove.data.series import order_steps
from countermove.errors import DataError, nearest, shown

MOST_CATEGORIES = 30
"""Beyond this many different words a column is free text, not a category."""

MOSTLY_EMPTY = 0.5
"""A column without a value in more than this share of the rows is left out."""

MOSTLY_NUMBERS = 0.9
"""A column with numbers in at least this share of its cells was meant as numbers."""

TYPICAL_STEPS = 1.5
"""Rows per entity, on average, from which a table counts as a series."""

MOST_SPELLINGS = 12
"""Columns with more different cells than this are no outcome of two values."""

_SEPARATOR = re.compile(r"[_=.:\- ]+")


@dataclass(frozen=True)
class Guess:
    """A column's entry under ``features:``, or, with an empty entry, why it is left out."""

    entry: dict[str, Any] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()


def guess_column(values: pd.Series) -> Guess:
    """Return the entry a column probably deserves, ``change`` left open."""
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
    """Return round numbers around a range, 0 below it where the range begins near 0."""
    spread = high - low
    half = spread / 2
    unit = 10.0 ** math.floor(math.log10(half)) if 0.0 < half < math.inf else 0.0
    if not unit or max(abs(low), abs(high)) / unit > EXACT_INTEGERS:
        return low, high
    down = float(f"{math.floor(low / unit) * unit:.15g}")
    up = float(f"{math.ceil(high / unit) * unit:.15g}")
    down = 0.0 if 0.0 <= low <= spread else down
    return (down, up) if down <= low and high <= up and math.isfinite(up - down) else (low, high)


def _as_numbers(read: Floats, reasons: tuple[str, ...]) -> Guess:
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


def _gap_reasons(missing: Mask) -> tuple[str, ...]:
    count = int(missing.sum())
    return (f"no value in {count} row(s): fill them or take them out",) if count else ()


def expanded_groups(table: pd.DataFrame, columns: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return groups of columns of which exactly one is 1, by their prefix."""
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


@dataclass(frozen=True)
class LabelGuess:
    """The outcome, why it is thought to be, and +1 or -1 per row."""

    label: Label
    reason: str
    favourable: Mask


def guess_label(
    table: pd.DataFrame, column: str | None = None, favourable: str | None = None
) -> LabelGuess:
    """Return the outcome column and its favourable values, or what the user named of them."""
    if column is not None and column not in table:
        known = nearest(column, map(str, table.columns))
        raise DataError(f"there is no column {column!r} to be the label; {known}")
    chosen, reason = (column, "named by you") if column is not None else _label_column(table)
    values = table[chosen]
    words = _label_words(values)
    distinct = sorted(map(str, words.dropna().unique()))
    if len(distinct) == 2:
        best = favourable if favourable is not None else _better(chosen, distinct)
        if best not in distinct:
            raise DataError(f"the label {chosen!r} never holds {best!r}; {nearest(best, distinct)}")
        other = distinct[1 - distinct.index(best)]
        good = (words == best).to_numpy(np.bool_)
        text = f"{reason}; is {best!r} what people hope for, rather than {other!r}?"
        return LabelGuess(Label(chosen, favourable=_plain(best)), text, good)
    return _by_threshold(chosen, values, reason, len(distinct))


def _label_words(values: pd.Series) -> pd.Series:
    """Read an outcome as text: one spelling per number, blank cells missing."""
    _, missing, strange = numbers(values)
    return texts(values, numeric=not strange.any() and not missing.all())


def _label_column(table: pd.DataFrame) -> tuple[str, str]:
    columns = [str(column) for column in table.columns]
    open_columns = [column for column in columns if not name_words(column) & SENSITIVE]
    # "1" and "1.0" are two cells and one value, so a few more cells may still be two values.
    few = [c for c in open_columns if texts(table[c]).nunique() <= MOST_SPELLINGS]
    pairs = [c for c in few if _label_words(table[c]).nunique() == 2]
    named = [c for c in pairs if name_words(c) & LABEL]
    if named:
        return named[-1], "two values and a name that fits"
    scored = [c for c in open_columns if name_words(c) & LABEL and _spread(table[c]) > 2]
    if scored:
        return scored[-1], "numbers and a name that fits"
    if pairs:
        return pairs[-1], "the last column with two values"
    raise DataError(
        "no column can be the outcome: none has two values or a name such as outcome or target; "
        "say which one with --label"
    )


def _spread(values: pd.Series) -> int:
    """Return how many different numbers a column holds; 0 if it holds anything else."""
    read, _, strange = numbers(values)
    return 0 if strange.any() else len(np.unique(read[np.isfinite(read)]))


def _better(column: str, pair: Sequence[str]) -> str:
    """Return the value people hope for: by the words, unless the name says that yes is bad."""
    yes_is_bad = bool(name_words(column) & UNFAVOURABLE_NAME)
    if all(is_number(word) for word in pair):
        ranked = sorted(pair, key=float)
        return ranked[0] if yes_is_bad else ranked[1]
    ranked = sorted(pair, key=lambda word: (word.lower() in GOOD) - (word.lower() in BAD))
    return ranked[0] if yes_is_bad and ranked[1].lower() in YES else ranked[1]


def _by_threshold(column: str, values: pd.Series, reason: str, n_values: int) -> LabelGuess:
    if _spread(values) < 2:
        raise DataError(
            f"the label {column!r} has {n_values} value(s); expected two, or numbers of which "
            "the schema says from where on they are favourable"
        )
    read = numbers(values)[0]
    finite = np.unique(read[np.isfinite(read)])
    middle = float(np.median(read[np.isfinite(read)]))
    # The least value from the median on, but never the very least: someone must miss it.
    least = float(finite[1:][finite[1:] >= middle][0])
    text = (
        f"{reason}; which numbers do people hope for? "
        "at_least (here: the upper half) or at_most, and from where?"
    )
    return LabelGuess(Label(column, at_least=least), text, read >= least)


def guess_series(table: pd.DataFrame, columns: Sequence[str]) -> Series | None:
    """Return the entity and the time, if the table has several rows per entity."""
    moments = [column for column in columns if name_words(column) & TIME]
    owners = [c for c in columns if name_words(c) & (IDENTIFIER | ENTITY) and c not in moments]
    for entity in owners:
        several = 2 <= texts(table[entity]).nunique() <= len(table) / TYPICAL_STEPS
        for time in moments if several else ():
            series = Series(entity, time)
            if order_steps(table[entity], table[time], series)[0] is not None:
                return series
    return None


def guess_id(table: pd.DataFrame, columns: Sequence[str]) -> str | None:
    """Return the column that names the rows, if there is one."""
    unique = [column for column in columns if _names_rows(table[column])]
    named = [column for column in unique if name_words(column) & (IDENTIFIER | ENTITY)]
    counting = [column for column in unique if _counts_rows(table[column])]
    return next(iter(named + counting), None)


def _names_rows(values: pd.Series) -> bool:
    """Return whether every row has a value of its own that is no measurement."""
    words = texts(values)
    if words.isna().any() or words.duplicated().any() or len(words) < 2:
        return False
    read, _, strange = numbers(values)
    return bool(strange.all() or (np.isfinite(read) & (np.floor(read) == read)).all())


def _counts_rows(values: pd.Series) -> bool:
    read = np.sort(numbers(values)[0])
    return len(read) > 1 and bool((np.diff(read) == 1.0).all())


def _plain(word: str) -> str | int:
    """Return whole numbers as numbers, for a schema that reads well."""
    return int(word) if word.lstrip("-").isdecimal() and shown([int(word)]) == word else word
