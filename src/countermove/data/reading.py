"""How the cells of a column are read where they are no plain numbers and words.

One column, one recipe: decimal mark and units of a number, format of a date and what becomes of
it, spellings of a word. A cell that does not fit the recipe is unreadable, never guessed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from countermove._types import Floats, Mask
from countermove.data.parsing import MISSING_WORDS, is_number, numbers, texts

if TYPE_CHECKING:
    import pyarrow as pa

Cells: TypeAlias = tuple[Floats, Mask, Mask]
"""Numbers (NaN where none), which cells are missing, which are unreadable."""

Negative: TypeAlias = Literal["minus", "parentheses", "trailing"]
NEGATIVES: tuple[Negative, ...] = ("minus", "parentheses", "trailing")

Becomes: TypeAlias = Literal[
    "date", "age", "days", "months", "years", "year", "month", "weekday", "hour"
]
BECOMES: tuple[Becomes, ...] = (
    "date", "age", "days", "months", "years", "year", "month", "weekday", "hour",
)  # fmt: skip
SINCE = ("age", "days", "months", "years")
"""What takes a second moment to count to."""

Unseen: TypeAlias = Literal["quarantine", "pooled"]
UNSEEN: tuple[Unseen, ...] = ("quarantine", "pooled")

ISO = "iso"
"""The format of dates such as 2024-12-31 and 2024-12-31T23:59:59+01:00."""

DAYS = {"days": 1.0, "months": 365.25 / 12, "years": 365.25}

_NAMES = {
    "Jan": "january januar janvier enero gennaio januari janeiro jän jän. janv janv. ene genn gen",
    "Feb": "february februar février fevrier febrero febbraio februari fevereiro févr févr. fév",
    "Mar": "march märz maerz mars marzo maart março mär mär. mrz marz mrt",
    "Apr": "april avril abril aprile avr avr. abr",
    "May": "mai mayo maggio mei maio mag",
    "Jun": "june juni juin junio giugno junho giu",
    "Jul": "july juli juillet julio luglio julho juil juil. lug",
    "Aug": "august août aout agosto augustus ago aoû",
    "Sep": "september septembre septiembre settembre setembro sept sept. set",
    "Oct": "october oktober octobre octubre ottobre outubro okt okt. out ott",
    "Nov": "november novembre noviembre novembro nov.",
    "Dec": "dezember décembre decembre diciembre dicembre december dezembro dez dez. déc déc. dic",
}
_MONTHS = {name: month for month, names in _NAMES.items() for name in names.split()}
"""Months in English, German, French, Spanish, Italian, Dutch and Portuguese, as ``%b`` reads."""
_MONTH_NAME = re.compile(
    r"(?<![^\W\d_])("
    + "|".join(map(re.escape, sorted(_MONTHS, key=len, reverse=True)))
    + r")(?![^\W\d_])",
    re.IGNORECASE,
)

_INVISIBLE = re.compile("[\u200b\u200c\u200d\u2060\ufeff\u00ad]")


def folded(text: str) -> str:
    """Return the form in which spellings are compared: NFKC, no capitals, single blanks."""
    plain = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
    return " ".join(plain.casefold().split())


@dataclass(frozen=True)
class CellReading:
    """What every recipe has.

    Parameters
    ----------
    source
        Column of the file that is read, if the feature has another name.
    missing_values
        Cells that stand for no value: -9, 999, 9999-12-31. Numbers are compared as numbers.
    """

    source: str | None = None
    missing_values: tuple[str, ...] = ()

    def to_entry(self) -> dict[str, Any]:
        """Return the recipe as a schema's ``read:`` would hold it."""
        entry: dict[str, Any] = {} if self.source is None else {"from": self.source}
        values = [_plain(value) for value in self.missing_values]
        return entry | ({"missing_values": values} if values else {})

    def meaning(self) -> dict[str, Any]:
        """Return what a rule's reading of the column depends on; how a file writes it does not."""
        return CellReading(self.source, self.missing_values).to_entry()

    def written(self, cell: object) -> str:
        """Return a cell of a workbook as this recipe reads it."""
        return str(cell)

    @property
    def nothing(self) -> frozenset[str]:
        """The folded texts that stand for no value, as the schema lists them."""
        return frozenset(map(folded, self.missing_values))


