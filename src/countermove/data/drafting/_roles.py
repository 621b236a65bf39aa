"""The columns of a table by what they probably are for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from countermove.data._reading_entries import read_feature
from countermove.data.doubts import gives_away
from countermove.data.drafting._guesses import (
    Guess,
    by_form,
    expanded_groups,
    guess_column,
    spelling_reasons,
    with_gaps,
)
from countermove.data.drafting._labels import LabelGuess, counts_rows, guess_id, guess_series
from countermove.data.drafting._readings import DATE_SENTINELS
from countermove.data.drafting._words import BIRTH, MOMENT, SENSITIVE, name_words
from countermove.data.parsing import numbers, texts
from countermove.data.reading import (
    Becomes,
    DateReading,
    NumberReading,
    WordReading,
    until_dates,
)
from countermove.data.schema import GROUP_PREFIX, LABEL, QUARANTINE, ROW_ID, Series

LONGEST_NAME = 200
"""YAML limits the length of keys; a name that long is no name."""


@dataclass
class Roles:
    """Where each column belongs: one of these, by name, with the reason."""

    series: Series | None
    id: str | None
    sensitive: dict[str, str] = field(default_factory=dict)
    features: dict[str, Guess] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    choices: dict[str, list[tuple[str, dict[str, Any]]]] = field(default_factory=dict)
    reads: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = field(default_factory=dict)
    moment: str | None = None

    @classmethod
    def of(cls, table: pd.DataFrame, outcome: LabelGuess) -> Roles:
        """Return the roles of a table's columns beside its outcome."""
        rest = [column for column in table.columns if column != outcome.label.column]
        counted = [c for c in rest if _nameless(c) and counts_rows(table[c])]
        rest = [c for c in rest if c not in counted]
        found = guess_series(table, rest)
        series, moments = (None, None) if found is None else found
        rest = [c for c in rest if series is None or c not in (series.entity, series.time)]
        roles = cls(series, None if series is not None else guess_id(table, rest))
        roles.left_out |= dict.fromkeys(counted, "row numbers, as a data frame's index is saved")
        if series is not None and moments is not None:
            roles.reads[series.time] = (moments.to_entry(), ())
        rest = [column for column in rest if column != roles.id]
        guesses = {column: guess_column(table[column]) for column in rest}
        roles._place_dates(table, guesses)
        groups = expanded_groups(table, rest)
        group_of = {column: group for group, members in groups.items() for column in members}
        for column in rest:
            if column in guesses:
                roles._place(column, table, guesses[column], group_of.get(column), outcome)
        roles._drop_clashes()
        return roles

    def _place_dates(self, table: pd.DataFrame, guesses: dict[str, Guess]) -> None:
        """Say what becomes of columns of dates; those that are done leave the guesses."""
        dated = {c: g.dates for c, g in guesses.items() if g.dates is not None}
        sure = {c: dates.ways[0] for c, dates in dated.items() if len(dates.ways) == 1}
        ends = {column: _latest(table[column], reading) for column, reading in sure.items()}
        # Dates without their moment are set aside: a column with many gaps is none.
        moments = (c for c in sure if name_words(c) & MOMENT and not _born(c))
        full = (c for c in moments if sure[c].dates(table[c])[1].mean() <= QUARANTINE)
        moment = next(full, None)
        latest = max((end for end in ends.values() if end is not None), default=None)
        until = moment if moment is not None else None if latest is None else str(latest.date())
        used = False
        for column, dates in dated.items():
            guess = guesses.pop(column)
            if column == moment:
                continue
            entries = [_since(way, column, until) for way in dates.ways]
            if len(entries) > 1 or until is None:
                example = next(str(word) for word in texts(table[column]).dropna())
                why = f"is the day or the month first, as in {example!r}? Every cell can be read "
                self.left_out[column] = why + "both ways: put one of these lines under features:"
                self.choices[column] = [(column, entry) for entry in entries]
            elif _born(column):
                self.left_out[column] = "date of birth, sensitive by its name; as an age it reads"
                self.choices[column] = [("age", entries[0] | {"kind": "integer"})]
                self.choices[column][0][1]["read"] = {"from": column} | entries[0]["read"]
            else:
                asked = f"days up to {until}; or as: months, years, month, weekday"
                if moment is None:
                    asked = f"days up to {until}, the latest date: when was the table extracted? "
                    asked += "Or as: months, years, month, weekday"
                drafted = Guess(entries[0], (asked, *guess.reasons))
                guesses[column] = with_gaps(drafted, sure[column].dates(table[column])[1])
                used = used or moment is not None
        if moment is not None:
            self._place_moment(moment, sure[moment], dated[moment].reasons, used)

    def _place_moment(
        self, column: str, reading: DateReading, reasons: tuple[str, ...], used: bool
    ) -> None:
        """Keep the moment of the rows for what is counted up to it, or for a split by time."""
        if used:
            self.moment = column
            self.reads[column] = (reading.to_entry(), ("the moment of the row", *reasons))
            return
        self.left_out[column] = "the moment of the row: no feature; to split by time, name it under"
        self.left_out[column] += f" time: and say how it is read, read: {{{column}: …}}"

    def _place(
        self,
        column: str,
        table: pd.DataFrame,
        guess: Guess,
        group: str | None,
        outcome: LabelGuess,
    ) -> None:
        """Put one column where it belongs."""
        values = table[column]
        if column in (ROW_ID, LABEL) or column.startswith(GROUP_PREFIX):
            self.left_out[column] = "the name is kept for the product's own tables: rename it"
        elif len(column) > LONGEST_NAME:
            self.left_out[column] = "the name is too long for a schema: rename it"
        elif name_words(column) & SENSITIVE and guess.entry:
            self.sensitive[column] = _audit_reason(values)
            joined = spelling_reasons(by_form(Counter(map(str, texts(values).dropna()))))
            if joined:
                self.reads[column] = (WordReading(fold=True).to_entry(), joined)
        elif not guess.entry:
            self.left_out[column] = "; ".join(guess.reasons)
            self.choices[column] = [(column, entry) for entry in guess.choices]
        elif gives_away(comparable(table, column, guess.entry), outcome.favourable):
            self.left_out[column] = "separates the outcome without an error: known only afterwards?"
        elif group is not None:
            entry = {"kind": "binary", "group": group}
            why = f"exactly one column of the group {group!r} is 1 in every row"
            self.features[column] = Guess(entry, (why,))
        else:
            self.features[column] = guess

    def _drop_clashes(self) -> None:
        """Leave out what would contradict itself: halves of groups, names taken by categories."""
        groups = [guess.entry.get("group") for guess in self.features.values()]
        taken = {
            f"{column}={category}"
            for column, guess in self.features.items()
            if guess.entry["kind"] == "onehot"
            for category in guess.entry["categories"]
        }
        for column, guess in list(self.features.items()):
            if column in taken:
                del self.features[column]
                self.left_out[column] = "the name is that of another column's category: rename it"
            group = guess.entry.get("group")
            if group is not None and (groups.count(group) < 2 or group in self.features):
                del guess.entry["group"]


