"""Which columns are the outcome, the id, the entity and the time: guesses by name and content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

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
)
from countermove.data.parsing import is_number, numbers, texts
from countermove.data.schema import Label, Series
from countermove.data.series import order_steps
from countermove.errors import DataError, nearest, shown

TYPICAL_STEPS = 1.5
"""Rows per entity, on average, from which a table counts as a series."""


MOST_SPELLINGS = 12
"""Columns with more different cells than this are no outcome of two values."""


@dataclass(frozen=True)
class LabelGuess:
    """The outcome, why it is thought to be, and +1 or -1 per row."""

    label: Label
    reason: str
    favourable: NDArray[np.bool_]


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