@dataclass(frozen=True)
class NumberReading(CellReading):
    """Numbers as people write them.

    Parameters
    ----------
    decimal, thousands
        The marks; any blank is ``" "``, any apostrophe ``"'"``. Without ``thousands`` digits are
        not grouped.
    units
        Texts that may stand before or behind the number (currencies, ``%``, ``months``), in any
        capitals, each with the factor that its number is multiplied by.
    bare
        Whether a number may also stand without any of them.
    negative
        How numbers below zero are written beside ``-5``: ``(5)`` or ``5-``.
    """

    decimal: str = "."
    thousands: str = ""
    units: tuple[tuple[str, float], ...] = ()
    bare: bool = True
    negative: Negative = "minus"

    def to_entry(self) -> dict[str, Any]:
        """Return the recipe as a schema's ``read:`` would hold it."""
        factors = {text: _whole(factor) for text, factor in self.units}
        entry = {
            "decimal": self.decimal if self.decimal != "." else None,
            "thousands": self.thousands or None,
            "units": list(factors) if set(factors.values()) <= {1} else factors,
            "bare": None if self.bare else False,
            "negative": self.negative if self.negative != "minus" else None,
        }
        return super().to_entry() | {k: v for k, v in entry.items() if v not in (None, [])}

    def meaning(self) -> dict[str, Any]:
        """Return what a rule's reading of the column depends on."""
        factors = {text: factor for text, factor in self.units if factor != 1.0}
        return super().meaning() | ({"units": factors} if factors else {})

    def written(self, cell: object) -> str:
        """Return a cell of a workbook as this recipe reads it."""
        exact = isinstance(cell, int | float) and not isinstance(cell, bool)
        return repr(cell).replace(".", self.decimal) if exact else str(cell)

    def read(self, values: pd.Series) -> Cells:
        """Return a column as numbers, which cells are missing, and which are unreadable."""
        if pd.api.types.is_bool_dtype(values.dtype) or pd.api.types.is_numeric_dtype(values.dtype):
            read, missing, strange = numbers(values)
        elif values.dtype == object:
            read, missing, strange = self._of_objects(values)
        else:
            read, missing, strange = self._of_texts(values)
        listed = [float(v) for v in self.missing_values if is_number(v)]
        missing = missing | np.isin(read, listed)
        read = np.where(missing, np.nan, read)
        return read, missing, strange & ~missing

    def _of_objects(self, values: pd.Series) -> Cells:
        """Read a column in which a workbook mixes numbers and texts."""
        exact = np.array([isinstance(c, int | float) and not isinstance(c, bool) for c in values])
        read, missing, strange = self._of_texts(values.where(~exact, None))
        direct = pd.to_numeric(values.where(exact, None)).to_numpy(np.float64, na_value=np.nan)
        read = np.where(exact, direct, read)
        missing = np.where(exact, np.isnan(direct), missing)
        return read, missing, np.where(exact, not self.bare, strange)

    def _of_texts(self, values: pd.Series) -> Cells:
        parts = _NumberParts.of(texts(values), self.nothing | MISSING_WORDS)
        missing = parts.missing
        parts.take_signs(self.negative)
        factor, found = parts.take_units(self.units)
        parts.take_sign()
        read = parts.numbers(self.decimal, self.thousands) * factor
        strange = np.isnan(read) if self.bare else np.isnan(read) | ~found
        return np.where(strange | missing, np.nan, read), missing, strange & ~missing


