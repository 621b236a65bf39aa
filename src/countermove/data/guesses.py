"""What a column of a table that nobody has described probably holds, and what cannot be known.

Only ever a guess to be confirmed. What fits two ways of reading that give other values is left
out, with an entry for either.
"""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd

from countermove._types import Floats, Mask
from countermove.data.doubts import suspected_codes
from countermove.data.parsing import (
    BOOLEAN_WORDS,
    EXACT_INTEGERS,
    MISSING_WORDS,
    numbers,
    texts,
    truth_values,
)
from countermove.data.reading import (
    ISO,
    DateReading,
    NumberReading,
    WordReading,
    folded,
    plain_marks,
)
from countermove.data.schema import MISSING
from countermove.errors import shown

MOST_CATEGORIES = 30
"""Beyond this many different words a column is free text, unless most rows hold few of them."""

MOSTLY_EMPTY = 0.5
"""A column without a value in more than this share of the rows is left out."""

MOSTLY = 0.9
"""A column is what at least this share of its cells can be read as."""

RARE, FEW = 0.01, 5
"""Levels of a smaller share of the rows, or of fewer rows, are pooled."""

COVERED = 0.8
"""Share of the rows whose words must be common ones; below it a column is free text."""

POOLED = "other"

YES = frozenset(("yes", "y", "true", "t", "1", "ja", "j", "oui", "si"))
NO = frozenset(("no", "n", "false", "f", "0", "nein", "non"))
"""One answer in several spellings; two of them are one outcome."""

GOOD = YES | {"good", "accepted", "approved", "granted", "repaid", "paid", "passed", "notspam"}
BAD = NO | {"-1", "bad", "refused", "rejected", "denied", "unpaid", "failed", "spam"}

SCALES = tuple(
    tuple(scale.split(", "))
    for scale in (
        "none, very low, low, moderate, medium, middle, high, very high",
        "small, medium, large",
        "very poor, poor, fair, average, good, very good, excellent",
        "never, rarely, sometimes, often, usually, always",
        "strongly disagree, disagree, neutral, agree, strongly agree",
        "none, primary, secondary, tertiary",
        "school, high school, college, university, graduate school",
        "high school, bachelor, master, phd, doctorate",
        "unskilled, semi-skilled, skilled, highly skilled",
    )
)
"""Words with a natural order, lowest first."""

CURRENCIES = {
    spelling: code
    for code, spellings in {
        "usd": "$ usd us$", "eur": "€ eur", "gbp": "£ gbp", "chf": "chf fr.", "jpy": "¥ jpy",
        "inr": "₹ inr rs.", "brl": "r$ brl", "pln": "zł pln", "sek": "sek", "nok": "nok",
        "dkk": "dkk", "aud": "aud", "cad": "cad",
    }.items()
    for spelling in spellings.split()
}  # fmt: skip
"""Signs and codes of money, by the code they mean."""

DAYS = {"hour": 1 / 24, "day": 1.0, "week": 7.0, "month": 365.25 / 12, "year": 365.25}
"""Units of time, in days."""

MARKS = (
    (".", ""), (",", ""), (".", ","), (",", "."), (".", " "), (",", " "), (".", "'"), (",", "'"),
)  # fmt: skip
"""Decimal mark and thousands separator, the plainest first."""

FORMATS = (
    ISO,
    *(f"%{a}{sep}%{b}{sep}%{y}" for y in "Yy" for sep in "./-" for a, b in ("dm", "md")),
    "%Y/%m/%d", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y",
)  # fmt: skip
TIMES = ("", " %H:%M", " %H:%M:%S")

DATE_CODES = ("1900-01-01", "1970-01-01", "2999-12-31", "9999-12-31")
"""Dates that often stand for no value."""

_SEPARATOR = re.compile(r"[_=.:\- ]+")
_AMOUNT = re.compile(
    r"^\(?[-+]? ?(?P<before>[^\d .,'()+-]{1,4})? ?[-+]? ?"
    r"(?P<body>\d[\d.,' ]*) ?(?P<behind>[^\d .,'()+-][^\d()+]{0,20}²?)?\)?-?$"
)