def _nameless(column: str) -> bool:
    return column.startswith(("column_", "Unnamed:")) or column.lower() == "index"


def _born(column: str) -> bool:
    return bool(name_words(column) & BIRTH)


def _latest(values: pd.Series, reading: DateReading) -> pd.Timestamp | None:
    """Return the latest date of a column, those left aside that stand for no value."""
    found = reading.dates(values)[0]
    nothing = [pd.Timestamp(text) for text in DATE_SENTINELS]
    end = found[~found.isin(nothing)].max()
    return None if pd.isna(end) else end


def _since(way: DateReading, column: str, until: str | None) -> dict[str, Any]:
    """Return the entry of a date as a feature: an age, or the days up to a moment."""
    becomes: Becomes = "age" if _born(column) else "days"
    reading = replace(way, becomes=becomes, until=until or "…")
    return {"kind": "numeric", "min": 0, "read": reading.to_entry()}


def comparable(table: pd.DataFrame, column: str, entry: Mapping[str, Any]) -> pd.Series:
    """Return a column as numbers where its entry says that it holds numbers, else as text."""
    categories: Sequence[str] = entry.get("categories", ())
    reading = read_feature(entry.get("read"), entry["kind"], tuple(categories), column)
    if isinstance(reading, DateReading):
        return pd.Series(reading.read(table[column], until_dates(table, reading))[0])
    if isinstance(reading, NumberReading):
        return pd.Series(reading.read(table[column])[0])
    if isinstance(reading, WordReading):
        return reading.read(table[column], categories).reset_index(drop=True)
    if entry["kind"] in ("numeric", "integer"):
        return pd.Series(numbers(table[column])[0])
    return texts(table[column])


def _audit_reason(values: pd.Series) -> str:
    groups = texts(values).nunique()
    many = f"; {groups} groups are too many for an audit: band them" if groups > 12 else ""
    return f"sensitive by its name: kept for audits, not read by the score{many}"
