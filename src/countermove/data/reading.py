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

__all__ = [
    "BECOMES",
    "ISO",
    "SINCE",
    "Becomes",
    "Cells",
    "DateCells",
    "DateReading",
    "NumberReading",
    "Reading",
    "WordReading",
    "folded",
    "until_dates",
    "written_out",
]

Cells: TypeAlias = tuple[Floats, Mask, Mask]
"""Numbers (NaN where none), which cells are missing, which are unreadable."""

DateCells: TypeAlias = tuple[pd.Series, Mask, Mask]
"""Dates (UTC, without a zone, NaT where none), which cells are missing, which are unreadable."""

Becomes: TypeAlias = Literal[
    "date", "age", "days", "months", "years", "year", "month", "weekday", "hour"
]
BECOMES: tuple[Becomes, ...] = (
    "date", "age", "days", "months", "years", "year", "month", "weekday", "hour",
)  # fmt: skip
SINCE = ("age", "days", "months", "years")
"""What takes a second moment to count to."""

ISO = "iso"
"""The format of dates such as 2024-12-31 and 2024-12-31T23:59:59+01:00."""

DAYS = {"days": 1.0, "months": 365.25 / 12, "years": 365.25}

_INVISIBLE = re.compile("[\u200b\u200c\u200d\u2060\ufeff\u00ad]")
_MARKS = str.maketrans({"−": "-", "–": "-", "’": "'", "´": "'"})


def folded(text: str) -> str:
    """Return the form in which spellings are compared: NFKC, no capitals, single blanks."""
    plain = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
    return " ".join(plain.casefold().split())


def plain_marks(text: str) -> str:
    """Return the folded form of a number: one sort of minus, of apostrophe and of blank."""
    return folded(text).translate(_MARKS)


def whole(value: float) -> int | float:
    """Return 50.0 as 50."""
    return int(value) if float(value).is_integer() else value


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
        values = [_number_or_text(value) for value in self.missing_values]
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


def _number_or_text(value: str) -> str | int | float:
    """Return a text as the number it spells, for a schema that reads well."""
    if not is_number(value) or not np.isfinite(float(value)):
        return value
    return whole(float(value))