@dataclass(frozen=True)
class Guess:
    """A column's entry under ``features:``, or, with an empty entry, why it is left out.

    ``choices`` are entries between which only a person can choose; ``dates`` are the ways in which
    it can be read if it holds dates.
    """

    entry: dict[str, Any] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    choices: tuple[dict[str, Any], ...] = ()
    dates: tuple[DateReading, ...] = ()


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
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        return guess_dates(words) or Guess(reasons=("dates that cannot be read",))
    if not pd.api.types.is_numeric_dtype(values.dtype) and strange.any():
        found = _amounts(values, words) or guess_dates(words)
        if found is not None:
            return found
    elif not pd.api.types.is_numeric_dtype(values.dtype) and (both := _either(values, words)):
        return both
    if not strange.any():
        return with_gaps(_as_numbers(read, ()), missing)
    if len(distinct) > MOST_CATEGORIES and strange.mean() <= 1 - MOSTLY:
        stray = dict.fromkeys(repr(str(cell)) for cell in values[strange].head(100))
        reason = f"{int(strange.sum())} cells are not numbers, such as {shown(stray, cap=3)}"
        return with_gaps(_as_numbers(read, (reason,)), missing)
    return with_gaps(_as_words(words), words.isna().to_numpy(np.bool_))


def _counted(words: pd.Series) -> Counter[str]:
    """Return the different cells that hold something, in one form of their marks."""
    counts: Counter[str] = Counter()
    for word, n in words.dropna().value_counts().items():
        if folded(str(word)) not in MISSING_WORDS:
            counts[str(word)] += int(n)
    return counts


def _either(values: pd.Series, words: pd.Series) -> Guess | None:
    """Return a question where plain numbers might have a point between thousands: 1.234."""
    held = words.dropna()
    grouped = held.str.fullmatch(r"-?[1-9]\d{0,2}(\.\d{3})*").all()
    return (
        _amounts(values, words) if grouped and held.str.contains(".", regex=False).any() else None
    )


def number_ways(words: pd.Series) -> tuple[tuple[NumberReading, ...], tuple[str, ...], str]:
    """Return how texts can be read as numbers (no way, one or several), what to say, the unit."""
    counts = _counted(words)
    parts = {word: _AMOUNT.match(plain_marks(word)) for word in counts}
    taken = {word: found for word, found in parts.items() if found is not None}
    total = counts.total()
    if not total or sum(counts[word] for word in taken) < MOSTLY * total:
        return (), (), ""
    beside: Counter[str] = Counter()
    for word, found in taken.items():
        before, behind = (found["before"] or "").strip(), (found["behind"] or "").strip()
        if before and before not in CURRENCIES:
            return (), (), ""  # A letter before a number makes a code of it.
        beside.update({unit: counts[word] for unit in (before, behind) if unit})
    families: Counter[str] = Counter()
    for unit, n in beside.items():
        families[_family(unit)] += n
    times = set(families) <= set(DAYS)
    main, most = families.most_common(1)[0] if families else ("", 0)
    if not times and most < MOSTLY * families.total():
        listed = shown(f"{unit!r} ({n})" for unit, n in beside.most_common())
        money = set(beside) <= set(CURRENCIES)
        return (), (f"amounts in several currencies, {listed}: convert them",) * money, ""
    kept = [unit for unit, _ in beside.most_common() if times or _family(unit) == main]
    factors = {u: float(f"{DAYS[_family(u)] / DAYS[main]:.6g}") if times else 1.0 for u in kept}
    reasons = [f"all counted in {kept[0]}: are the factors right?"] if len(families) > 1 else []
    base = NumberReading(units=tuple((_as_written(u, taken), f) for u, f in factors.items()))
    cells = pd.Series(list(counts), dtype="str")
    weights = np.array([counts[cell] for cell in cells], dtype=np.float64)
    ways = _fitting(base, cells, weights, MOSTLY * total)
    if len(ways) == 1 and (ways[0].decimal != "." or ways[0].thousands):
        groups = f", {ways[0].thousands!r} groups thousands" if ways[0].thousands else ""
        reasons.append(f"{ways[0].decimal!r} is the decimal mark{groups}")
    if ways and (strange := ways[0].read(cells)[2]).any():
        listed = shown(map(repr, cells[strange]), cap=3)
        n_strange = int(weights[strange].sum())
        reasons.append(f"{n_strange} cells are not numbers, such as {listed}: missing_values?")
    return ways, tuple(reasons), base.units[0][0] if base.units else ""


def _family(unit: str) -> str:
    """Return what the spellings of one unit have in common."""
    return CURRENCIES.get(unit, unit.rstrip(".").removesuffix("s"))


def _as_written(unit: str, taken: dict[str, re.Match[str]]) -> str:
    """Return a unit in the capitals of the file."""
    for word in taken:
        place = word.casefold().find(unit)
        if place >= 0 and len(word.casefold()) == len(word):
            return word[place : place + len(unit)]
    return unit


def _fitting(
    base: NumberReading, cells: pd.Series, weights: Floats, least: float
) -> tuple[NumberReading, ...]:
    """Return the marks under which most cells are numbers; several if they give other values."""
    read: dict[NumberReading, Floats] = {}
    for decimal, thousands in MARKS:
        way = replace(base, decimal=decimal, thousands=thousands)
        read[way] = way.read(cells)[0]
    fits = {way: float(weights[~np.isnan(found)].sum()) for way, found in read.items()}
    kept: list[NumberReading] = []
    for way in (way for way in read if fits[way] == max(fits.values()) >= least):
        if not any(np.array_equal(read[way], read[other], equal_nan=True) for other in kept):
            kept.append(way)
    return tuple(kept)


