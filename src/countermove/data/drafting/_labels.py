"""Which column is the outcome, which columns name rows, and whether rows are steps in time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from countermove._types import Floats, Mask
from countermove.data.drafting._guesses import answer_reading, by_form, one_answer, usual
from countermove.data.drafting._readings import guess_dates, guess_numbers
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
from countermove.data.parsing import MISSING_WORDS, is_number, numbers, texts
from countermove.data.reading import DateReading, NumberReading, WordReading, folded
from countermove.data.schema import Label, Series
from countermove.data.series import order_steps
from countermove.errors import DataError, nearest, shown

TYPICAL_STEPS = 1.5
"""Rows per entity, on average, from which a table counts as a series."""

STRAY = 0.05
"""Share of the rows that may hold something else than the two values of an outcome that is named;
they are wrong rows then."""

MOST_SPELLINGS = 12
"""Columns with more different cells than this are no outcome of two values."""


@dataclass(frozen=True)
class LabelGuess:
    """The outcome, why it is thought to be, and +1 or -1 per row."""

    label: Label
    reason: str
    favourable: Mask


@dataclass(frozen=True)
class _Pair:
    """An outcome of two values: the values, how they are read, and the rows as they read."""

    pair: tuple[str, str]
    reading: WordReading | None
    words: pd.Series


def guess_label(
    table: pd.DataFrame, column: str | None = None, favourable: str | None = None
) -> LabelGuess:
    """Return the outcome column and its favourable values, or what the user named of them."""
    if column is not None and column not in table:
        known = nearest(column, map(str, table.columns))
        raise DataError(f"there is no column {column!r} to be the label; {known}")
    chosen, reason = (column, "named by you") if column is not None else _label_column(table)
    found = _pair(table[chosen]) or _pair(table[chosen], strays=True)
    if found is None:
        return _by_threshold(chosen, table[chosen], reason)
    best = _better(chosen, found.pair) if favourable is None else favourable
    named = {folded(value): value for value in found.pair}
    if folded(best) not in named:
        known = nearest(best, found.pair)
        raise DataError(f"the label {chosen!r} never holds {best!r}; {known}")
    best = named[folded(best)]
    other = found.pair[1 - found.pair.index(best)]
    good = (found.words == best).to_numpy(np.bool_)
    label = Label(chosen, _plain(best), unfavourable=_plain(other), reading=found.reading)
    joined = "" if found.reading is None else _joined(table[chosen], found)
    text = f"{reason}; is {best!r} what people hope for, rather than {other!r}?{joined}"
    strange = found.words[found.words.notna() & ~found.words.isin(found.pair)]
    if len(strange):
        listed = shown(map(repr, sorted(set(map(str, strange)))))
        text += f" {len(strange)} row(s) hold {listed}, and are set aside"
    return LabelGuess(label, text, good)


def _pair(values: pd.Series, strays: bool = False) -> _Pair | None:
    """Return an outcome of two values in any spellings, None where there are not two.

    With ``strays`` a few rows may hold something else, see ``STRAY``.
    """
    _, missing, strange = numbers(values)
    if not strange.any() and not missing.all():
        words = texts(values, numeric=True)
        kept = _kept(Counter(map(str, words.dropna())), strays)
        return None if kept is None else _Pair((kept[0], kept[1]), None, words)
    words = texts(values)
    counts = Counter(map(str, words.dropna()))
    blank = tuple(word for word in counts if word.lower() in MISSING_WORDS)
    forms = by_form(Counter({word: n for word, n in counts.items() if word not in blank}))
    names = {form: usual(of) for form, of in forms.items()}
    kept = _kept(Counter({form: sum(of.values()) for form, of in forms.items()}), strays)
    if kept is not None:
        reading = WordReading(fold=True, missing_values=blank)
        one, other = sorted(names[form] for form in kept)
    else:
        answers = one_answer(list(forms))
        if answers is None:
            return None
        joined = answer_reading(answers, names)
        reading = WordReading(fold=True, missing_values=blank, spellings=joined.spellings)
        one, other = (word for word, _ in joined.spellings)
    return _Pair((one, other), reading, reading.read(values, (one, other)))


def _kept(counts: Counter[str], strays: bool) -> list[str] | None:
    """Return the two values of an outcome, sorted; None where there are others, or too many."""
    two = sorted(value for value, _ in counts.most_common(2))
    others = counts.total() - sum(counts[value] for value in two)
    few = others <= STRAY * counts.total() if strays else others == 0
    return two if len(two) == 2 and few else None


def _joined(values: pd.Series, pair: _Pair) -> str:
    """Say which spellings are read as one."""
    counts = Counter(map(str, texts(values).dropna()))
    several = [sorted(of) for of in by_form(counts).values() if len(of) > 1]
    listed = [" = ".join(map(repr, of)) for of in several]
    if pair.reading is not None:
        listed += [
            f"{word!r} = {shown(map(repr, others))}"
            for word, others in pair.reading.spellings
            if others
        ]
        listed += [f"{word!r} is no value" for word in pair.reading.missing_values]
    return f" {'; '.join(listed)}" if listed else ""


def _label_column(table: pd.DataFrame) -> tuple[str, str]:
    columns = [str(column) for column in table.columns]
    open_columns = [column for column in columns if not name_words(column) & SENSITIVE]
    # "1" and "1.0" are two cells and one value, so a few more cells may still be two values.
    few = [c for c in open_columns if texts(table[c]).nunique() <= MOST_SPELLINGS]
    pairs = [c for c in few if _pair(table[c]) is not None]
    named = [c for c in pairs if name_words(c) & LABEL]
    if named:
        return named[-1], "two values and a name that fits"
    nearly = [c for c in few if name_words(c) & LABEL and _pair(table[c], strays=True) is not None]
    if nearly:
        return nearly[-1], "two values but for a few rows, and a name that fits"
    scored = [c for c in open_columns if name_words(c) & LABEL and _spread(table[c]) > 2]
    if scored:
        return scored[-1], "numbers and a name that fits"
    if pairs:
        return pairs[-1], "the last column with two values"
    raise DataError(
        "no column can be the outcome: none has two values or a name such as outcome or target; "
        "say which one with --label"
    )


def _numbers(values: pd.Series) -> tuple[Floats | None, NumberReading | None]:
    """Return an outcome as numbers and how they are read, None where it holds anything else."""
    read, _, strange = numbers(values)
    if not strange.any():
        return read, None
    found = guess_numbers(texts(values))
    if found is None or len(found.ways) != 1:
        return None, None
    read, _, strange = found.ways[0].read(values)
    return (None, None) if strange.any() else (read, found.ways[0])


def _spread(values: pd.Series) -> int:
    """Return how many different numbers a column holds; 0 if it holds anything else."""
    read = _numbers(values)[0]
    return 0 if read is None else len(np.unique(read[np.isfinite(read)]))


def _better(column: str, pair: Sequence[str]) -> str:
    """Return the value people hope for: by the words, unless the name says that yes is bad."""
    yes_is_bad = bool(name_words(column) & UNFAVOURABLE_NAME)
    if all(is_number(word) for word in pair):
        ranked = sorted(pair, key=float)
        return ranked[0] if yes_is_bad else ranked[1]
    ranked = sorted(pair, key=lambda word: (word.lower() in GOOD) - (word.lower() in BAD))
    return ranked[0] if yes_is_bad and ranked[1].lower() in YES else ranked[1]


def _by_threshold(column: str, values: pd.Series, reason: str) -> LabelGuess:
    read, reading = _numbers(values)
    finite = np.array([]) if read is None else np.unique(read[np.isfinite(read)])
    if read is None or len(finite) < 2:
        n_values = texts(values).nunique()
        raise DataError(
            f"the label {column!r} has {n_values} value(s); expected two, or numbers of which "
            "the schema says from where on they are favourable"
        )
    middle = float(np.median(read[np.isfinite(read)]))
    # The least value from the median on, but never the very least: someone must miss it.
    least = float(finite[1:][finite[1:] >= middle][0])
    text = (
        f"{reason}; which numbers do people hope for? "
        "at_least (here: the upper half) or at_most, and from where?"
    )
    return LabelGuess(Label(column, at_least=least, reading=reading), text, read >= least)


def guess_series(
    table: pd.DataFrame, columns: Sequence[str]
) -> tuple[Series, DateReading | None] | None:
    """Return the entity, the time and how it is read, if there are several rows per entity."""
    moments = [column for column in columns if name_words(column) & TIME]
    owners = [c for c in columns if name_words(c) & (IDENTIFIER | ENTITY) and c not in moments]
    for entity in owners:
        several = 2 <= texts(table[entity]).nunique() <= len(table) / TYPICAL_STEPS
        for time in moments if several else ():
            series, dates = Series(entity, time), guess_dates(texts(table[time]))
            reading = dates.ways[0] if dates is not None and len(dates.ways) == 1 else None
            if order_steps(table[entity], table[time], series, reading)[0] is not None:
                return series, None if reading == DateReading() else reading
    return None


def guess_id(table: pd.DataFrame, columns: Sequence[str]) -> str | None:
    """Return the column that names the rows, if there is one."""
    unique = [column for column in columns if _names_rows(table[column])]
    named = [column for column in unique if name_words(column) & (IDENTIFIER | ENTITY)]
    counting = [column for column in unique if counts_rows(table[column])]
    return next(iter(named + counting), None)


def _names_rows(values: pd.Series) -> bool:
    """Return whether every row has a value of its own that is no measurement."""
    words = texts(values)
    if words.isna().any() or words.duplicated().any() or len(words) < 2:
        return False
    read, _, strange = numbers(values)
    if not strange.all():
        return bool((np.isfinite(read) & (np.floor(read) == read)).all())
    return guess_numbers(words) is None and guess_dates(words) is None


def counts_rows(values: pd.Series) -> bool:
    """Return whether a column counts the rows, of which a few may be gone."""
    steps = np.diff(np.sort(numbers(values)[0]))
    return len(steps) > 0 and bool((steps >= 1.0).all()) and bool(steps.mean() <= 1.1)


def _plain(word: str) -> str | int:
    """Return whole numbers as numbers, for a schema that reads well."""
    return int(word) if word.lstrip("-").isdecimal() and shown([int(word)]) == word else word