@dataclass(frozen=True)
class NumberReading(CellReading):
    """Numbers as people write them; ``(5)`` and ``5-`` are below zero.

    Parameters
    ----------
    decimal, thousands
        The marks; any blank is ``" "``, any apostrophe ``"'"``. Without ``thousands`` digits are
        not grouped.
    units
        Texts that may stand before or behind the number (currencies, ``%``, ``months``), in any
        capitals, each with the factor that its number is multiplied by. Where factors differ, or
        the unit is ``%``, a number without one is unreadable.
    """

    decimal: str = "."
    thousands: str = ""
    units: tuple[tuple[str, float], ...] = ()

    @property
    def bare(self) -> bool:
        """Whether a number may also stand without a unit."""
        return len({factor for _, factor in self.units}) < 2 and "%" not in dict(self.units)

    def to_entry(self) -> dict[str, Any]:
        """Return the recipe as a schema's ``read:`` would hold it."""
        factors = {text: whole(factor) for text, factor in self.units}
        entry: dict[str, Any] = {
            "decimal": self.decimal if self.decimal != "." else "",
            "thousands": self.thousands,
            "units": list(factors) if set(factors.values()) <= {1} else factors,
        }
        return super().to_entry() | {key: value for key, value in entry.items() if value}

    def meaning(self) -> dict[str, Any]:
        """Return what a rule's reading of the column depends on."""
        factors = {text: factor for text, factor in self.units if factor != 1.0}
        return super().meaning() | ({"units": factors} if factors else {})

    def written(self, cell: object) -> str:
        """Return a cell of a workbook as this recipe reads it."""
        return repr(cell).replace(".", self.decimal) if _exact(cell) else str(cell)

    def read(self, values: pd.Series) -> Cells:
        """Return a column as numbers, which cells are missing, and which are unreadable."""
        if pd.api.types.is_bool_dtype(values.dtype) or pd.api.types.is_numeric_dtype(values.dtype):
            read, missing, strange = numbers(values)
        elif values.dtype == object:
            # A workbook mixes numbers and texts.
            exact = np.array([_exact(cell) for cell in values], dtype=np.bool_)
            read, missing, strange = self._of_texts(values.where(~exact, None))
            direct = pd.to_numeric(values.where(exact, None)).to_numpy(np.float64, na_value=np.nan)
            read = np.where(exact, direct, read)
            missing = np.where(exact, np.isnan(direct), missing)
            strange = np.where(exact, not self.bare, strange)
        else:
            read, missing, strange = self._of_texts(values)
        listed = [float(value) for value in self.missing_values if is_number(value)]
        missing = missing | np.isin(read, listed)
        return np.where(missing, np.nan, read), missing, strange & ~missing

    def _of_texts(self, values: pd.Series) -> Cells:
        import pyarrow as pa
        import pyarrow.compute as pc

        words = texts(values).reset_index(drop=True)
        cells = _plain_cells(words)
        nothing = MISSING_WORDS.union(map(plain_marks, self.missing_values))
        blank = pc.is_in(cells, value_set=pa.array(sorted(nothing)))
        missing = words.isna().to_numpy(np.bool_) | np.asarray(blank)
        found = pc.extract_regex(cells, self._form())
        body = pc.struct_field(found, "body")
        body = pc.replace_substring(body, self.thousands, "") if self.thousands else body
        body = pc.cast(pc.replace_substring(body, self.decimal, "."), pa.float64())
        read = np.array(body.to_numpy(zero_copy_only=False))

        def is_(name: str, text: str) -> Mask:
            same = pc.equal(pc.struct_field(found, name), text)
            return np.asarray(pc.fill_null(same, fill_value=False))

        lone = np.ones(len(read), dtype=np.bool_)
        for unit, factor in {folded(text): factor for text, factor in self.units}.items():
            for end in ("before", "behind"):
                there = is_(end, unit)
                lone &= ~there
                read = np.where(there, read * factor, read)
        below = [is_("sign", "-"), is_("inner", "-"), is_("close", "-"), is_("open", "(")]
        signs = np.sum([*below, is_("sign", "+"), is_("inner", "+")], axis=0)
        strange = np.isnan(read) | (signs > 1) | (is_("open", "(") != is_("close", ")"))
        strange |= lone & (not self.bare)
        read = np.where(np.any(below, axis=0), -read, read)
        return np.where(strange | missing, np.nan, read), missing, strange & ~missing

    def _form(self) -> str:
        """Return the regular expression of a number with its sign and units."""
        mark, group = re.escape(self.decimal), re.escape(self.thousands)
        # 0.123 is no thousand; 12,34,567 is grouped as in India.
        digits = rf"[1-9]\d{{0,2}}(?:{group}\d{{2,3}})*{group}\d{{3}}|\d+" if group else r"\d+"
        listed = sorted((folded(text) for text, _ in self.units), key=len, reverse=True)
        unit = "|".join(map(re.escape, listed))
        return (
            rf"^(?P<open>\(?)(?P<sign>[+-]?) ?(?P<before>(?:{unit})?) ?(?P<inner>[+-]?) ?"
            rf"(?P<body>(?:(?:{digits})(?:{mark}\d*)?|{mark}\d+)(?:e[+-]?\d+)?) ?"
            rf"(?P<behind>(?:{unit})?)(?P<close>[)-]?)$"
        )