class _NumberParts:
    """Cells from which sign and units are taken one after the other."""

    def __init__(self, cells: pa.Array, missing: Mask) -> None:
        self.cells, self.missing = cells, missing
        self._below = np.zeros(len(cells), dtype=np.bool_)
        self._signed = np.zeros(len(cells), dtype=np.bool_)

    @classmethod
    def of(cls, words: pd.Series, nothing: frozenset[str]) -> _NumberParts:
        """Return cells in one form; those that are ``nothing`` are missing."""
        import pyarrow as pa
        import pyarrow.compute as pc

        missing = words.isna().to_numpy(np.bool_)
        cells = pa.array(words.fillna(""), type=pa.string())
        if isinstance(cells, pa.ChunkedArray):
            cells = cells.combine_chunks()
        if not pc.all(pc.string_is_ascii(cells)).as_py():
            cells = pc.utf8_normalize(cells, "NFKC")
            for text, plain in (("\u2212", "-"), ("\u2013", "-"), ("\u2019", "'"), ("\u00b4", "'")):
                cells = pc.replace_substring(cells, text, plain)
        cells = pc.utf8_lower(pc.utf8_trim_whitespace(cells))
        blank = pc.is_in(cells, value_set=pa.array(sorted(nothing)))
        return cls(cells, missing | np.asarray(blank, dtype=np.bool_))

    def take_signs(self, negative: Negative) -> None:
        """Take what marks a number below zero, and a leading sign."""
        import pyarrow.compute as pc

        if negative == "parentheses":
            both = pc.and_(pc.starts_with(self.cells, "("), pc.ends_with(self.cells, ")"))
            self._take(both, 1, -1, below=True)
        elif negative == "trailing":
            self._take(pc.ends_with(self.cells, "-"), 0, -1, below=True)
        self.take_sign()

    def take_sign(self) -> None:
        """Take a leading sign, unless the cell had one before."""
        import pyarrow as pa
        import pyarrow.compute as pc

        for mark, below in (("-", True), ("+", False)):
            first = pc.and_not(pc.starts_with(self.cells, mark), pa.array(self._signed))
            self._take(first, 1, None, below)

    def take_units(self, units: Iterable[tuple[str, float]]) -> tuple[Floats, Mask]:
        """Take at most one text before and one behind; return factors, and who had one."""
        import pyarrow as pa
        import pyarrow.compute as pc

        factor = np.ones(len(self.cells))
        ends = {end: np.zeros(len(factor), np.bool_) for end in ("before", "behind")}
        known = {folded(text): value for text, value in units}
        for text in sorted(known, key=len, reverse=True):
            for end, taken in ends.items():
                there = pc.starts_with if end == "before" else pc.ends_with
                found = pc.and_not(there(self.cells, text), pa.array(taken))
                mask = np.asarray(found, dtype=np.bool_)
                cut = (len(text), None) if end == "before" else (0, -len(text))
                self._take(found, *cut)
                factor[mask] *= known[text]
                taken |= mask
        return factor, ends["before"] | ends["behind"]

    def numbers(self, decimal: str, thousands: str) -> Floats:
        """Return what is left as numbers, NaN where it is none."""
        import pyarrow as pa
        import pyarrow.compute as pc

        mark, group = re.escape(decimal), re.escape(thousands)
        # 0.123 is no thousand; 12,34,567 is grouped as in India.
        grouped = rf"[1-9]\d{{0,2}}({group}\d{{2,3}})*{group}\d{{3}}"
        whole = rf"({grouped}|\d+)" if thousands else r"\d+"
        form = rf"^({whole}({mark}\d*)?|{mark}\d+)(e[+-]?\d+)?$"
        cells = self.cells
        fits = pc.match_substring_regex(cells, form)
        cells = pc.if_else(fits, cells, pa.scalar(None, pa.string()))
        cells = pc.replace_substring(cells, thousands, "") if thousands else cells
        cells = cells if decimal == "." else pc.replace_substring(cells, decimal, ".")
        read = np.array(pc.cast(cells, pa.float64()).to_numpy(zero_copy_only=False))
        return np.where(self._below, -read, read)

    def _take(self, mask: Any, start: int, stop: int | None, below: bool | None = None) -> None:
        """Cut the marked cells, trim them, and note their sign."""
        import pyarrow.compute as pc

        found = np.asarray(mask, dtype=np.bool_)
        if not found.any():
            return
        cut = pc.utf8_trim_whitespace(pc.utf8_slice_codeunits(self.cells, start, stop))
        self.cells = pc.if_else(mask, cut, self.cells)
        if below is not None:
            self._signed |= found
            self._below ^= found & below


