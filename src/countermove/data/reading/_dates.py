"""Dates and times, and what becomes of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from countermove._types import Floats, Mask
from countermove.data.parsing import MISSING_WORDS, texts
from countermove.data.reading._cells import CellReading, Cells, folded

Becomes: TypeAlias = Literal[
    "date", "age", "days", "months", "years", "year", "month", "weekday", "hour"
]
DateCells: TypeAlias = tuple[pd.Series, Mask, Mask]
"""Dates (UTC, without a zone, NaT where none), which cells are missing, which are unreadable."""

BECOMES: tuple[Becomes, ...] = (
    "date", "age", "days", "months", "years", "year", "month", "weekday", "hour",
)  # fmt: skip
SINCE = ("age", "days", "months", "years")
"""What takes a second moment to count to."""

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
        missing = missing | found.isin(self._sentinels()).to_numpy(np.bool_)
        moments = found.mask(missing).dt.as_unit("us")
        return moments, missing, moments.isna().to_numpy(np.bool_) & ~missing

    def _sentinels(self) -> list[pd.Timestamp]:
        dates = (_fixed_date(value) for value in self.missing_values)
        return [date for date in dates if date is not None]

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
        read = _completed_years(moments, end) if self.becomes == "age" else _apart(moments, end)
        read = read / DAYS.get(self.becomes, 1.0)
        return read, missing, np.isnan(read) & ~missing


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
