"""What each column probably is: numbers, dates, categories of some kind, or of no use."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from countermove._types import Floats, Mask
from countermove.data.drafting._readings import (
    DateGuess,
    guess_dates,
    guess_numbers,
    sentinel_reasons,
)
from countermove.data.drafting._words import BAD, GOOD, NO_WORDS, YES_WORDS, ordered_words
from countermove.data.parsing import (
    BOOLEAN_WORDS,
    EXACT_INTEGERS,
    MISSING_WORDS,
    numbers,
    texts,
    truth_values,
)
from countermove.data.reading import NumberReading, WordReading, folded
from countermove.data.schema import MISSING
from countermove.errors import shown

MOST_CATEGORIES = 30
"""Beyond this many different words a column is free text, unless most rows hold few of them."""

MOSTLY_EMPTY = 0.5
"""A column without a value in more than this share of the rows is left out."""

MOSTLY_NUMBERS = 0.9
"""A column with numbers in at least this share of its cells was meant as numbers."""

RARE = 0.01
"""Levels of a smaller share of the rows are pooled."""

FEW = 5
"""So are levels of fewer rows than this."""

COVERED = 0.8
"""Share of the rows whose words must be common ones; below it a column is free text."""

POOLED = "other"

_SEPARATOR = re.compile(r"[_=.:\- ]+")


@dataclass(frozen=True)
class Guess:
    """A column's entry under ``features:``, or, with an empty entry, why it is left out.

    ``choices`` are entries between which only a person can choose; ``dates`` how the column is
    read if it holds dates.
    """

    entry: dict[str, Any] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    choices: tuple[dict[str, Any], ...] = ()
    dates: DateGuess | None = None


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
    written = _written(values, words)
    if written is None:
        dates = None
        if pd.api.types.is_datetime64_any_dtype(values.dtype):
            dates = guess_dates(words)
        if dates is not None:
            return Guess(dates=dates, reasons=dates.reasons)
    else:
        found = _as_written(values, written)
        if found is not None:
            return found
    if not strange.any():
        return with_gaps(_as_numbers(read, ()), missing)
    if len(distinct) > MOST_CATEGORIES and strange.mean() <= 1 - MOSTLY_NUMBERS:
        stray = tuple(dict.fromkeys(repr(str(cell)) for cell in values[strange].head(100)))
        reason = f"{int(strange.sum())} cells are not numbers, such as {shown(stray, cap=3)}"
        return with_gaps(_as_numbers(read, (reason,)), missing)
    return with_gaps(_as_words(words), words.isna().to_numpy(np.bool_))


def _written(values: pd.Series, words: pd.Series) -> pd.Series | None:
    """Return the cells that are texts; None where the column holds another type."""
    if values.dtype == object:
        return words[[isinstance(cell, str) for cell in values]]
    return words if pd.api.types.is_string_dtype(values.dtype) else None


def _as_written(values: pd.Series, words: pd.Series) -> Guess | None:
    """Return a guess where numbers or dates are written in a way of their own."""
    found = guess_numbers(words) if len(words) else None
    if found is None:
        dates = guess_dates(words) if len(words) else None
        return None if dates is None else Guess(dates=dates, reasons=dates.reasons)
    if not found.ways:
        return Guess(reasons=found.reasons)
    entries = []
    for way in found.ways:
        if way == NumberReading() and len(found.ways) == 1:
            return None
        read, missing, _ = way.read(values)
        guess = _as_numbers(read, found.reasons, plain=False)
        if not guess.entry:
            return guess
        unit = {"unit": found.unit} if found.unit else {}
        recipe = {} if way == NumberReading() else {"read": way.to_entry()}
        entry = {"kind": guess.entry["kind"]} | unit | guess.entry | recipe
        entries.append(with_gaps(Guess(entry, guess.reasons), missing))
    if len(entries) == 1:
        return entries[0]
    cells = pd.Series(words.dropna().unique())
    values_of = np.stack([way.read(cells)[0] for way in found.ways])
    place = int(np.argmax(np.nanmax(values_of, axis=0) != np.nanmin(values_of, axis=0)))
    meant = " or ".join(f"{value:.10g}" for value in values_of[:, place])
    question = f"is {cells[place]!r} {meant}? Every cell can be read both ways: put one of these "
    question += "lines "
    return Guess(
        reasons=(question + "under features:", *found.reasons),
        choices=tuple(guess.entry for guess in entries),
    )


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


def _as_numbers(read: Floats, reasons: tuple[str, ...], plain: bool = True) -> Guess:
    """Return numbers, or two of them as categories where they are written plainly."""
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
    if plain and whole and len(distinct) == 2:
        pair = [str(int(value)) for value in distinct]
        return Guess({"kind": "binary", "categories": pair}, (f"{pair[1]} counts as 1", *reasons))
    low, high = float(distinct[0]), float(distinct[-1])
    least, most = round_bounds(low, high)
    entry = {"kind": "integer" if whole else "numeric", "min": least, "max": most}
    seen = f"{low:g} to {high:g} seen, bounds rounded outwards"
    codes = (f"{len(distinct)} different values: amounts or codes?",) if len(distinct) < 8 else ()
    noticed = sentinel_reasons(read) + (_day_reasons(distinct) if whole else ())
    return Guess(entry, (seen, *(codes if whole else ()), *noticed, *reasons))


def _day_reasons(distinct: Floats) -> tuple[str, ...]:
    """Point out whole numbers that all are days, such as 20241231."""
    if distinct[0] < 19000101 or distinct[-1] > 21001231:
        return ()
    days = pd.Series(distinct.astype(np.int64)).astype("str")
    if pd.to_datetime(days, format="%Y%m%d", errors="coerce").isna().any():
        return ()
    return ("days such as 20241231? then read: {date: '%Y%m%d', as: days, until: …}",)


def _as_words(words: pd.Series) -> Guess:
    """Return the categories of a column of words, spellings that differ in form joined."""
    reasons: tuple[str, ...] = ()
    counts = Counter(map(str, words.dropna()))
    spellings = by_form(counts)
    if set(spellings) == set(BOOLEAN_WORDS):
        return Guess({"kind": "binary"}, reasons)
    common = {form: sum(of.values()) for form, of in spellings.items()}
    kept = [f for f, n in common.items() if n >= max(FEW, RARE * len(words))]
    covered = sum(common[form] for form in kept) / max(counts.total(), 1)
    many = len(spellings) > MOST_CATEGORIES and not (1 < len(kept) < MOST_CATEGORIES)
    if (
        2 * len(spellings) > len(words)
        or many
        or covered < COVERED * (len(spellings) > MOST_CATEGORIES)
    ):
        return Guess(reasons=(f"free text: {len(spellings)} different words in {len(words)} rows",))
    reasons = (*reasons, *spelling_reasons(spellings))
    blank = [repr(next(iter(of))) for form, of in spellings.items() if form in MISSING_WORDS]
    if blank:
        reasons = (*reasons, f"is {shown(blank)} a category, or no value? then missing_values")
    return _categories(spellings, common, kept, reasons)


def by_form(counts: Counter[str]) -> dict[str, Counter[str]]:
    """Return the spellings of each word, the most frequent first; words in their order."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for word in sorted(counts):
        found[folded(word)][word] += counts[word]
    return dict(found)