@dataclass(frozen=True)
class DateReading(CellReading):
    """Dates and times, and what becomes of them.

    Parameters
    ----------
    formats
        ``iso``, or formats of `datetime.strptime` such as ``%d.%m.%Y``; a cell is read by the
        first that fits.
    becomes
        ``date`` orders rows in time; a feature is an ``age`` in completed years, the ``days``,
        ``months`` or ``years`` up to ``until``, or the ``year``, ``month``, ``weekday`` (Monday is
        1) or ``hour`` itself.
    until
        To which moment is counted: another column, read in its own way, or a date such as
        2024-12-31, on which the table was extracted.
    """

    formats: tuple[str, ...] = (ISO,)
    becomes: Becomes = "date"
    until: str | None = None

    def to_entry(self) -> dict[str, Any]:
        """Return the recipe as a schema's ``read:`` would hold it."""
        formats: Any = list(self.formats) if len(self.formats) > 1 else self.formats[0]
        entry: dict[str, Any] = {"date": formats}
        entry |= {"as": self.becomes} if self.becomes != "date" else {}
        entry |= {"until": self.until} if self.until is not None else {}
        return super().to_entry() | entry

    def meaning(self) -> dict[str, Any]:
        """Return what a rule's reading of the column depends on."""
        return super().meaning() | {"as": self.becomes, "until": self.until}

    def written(self, cell: object) -> str:
        """Return a cell of a workbook as this recipe reads it."""
        form = self.formats[0]
        if not isinstance(cell, date):
            return str(cell)
        return cell.isoformat() if form == ISO else cell.strftime(form)

    @property
    def until_column(self) -> str | None:
        """The column that is counted to, if it is no date itself."""
        return None if self.until is None or _fixed_date(self.until) is not None else self.until

    def dates(self, values: pd.Series) -> tuple[pd.Series, Mask, Mask]:
        """Return the moments (UTC, without a zone), which cells are missing, which unreadable."""
        if pd.api.types.is_datetime64_any_dtype(values.dtype):
            found = pd.to_datetime(values, utc=True).dt.tz_localize(None).reset_index(drop=True)
            missing = found.isna().to_numpy(np.bool_)
        else:
            # Each different cell is read once; the last place is that of no cell at all.
            codes, distinct = pd.factorize(texts(values))
            words = pd.Series(distinct, dtype="str")
            read = pd.concat([_dates(words, self.formats), pd.Series([pd.NaT])])
            nothing = self.nothing | MISSING_WORDS
            blank = [folded(word) in nothing for word in words]
            missing = np.array([*blank, True])[codes]
            found = read.iloc[codes].reset_index(drop=True)
        missing = missing | found.isin(self._sentinels()).to_numpy(np.bool_)
        moments = found.mask(missing).dt.as_unit("us")
        return moments, missing, moments.isna().to_numpy(np.bool_) & ~missing

    def _sentinels(self) -> list[pd.Timestamp]:
        dates = (_fixed_date(value) for value in self.missing_values)
        return [date for date in dates if date is not None]

    def read(self, values: pd.Series, until: pd.Series | None = None) -> Cells:
        """Return what becomes of the dates, as numbers; ``until`` holds the other column's dates.

        A row whose other moment is missing or unreadable is missing.
        """
        moments, missing, strange = self.dates(values)
        if self.becomes not in SINCE:
            part = "day_of_week" if self.becomes == "weekday" else self.becomes
            found = getattr(moments.dt, part).to_numpy(np.float64, na_value=np.nan)
            return found + (self.becomes == "weekday"), missing, strange
        fixed = None if self.until is None else _fixed_date(self.until)
        end = until if until is not None else pd.Series([fixed] * len(moments))
        end = end.reset_index(drop=True).dt.as_unit("us")
        read = _completed_years(moments, end) if self.becomes == "age" else _apart(moments, end)
        read = read / DAYS.get(self.becomes, 1.0)
        return read, missing | (np.isnan(read) & ~strange), strange


def _dates(words: pd.Series, formats: Iterable[str]) -> pd.Series:
    found = pd.Series(pd.NaT, index=words.index, dtype="datetime64[us]")
    for form in formats:
        strptime = "ISO8601" if form == ISO else form.replace("%B", "%b")
        cells = words.map(in_english, na_action="ignore") if "%b" in strptime else words
        read = pd.to_datetime(cells, format=strptime, errors="coerce", utc=True)
        found = found.fillna(read.dt.tz_localize(None).dt.as_unit("us"))
    return found


def in_english(text: str) -> str:
    """Return a date with the name of its month in English, where another language is known."""
    return _MONTH_NAME.sub(lambda found: _MONTHS[folded(found[0])], text)


def _fixed_date(text: str) -> pd.Timestamp | None:
    """Return the moment that an ISO date names, None for any other text."""
    if not re.match(r"\d{4}-\d{2}-\d{2}", text):
        return None
    read = pd.to_datetime(pd.Series([text]), format="ISO8601", errors="coerce", utc=True)
    return None if read.isna().any() else read.dt.tz_localize(None).iloc[0]