def _amounts(values: pd.Series, words: pd.Series) -> Guess | None:
    """Return a guess where numbers are written in a way of their own; None where none are."""
    written = words
    if values.dtype == object:
        written = words[[isinstance(cell, str) for cell in values]]
    ways, reasons, unit = number_ways(written)
    if not ways:
        return Guess(reasons=reasons) if reasons else None
    entries = []
    for way in ways:
        if way == NumberReading() and len(ways) == 1:
            return None
        read, missing, _ = way.read(values)
        guess = _as_numbers(read, reasons, plain=False)
        if not guess.entry:
            return guess
        kind = {"kind": guess.entry["kind"]} | ({"unit": unit} if unit else {})
        recipe = {} if way == NumberReading() else {"read": way.to_entry()}
        entries.append(with_gaps(Guess(kind | guess.entry | recipe, guess.reasons), missing))
    if len(entries) == 1:
        return entries[0]
    cells = pd.Series(words.dropna().unique())
    found = np.stack([way.read(cells)[0] for way in ways])
    place = int(np.argmax(np.nanmax(found, axis=0) != np.nanmin(found, axis=0)))
    meant = " or ".join(f"{value:.10g}" for value in found[:, place])
    question = f"is {cells[place]!r} {meant}? Every cell can be read both ways: put one of these "
    return Guess(
        reasons=(question + "lines under features:", *reasons),
        choices=tuple(guess.entry for guess in entries),
    )


