"""How the cells of a column are written: marks, units and dates, decided on the whole column.

Where two ways of reading fit equally well and give other values, nobody can know: both are
returned, for a person to choose.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import pandas as pd

from countermove.data.drafting._words import CURRENCIES, TIME_UNITS
from countermove.data.parsing import MISSING_WORDS
from countermove.data.reading import ISO, DateReading, NumberReading, folded, in_english
from countermove.errors import shown

MOSTLY = 0.9
"""A column is what at least this share of its cells can be read as."""

MARKS = (
    (".", ""), (",", ""), (".", ","), (",", "."), (".", " "), (",", " "), (".", "'"), (",", "'"),
)  # fmt: skip
"""Decimal mark and thousands separator, the plainest first."""

SENTINELS = (-1.0, -9.0, -99.0, -999.0, -9999.0, 99.0, 999.0, 9999.0, 99999.0, 999999.0, 9999999.0)
DATE_SENTINELS = ("0001-01-01", "1900-01-01", "1970-01-01", "2999-12-31", "9999-12-31")

_ORDINALS = frozenset(("st", "nd", "rd", "th", "er", "e", "º", "ª"))
_NUMBER = re.compile(
    r"^(?P<open>\()?\s*[-+]?\s*(?P<before>[^\d\s().,'+-][^\d().,'+-]*?)?\s*[-+]?\s*"
    r"(?P<body>\d[\d.,' ]*\d|\d|[.,]\d+|\d[.,])\s*"
    r"(?P<behind>[^\d\s().,'+-][^\d()+]*[23]?)?\s*(?P<close>\))?(?P<trail>-)?$"
)

_DATES = [
    *(f"%{a}{sep}%{b}{sep}%{y}" for y in "Yy" for sep in "./-" for a, b in ("dm", "md")),
    *(f"%Y{sep}%m{sep}%d" for sep in "./"),
    "%d %b %Y", "%d. %b %Y", "%d-%b-%Y", "%d-%b-%y", "%d/%b/%Y", "%b %d, %Y", "%b %d %Y", "%Y%m%d",
    "%d.%m. %Y", "%m/%Y", "%m.%Y", "%b %Y", "%b-%Y", "%Y-%m",
]  # fmt: skip
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p", ", %H:%M", "T%H:%M:%S")


@dataclass(frozen=True)
class NumberGuess:
    """Ways of reading a column as numbers: one, none, or several for a person to choose from."""

    ways: tuple[NumberReading, ...]
    reasons: tuple[str, ...]
    unit: str = ""


@dataclass(frozen=True)
class DateGuess:
    """Ways of reading a column as dates, and what was noticed."""

    ways: tuple[DateReading, ...]
    reasons: tuple[str, ...]


def present(words: pd.Series) -> Counter[str]:
    """Return the different cells that hold something, with their counts."""
    counts = words.dropna().value_counts()
    return Counter(
        {str(w): int(n) for w, n in counts.items() if str(w).lower() not in MISSING_WORDS}
    )


@dataclass(frozen=True)
class _Parts:
    """A cell taken apart."""

    text: str
    count: int
    body: str
    units: frozenset[str]
    negative: str


def guess_numbers(words: pd.Series) -> NumberGuess | None:
    """Return how a column of texts is read as numbers; None where it holds no numbers."""
    counts = present(words)
    taken = [found for text, count in counts.items() if (found := _apart(text, count)) is not None]
    total = counts.total()
    if not total or sum(part.count for part in taken) < MOSTLY * total:
        return None
    units, factors, reasons = _units(taken)
    if units is None:
        return NumberGuess((), reasons) if reasons else None
    fitting = [part for part in taken if part.units <= units]
    if sum(part.count for part in fitting) < MOSTLY * total:
        return None
    negative = Counter(part.negative for part in fitting if part.negative)
    bare = any(not part.units for part in fitting)
    base = NumberReading(
        units=tuple((unit, factors.get(unit, 1.0)) for unit in _by_count(units, fitting)),
        bare=bare or not factors,
        negative="minus" if not negative else max(negative, key=lambda n: negative[n]),  # type: ignore[arg-type]
    )
    if units == {"%"}:
        base = replace(base, bare=False)
        n = sum(part.count for part in fitting if not part.units)
        why = f"{n} cell(s) lack the %: percent or shares? bare: true reads them as percent"
        reasons += (why,) if n else ()
    ways = _ways(base, fitting, MOSTLY * total)
    if not ways:
        return None
    unit = "" if not units else _by_count(units, fitting)[0]
    return NumberGuess(ways, (*_said(ways, counts), *reasons), unit)


def _apart(text: str, count: int) -> _Parts | None:
    plain = " ".join(folded(text).replace("−", "-").replace("’", "'").split())
    found = _NUMBER.match(plain)
    if found is None or bool(found["open"]) != bool(found["close"]):
        return None
    before, behind = (found["before"] or "").strip(), (found["behind"] or "").strip()
    # A letter before a number makes a code of it, unless it is money.
    if before and before not in CURRENCIES:
        return None
    if behind in _ORDINALS or len(behind.split()) > 3:
        return None
    negative = "parentheses" if found["open"] else "trailing" if found["trail"] else ""
    units = frozenset(each for each in (before, behind) if each)
    return _Parts(text, count, found["body"].strip(), units, negative)


def _units(parts: Sequence[_Parts]) -> tuple[set[str] | None, dict[str, float], tuple[str, ...]]:
    """Return the texts beside the numbers that mean one unit, their factors, and what to ask."""
    counts: Counter[str] = Counter()
    for part in parts:
        for unit in part.units:
            counts[unit] += part.count
    if not counts:
        return set(), {}, ()
    if set(counts) <= set(TIME_UNITS) and len({TIME_UNITS[unit] for unit in counts}) > 1:
        days = {unit: TIME_UNITS[unit] for unit in counts}
        main = max(counts, key=lambda unit: counts[unit])
        factors = {unit: float(f"{days[unit] / days[main]:.6g}") for unit in counts}
        return set(counts), factors, (f"all counted in {main}: are the factors right?",)
    families: Counter[str] = Counter()
    for unit, count in counts.items():
        families[_family(unit)] += count
    main, most = families.most_common(1)[0]
    if most < MOSTLY * families.total():
        money = set(counts) <= set(CURRENCIES)
        listed = shown(f"{unit!r} ({count})" for unit, count in counts.most_common())
        return None, {}, (f"amounts in several currencies, {listed}: convert them",) * money
    kept = {unit for unit in counts if _family(unit) == main}
    others = [unit for unit in counts if unit not in kept]
    n = sum(counts[unit] for unit in others)
    asked = f"{n} cell(s) in {shown(map(repr, others))}: convert them, they are not read"
    return kept, {}, (asked,) if others else ()


def _family(unit: str) -> str:
    """Return what the spellings of one unit have in common."""
    if unit in TIME_UNITS:
        return f"{TIME_UNITS[unit]} days"
    return CURRENCIES.get(unit, unit.rstrip(".").removesuffix("s"))


def _by_count(units: Iterable[str], parts: Sequence[_Parts]) -> list[str]:
    counts = Counter(dict.fromkeys(units, 0))
    for part in parts:
        for unit in part.units:
            counts[unit] += part.count
    spelled = {unit: _as_written(unit, parts) for unit in counts}
    return [spelled[unit] for unit, _ in counts.most_common()]


def _as_written(unit: str, parts: Sequence[_Parts]) -> str:
    """Return a unit in the capitals of the file."""
    for part in parts:
        place = part.text.casefold().find(unit) if unit in part.units else -1
        if place >= 0 and len(part.text.casefold()) == len(part.text):
            return part.text[place : place + len(unit)]
    return unit


def _ways(base: NumberReading, parts: Sequence[_Parts], least: float) -> tuple[NumberReading, ...]:
    """Return the marks under which most cells are numbers; several if they give other values.

    None where fewer than ``least`` cells are numbers under any marks.
    """
    cells = pd.Series([part.text for part in parts], dtype="str")
    weights = np.array([part.count for part in parts], dtype=np.float64)
    read: dict[NumberReading, np.ndarray] = {}
    for decimal, thousands in MARKS:
        way = replace(base, decimal=decimal, thousands=thousands)
        values, _, strange = way.read(cells)
        read[way] = np.where(strange, np.nan, values)
    fits = {way: float(weights[~np.isnan(values)].sum()) for way, values in read.items()}
    best = [way for way in read if fits[way] == max(fits.values()) >= least]
    kept: list[NumberReading] = []
    for way in best:
        if not any(np.array_equal(read[way], read[other], equal_nan=True) for other in kept):
            kept.append(way)
    return tuple(kept)


def _said(ways: Sequence[NumberReading], counts: Counter[str]) -> tuple[str, ...]:
    """Say how the numbers are written, where it is not plainly, and which cells do not fit."""
    way = ways[0]
    cells = pd.Series(list(counts), dtype="str")
    strange = way.read(cells)[2]
    reasons = []
    if len(ways) == 1 and (way.decimal != "." or way.thousands):
        text = f"{way.decimal!r} is the decimal mark"
        text += f", {way.thousands!r} groups thousands" if way.thousands else ""
        reasons.append(text)
    if strange.any():
        n = sum(counts[word] for word in cells[strange])
        listed = shown(map(repr, cells[strange]), cap=3)
        reasons.append(f"{n} cells are not numbers, such as {listed}: missing_values?")
    return tuple(reasons)


def guess_dates(words: pd.Series) -> DateGuess | None:
    """Return how a column of texts is read as dates; None where it holds none."""
    counts = present(words)
    if not counts or not _looks_dated(counts):
        return None
    cells = pd.Series(list(counts), dtype="str")
    weights = np.array([counts[cell] for cell in cells], dtype=np.float64)
    shares: dict[str, float] = {}
    values: dict[str, pd.Series] = {}
    for form in _formats(cells):
        values[form], _, strange = DateReading(formats=(form,)).dates(cells)
        shares[form] = float(weights[~strange].sum() / weights.sum())
    best = max(shares.values(), default=0.0)
    if best < MOSTLY:
        return _of_two(cells, weights, shares, values)
    top = [form for form in shares if shares[form] == best]
    kept: list[str] = []
    for form in top:
        if not any(values[form].equals(values[other]) for other in kept):
            kept.append(form)
    ways = tuple(DateReading(formats=(form,)) for form in kept)
    return DateGuess(ways, _date_reasons(kept, cells, weights, values[kept[0]], shares))


def _looks_dated(counts: Counter[str]) -> bool:
    """Return whether most cells hold at least two numbers or a month, and not much else."""
    form = re.compile(r"^\W*([^\W\d_]{3,10}\W+)?\d{1,4}([\W_]+(\d{1,4}|[^\W\d_]{3,10}))|^\d{8}$")
    dated = sum(n for cell, n in counts.items() if form.match(cell) and len(cell) <= 40)
    return dated >= MOSTLY * counts.total()


def _formats(cells: pd.Series) -> list[str]:
    """Return the formats that read one of some cells."""
    sample = [in_english(cell.strip()) for cell in cells.iloc[:: max(len(cells) // 8, 1)]]

    def reads(form: str, cell: str) -> bool:
        try:
            datetime.strptime(cell, form)
        except ValueError:
            return False
        return True

    every = ("".join(pair) for pair in itertools.product(_DATES, _TIMES))
    return [ISO, *(form for form in every if any(reads(form, cell) for cell in sample))]


def _of_two(
    cells: pd.Series, weights: np.ndarray, shares: dict[str, float], values: dict[str, pd.Series]
) -> DateGuess | None:
    """Return two formats that together read a column of both, unless days and months may swap."""
    for one, other in itertools.combinations(sorted(shares, key=shares.__getitem__)[::-1][:8], 2):
        swapped = (values[one] != values[other]) & values[one].notna() & values[other].notna()
        both = (values[one].notna() | values[other].notna()).to_numpy(np.bool_)
        if weights[both].sum() >= MOSTLY * weights.sum() and not swapped.any():
            reason = f"dates in two formats, {one} and {other}"
            read = values[one].fillna(values[other])
            stray = _stray(cells, weights, read)
            return DateGuess((DateReading(formats=(one, other)),), (reason, *stray))
    return None


def _stray(cells: pd.Series, weights: np.ndarray, read: pd.Series) -> tuple[str, ...]:
    gone = read.isna().to_numpy(np.bool_)
    if not gone.any():
        return ()
    listed = shown(map(repr, cells[gone]), cap=3)
    return (f"{int(weights[gone].sum())} cells are no dates, such as {listed}",)


def _date_reasons(
    kept: Sequence[str],
    cells: pd.Series,
    weights: np.ndarray,
    read: pd.Series,
    shares: dict[str, float],
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
    for text in DATE_SENTINELS:
        n = int(weights[(read == pd.Timestamp(text)).to_numpy(np.bool_)].sum())
        if n:
            reasons.append(f"{text} in {n} row(s): no value? then missing_values: ['{text}']")
    return (*reasons, *_stray(cells, weights, read))


def sentinel_reasons(values: np.ndarray) -> tuple[str, ...]:
    """Point out numbers that often stand for no value, where they lie beyond all others."""
    finite = values[np.isfinite(values)]
    said = []
    for value in SENTINELS:
        there = finite == value
        rest = finite[~np.isin(finite, SENTINELS)]
        if not there.any() or len(np.unique(rest)) < 3:
            continue
        beyond = value < min(rest.min(), 0.0) or value > rest.max()
        if beyond and (there.sum() > 1 or abs(value) / 2 > np.abs(rest).max()):
            said.append(
                f"{value:g} in {int(there.sum())} row(s): no value? then read: "
                f"{{missing_values: [{value:g}]}}"
            )
    return tuple(said)