def usual(spellings: Counter[str]) -> str:
    """Return the spelling of a word that most rows have, its accents joined to their letters."""
    return unicodedata.normalize("NFC", max(spellings, key=lambda word: (spellings[word], word)))


def spelling_reasons(spellings: dict[str, Counter[str]]) -> tuple[str, ...]:
    """Say which spellings are read as one word."""
    joined = [of for of in spellings.values() if len(of) > 1]
    if not joined:
        return ()
    listed = shown((" = ".join(map(repr, sorted(of))) for of in joined), cap=3)
    return (f"one word in several spellings: {listed}",)


def one_answer(forms: Sequence[str]) -> dict[str, list[str]] | None:
    """Return which words mean no and which yes, where all of several words mean one of them."""
    no, yes = ([f for f in forms if f in side] for side in (NO_WORDS, YES_WORDS))
    if len(forms) < 3 or len(no) + len(yes) < len(forms) or not no or not yes:
        return None
    # Single letters alone may be codes of anything.
    return {"no": no, "yes": yes} if any(len(f) > 1 or f in "01" for f in forms) else None


def _categories(
    spellings: dict[str, Counter[str]],
    common: dict[str, int],
    kept: Sequence[str],
    reasons: tuple[str, ...],
) -> Guess:
    """Return two categories, an order, or categories without one, the rare ones pooled."""
    names = {form: usual(of) for form, of in spellings.items()}
    folding = WordReading(fold=True)
    answers = one_answer(list(spellings))
    if answers is not None:
        reading = answer_reading(answers, names)
        pair = [word for word, _ in reading.spellings]
        entry = {"kind": "binary", "categories": pair, "read": reading.to_entry()}
        return Guess(entry, (f"{pair[1]!r} counts as 1", *reasons))
    if len(names) == 2:
        pair = sorted(names.values(), key=lambda w: (w.lower() in GOOD) - (w.lower() in BAD))
        entry = {"kind": "binary", "categories": pair, "read": folding.to_entry()}
        return Guess(entry, (f"{pair[1]!r} counts as 1", *reasons))
    order = ordered_words(list(names.values()))
    if order is not None and len(names) <= MOST_CATEGORIES:
        entry = {"kind": "ordered", "categories": list(order), "read": folding.to_entry()}
        return Guess(entry, ("is this the order?", *reasons))
    rare = [form for form in names if form not in kept]
    if len(rare) < 2 or len(kept) < 2:
        if rare:
            few = shown((repr(names[form]) for form in rare), cap=3)
            reasons = (*reasons, f"fewer than {FEW} rows hold {few}: merge rare categories")
        entry = {"kind": "onehot", "categories": list(names.values()), "read": folding.to_entry()}
        return Guess(entry, reasons)
    pool = names[POOLED] if POOLED in kept else POOLED
    levels = [names[form] for form in names if form in kept and names[form] != pool]
    reading = WordReading(fold=True, rare=RARE, pooled=pool, unseen="pooled")
    rows = sum(common[form] for form in rare)
    listed = shown((repr(names[form]) for form in rare), cap=3)
    why = f"{len(rare)} rare levels ({listed}; {rows} rows) and unseen ones are read as {pool!r}"
    entry = {"kind": "onehot", "categories": [*levels, pool], "read": reading.to_entry()}
    return Guess(entry, (why, *reasons))


def answer_reading(answers: dict[str, list[str]], names: dict[str, str]) -> WordReading:
    """Return the recipe that joins the spellings of no and of yes, the longest naming each."""
    pairs = []
    for forms in (answers["no"], answers["yes"]):
        chief = max(forms, key=lambda form: (len(form), form))
        pairs.append((names[chief], tuple(names[form] for form in forms if form != chief)))
    return WordReading(fold=True, spellings=tuple(pairs))


def with_gaps(guess: Guess, missing: Mask) -> Guess:
    """Return a guess with what stands in for cells without a value, where there are any."""
    count, entry = int(missing.sum()), guess.entry
    if not count or not entry:
        return guess
    policy = {"numeric": "median", "integer": "median", "onehot": "own level"}.get(entry["kind"])
    if policy is None or MISSING in entry.get("categories", ()):
        policy = "mode"
    why = f"no value in {count} row(s): {policy} stands in; or refuse, which sets them aside"
    return replace(guess, entry=entry | {"missing": policy}, reasons=(*guess.reasons, why))


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