def guess_dates(words: pd.Series) -> Guess | None:
    """Return how a column of texts is read as dates; None where it holds none."""
    counts = _counted(words)
    cells = pd.Series(list(counts), dtype="str")
    if not counts or not cells.str.contains(r"\d").mean() >= MOSTLY:
        return None
    weights = np.array([counts[cell] for cell in cells], dtype=np.float64)
    sample = cells.iloc[:: max(len(cells) // 8, 1)]
    shares: dict[str, float] = {}
    values: dict[str, pd.Series] = {}
    for form in ("".join(pair) for pair in itertools.product(FORMATS, TIMES)):
        if form == ISO or any(_reads(form, cell.strip()) for cell in sample):
            values[form], _, strange = DateReading(formats=(form,)).dates(cells)
            shares[form] = float(weights[~strange].sum() / weights.sum())
    best = max(shares.values())
    if best < MOSTLY or cells.str.fullmatch(r"\d{1,6}|\d+\.\d+").any():
        return None
    kept: list[str] = []
    for form in (form for form in shares if shares[form] == best):
        if not any(values[form].equals(values[other]) for other in kept):
            kept.append(form)
    reasons = _date_reasons(kept, weights, values[kept[0]], shares)
    gone = values[kept[0]].isna().to_numpy(np.bool_)
    if gone.any():
        listed = shown(map(repr, cells[gone]), cap=3)
        reasons += (f"{int(weights[gone].sum())} cells are no dates, such as {listed}",)
    ways = tuple(DateReading(formats=(form,)) for form in kept)
    return Guess(reasons=reasons, dates=ways)


def _reads(form: str, cell: str) -> bool:
    try:
        datetime.strptime(cell, form)
    except ValueError:
        return False
    return True


def _date_reasons(
    kept: Sequence[str], weights: Floats, read: pd.Series, shares: dict[str, float]
) -> tuple[str, ...]:
    reasons = []
    form = kept[0]
    swapped = form.replace("%d", "%?").replace("%m", "%d").replace("%?", "%m")
    if len(kept) == 1 and swapped != form and re.match(r"%[dm]\W%[dm]", form):
        order = "day" if form.startswith("%d") else "month"
        n = round((1 - shares.get(swapped, 0.0)) * float(weights.sum()))
        reasons.append(f"{order} first: {n} cells can be read in no other way")
    if "%y" in form:
        reasons.append("years have two digits")
    for text in DATE_CODES:
        if n := int(weights[(read == pd.Timestamp(text)).to_numpy(np.bool_)].sum()):
            reasons.append(f"{text} in {n} row(s): no value? then missing_values: ['{text}']")
    return tuple(reasons)


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
    noticed = [f"{low:g} to {high:g} seen, bounds rounded outwards"]
    if whole and len(distinct) < 8:
        noticed.append(f"{len(distinct)} different values: amounts or codes?")
    noticed += [
        f"{code:g} in {rows} row(s): no value? then read: {{missing_values: [{code:g}]}}"
        for code, rows in suspected_codes(read).items()
    ]
    return Guess(entry, (*noticed, *reasons))


def _as_words(words: pd.Series) -> Guess:
    """Return the categories of a column of words, spellings that differ in form joined."""
    counts = Counter(map(str, words.dropna()))
    spellings = by_form(counts)
    if set(spellings) == set(BOOLEAN_WORDS):
        return Guess({"kind": "binary"})
    common = {form: sum(of.values()) for form, of in spellings.items()}
    kept = [form for form, n in common.items() if n >= max(FEW, RARE * len(words))]
    many = len(spellings) > MOST_CATEGORIES
    covered = sum(common[form] for form in kept) / max(counts.total(), 1)
    if 2 * len(spellings) > len(words) or (
        many and (not 1 < len(kept) < MOST_CATEGORIES or covered < COVERED)
    ):
        return Guess(reasons=(f"free text: {len(spellings)} different words in {len(words)} rows",))
    reasons = spelling_reasons(spellings)
    blank = [repr(next(iter(of))) for form, of in spellings.items() if form in MISSING_WORDS]
    if blank:
        reasons += (f"is {shown(blank)} a category, or no value? then missing_values",)
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
    listed = shown((" = ".join(map(repr, sorted(of))) for of in joined), cap=3)
    return (f"one word in several spellings: {listed}",) if joined else ()


def answer_reading(spellings: dict[str, Counter[str]]) -> WordReading | None:
    """Return the recipe that joins several words that all mean no or yes, the longest naming each.

    None where there are other words, or single letters alone, which may be codes of anything.
    """
    sides = [[form for form in spellings if form in side] for side in (NO, YES)]
    known = all(sides) and sum(map(len, sides)) == len(spellings) >= 3
    if not known or not any(len(form) > 1 or form in "01" for form in spellings):
        return None
    pairs = []
    for forms in sides:
        chief = max(forms, key=lambda form: (len(form), form))
        others = tuple(usual(spellings[form]) for form in forms if form != chief)
        pairs.append((usual(spellings[chief]), others))
    return WordReading(fold=True, spellings=tuple(pairs))


def _categories(
    spellings: dict[str, Counter[str]],
    common: dict[str, int],
    kept: Sequence[str],
    reasons: tuple[str, ...],
) -> Guess:
    """Return two categories, an order, or categories without one, the rare ones pooled."""
    names = {form: usual(of) for form, of in spellings.items()}
    reading = answer_reading(spellings) or WordReading(fold=True)
    pair = [word for word, _ in reading.spellings]
    if len(names) == 2:
        pair = sorted(names.values(), key=lambda w: (w.lower() in GOOD) - (w.lower() in BAD))
    if pair:
        entry = {"kind": "binary", "categories": pair, "read": reading.to_entry()}
        return Guess(entry, (f"{pair[1]!r} counts as 1", *reasons))
    order = ordered_words(list(names.values()))
    if order is not None:
        entry = {"kind": "ordered", "categories": list(order), "read": reading.to_entry()}
        return Guess(entry, ("is this the order?", *reasons))
    rare = [form for form in names if form not in kept]
    few = shown((repr(names[form]) for form in rare), cap=3)
    if len(rare) < 2 or len(kept) < 2:
        reasons += (f"fewer than {FEW} rows hold {few}: merge rare categories",) if rare else ()
        entry = {"kind": "onehot", "categories": list(names.values()), "read": reading.to_entry()}
        return Guess(entry, reasons)
    pool = names[POOLED] if POOLED in kept else POOLED
    levels = [names[form] for form in names if form in kept and names[form] != pool]
    rows = sum(common[form] for form in rare)
    why = f"{len(rare)} rare levels ({few}; {rows} rows) and unseen ones are read as {pool!r}"
    recipe = replace(reading, pooled=pool).to_entry()
    return Guess({"kind": "onehot", "categories": [*levels, pool], "read": recipe}, (why, *reasons))


def ordered_words(words: Sequence[str]) -> tuple[str, ...] | None:
    """Return the words in their order, lowest first, or None when they show none."""
    spelled = {word: " ".join(re.split(r"[\s_]+", word.lower())) for word in words}
    for scale in SCALES:
        # "Low" and "low" share a place: then the order is not complete.
        if 1 < len(words) == len(set(spelled.values())) and set(spelled.values()) <= set(scale):
            return tuple(sorted(words, key=lambda word: scale.index(spelled[word])))
    return None


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


def _bits(values: pd.Series) -> Floats | None:
    """Return a column as zeros and ones, or None if it holds anything else, or only one."""
    read = numbers(truth_values(values))[0]
    return read if np.isin(read, (0.0, 1.0)).all() and len(np.unique(read)) == 2 else None