def _plain_cells(words: pd.Series) -> pa.Array:
    """Return cells in the form of `plain_marks`, all at once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = pa.array(words.fillna(""), type=pa.string())
    if isinstance(cells, pa.ChunkedArray):
        cells = cells.combine_chunks()
    if not pc.all(pc.string_is_ascii(cells)).as_py():
        cells = pc.replace_substring_regex(cells, _INVISIBLE.pattern, "")
        cells = pc.utf8_normalize(cells, "NFKC")
        for mark, plain in _MARKS.items():
            cells = pc.replace_substring(cells, chr(mark), plain)
    cells = pc.replace_substring_regex(pc.utf8_lower(cells), r"\s+", " ")
    return pc.utf8_trim_whitespace(cells)


def _exact(cell: object) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


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

    def dates(self, values: pd.Series) -> DateCells:
        """Return the moments, which cells are missing, and which are unreadable."""
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
        listed = [day for value in self.missing_values if (day := _fixed_date(value)) is not None]
        missing = missing | found.isin(listed).to_numpy(np.bool_)
        moments = found.mask(missing).dt.as_unit("us")
        return moments, missing, moments.isna().to_numpy(np.bool_) & ~missing

    def read(self, values: pd.Series, until: DateCells | None = None) -> Cells:
        """Return what becomes of the dates, as numbers; ``until`` holds the other column's dates.

        A date that is there is never missing: without the other moment it is unreadable.
        """
        moments, missing, strange = self.dates(values)
        if self.becomes not in SINCE:
            part = "day_of_week" if self.becomes == "weekday" else self.becomes
            found = getattr(moments.dt, part).to_numpy(np.float64, na_value=np.nan)
            return found + (self.becomes == "weekday"), missing, strange
        fixed = None if self.until is None else _fixed_date(self.until)
        end = until[0] if until is not None else pd.Series([fixed] * len(moments))
        end = end.reset_index(drop=True).dt.as_unit("us")
        if self.becomes == "age":
            read = _completed_years(moments, end)
        else:
            apart = np.asarray((end - moments).dt.total_seconds(), dtype=np.float64) / 86_400
            read = apart / DAYS[self.becomes]
        return read, missing, np.isnan(read) & ~missing


def _dates(words: pd.Series, formats: Iterable[str]) -> pd.Series:
    found = pd.Series(pd.NaT, index=words.index, dtype="datetime64[us]")
    for form in formats:
        strptime = "ISO8601" if form == ISO else form
        read = pd.to_datetime(words, format=strptime, errors="coerce", utc=True)
        found = found.fillna(read.dt.tz_localize(None).dt.as_unit("us"))
    return found


def _fixed_date(text: str) -> pd.Timestamp | None:
    """Return the moment that an ISO date names, None for any other text."""
    if not re.match(r"\d{4}-\d{2}-\d{2}", text):
        return None
    read = pd.to_datetime(pd.Series([text]), format="ISO8601", errors="coerce", utc=True)
    return None if read.isna().any() else read.dt.tz_localize(None).iloc[0]


def _completed_years(start: pd.Series, end: pd.Series) -> Floats:
    years = end.dt.year - start.dt.year
    before = (end.dt.month * 100 + end.dt.day) < (start.dt.month * 100 + start.dt.day)
    read: Floats = (years - before.astype(float)).to_numpy(np.float64, na_value=np.nan)
    return np.where(start.isna() | end.isna(), np.nan, read)


def until_dates(
    table: Mapping[str, pd.Series] | pd.DataFrame,
    reading: DateReading,
    until: CellReading | None = None,
) -> DateCells | None:
    """Return the dates of the column that is counted to.

    It is read as it says itself (``until``), else as the dates that are counted.
    """
    column = reading.until_column
    if column is None:
        return None
    way = until if isinstance(until, DateReading) else DateReading(formats=reading.formats)
    return way.dates(table[column])


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
        The category of every word that is none; without it such a row goes into quarantine.
    """

    fold: bool = False
    spellings: tuple[tuple[str, tuple[str, ...]], ...] = ()
    pooled: str | None = None

    def to_entry(self) -> dict[str, Any]:
        """Return the recipe as a schema's ``read:`` would hold it."""
        entry: dict[str, Any] = {
            "fold": self.fold,
            "spellings": {word: list(others) for word, others in self.spellings},
            "pooled": self.pooled,
        }
        return super().to_entry() | {key: value for key, value in entry.items() if value}

    def meaning(self) -> dict[str, Any]:
        """Return what a rule's reading of the column depends on."""
        return super().meaning() | ({"pooled": self.pooled} if self.pooled is not None else {})

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
        nothing, pooled = self.nothing, self.pooled if categories else None
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