def _apart(start: pd.Series, end: pd.Series) -> Floats:
    return np.asarray((end - start).dt.total_seconds(), dtype=np.float64) / 86_400


def _completed_years(start: pd.Series, end: pd.Series) -> Floats:
    years = end.dt.year - start.dt.year
    before = (end.dt.month * 100 + end.dt.day) < (start.dt.month * 100 + start.dt.day)
    read: Floats = (years - before.astype(float)).to_numpy(np.float64, na_value=np.nan)
    return np.where(start.isna() | end.isna(), np.nan, read)


@dataclass(frozen=True)
class WordReading(CellReading):
    """Words in several spellings.

    Parameters
    ----------
    fold
        Whether capitals, blanks and the unicode form of a word do not matter.
    spellings
        Other words for a category.
    pooled
        The category of rare levels.
    rare
        Share of the rows below which the draft pooled a level; for people to read.
    unseen
        Where a word that is no category goes: into ``pooled``, or the row into quarantine.
    """

    fold: bool = False
    spellings: tuple[tuple[str, tuple[str, ...]], ...] = ()
    pooled: str | None = None
    rare: float | None = None
    unseen: Unseen = "quarantine"

    def to_entry(self) -> dict[str, Any]:
        """Return the recipe as a schema's ``read:`` would hold it."""
        entry: dict[str, Any] = {
            "fold": self.fold or None,
            "spellings": {word: list(others) for word, others in self.spellings} or None,
            "rare": self.rare,
            "pooled": self.pooled,
            "unseen": self.unseen if self.unseen != "quarantine" else None,
        }
        return super().to_entry() | {k: v for k, v in entry.items() if v is not None}

    def meaning(self) -> dict[str, Any]:
        """Return what a rule's reading of the column depends on."""
        pooled = {"pooled": self.pooled} if self.unseen == "pooled" else {}
        return super().meaning() | pooled

    def read(self, values: pd.Series, categories: Iterable[str] = ()) -> pd.Series:
        """Return a column in the spelling of the categories; words of none stay as they are.

        Without categories a folded column takes the folded form itself.
        """
        known = list(categories)
        words = texts(values, numeric=bool(known) and all(map(is_number, known)))
        codes, distinct = pd.factorize(words)
        table = pd.Series(self._translated(map(str, distinct), known), dtype="str")
        padded = pd.concat([table, pd.Series([None], dtype="str")], ignore_index=True)
        return padded.iloc[codes].set_axis(words.index)

    def _translated(self, words: Iterable[str], categories: list[str]) -> list[str | None]:
        """Return the category each word stands for, itself if for none; None if for no value."""
        form = folded if self.fold else str
        listed = {form(other): word for word, others in self.spellings for other in (word, *others)}
        listed |= {form(category): category for category in categories}
        nothing = self.nothing
        pooled = self.pooled if categories and self.unseen == "pooled" else None
        return [
            None
            if nothing and folded(word) in nothing
            else listed.get(form(word), pooled or (word if categories else form(word)))
            for word in words
        ]


Reading: TypeAlias = NumberReading | DateReading | WordReading


def written_out(frame: pd.DataFrame, readings: Mapping[str, CellReading]) -> pd.DataFrame:
    """Return a table whose columns of several types are texts, for files that hold one type."""
    columns = {}
    for name in map(str, frame.columns):
        cells, recipe = frame[name], readings.get(name, CellReading())
        if cells.dtype == object:
            texts_of = [None if pd.isna(cell) else recipe.written(cell) for cell in cells]
            columns[name] = pd.Series(texts_of, index=frame.index, dtype="str")
    return frame.assign(**columns)


def _plain(value: str) -> str | int | float:
    """Return a text as the number it spells, for a schema that reads well."""
    if not is_number(value) or not np.isfinite(float(value)):
        return value
    return _whole(float(value))


def _whole(value: float) -> int | float:
    return int(value) if float(value).is_integer() else value


def until_dates(
    table: Mapping[str, pd.Series] | pd.DataFrame, reading: DateReading, own: DateReading | None
) -> pd.Series | None:
    """Return the dates of the column that is counted to, read as it says itself, else alike."""
    column = reading.until_column
    if column is None:
        return None
    return (own or DateReading(formats=reading.formats)).dates(table[column])[0]
