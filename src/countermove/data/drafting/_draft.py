"""The text of a drafted schema."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from countermove.data.drafting._guesses import (
    Guess,
    LabelGuess,
    expanded_groups,
    guess_column,
    guess_id,
    guess_label,
    guess_series,
)
from countermove.data.drafting._mining import MinedRelation, mine_relations
from countermove.data.drafting._words import SENSITIVE, name_words
from countermove.data.parsing import numbers, texts
from countermove.data.report import gives_away
from countermove.data.schema import GROUP_PREFIX, LABEL, ROW_ID, Schema, Series
from countermove.data.storage import replace_file
from countermove.errors import DataError, ParameterError

RAW = Path("data") / "01_raw"

WHO = "can people change it: up, down, both?"

LONGEST_NAME = 200
"""YAML limits the length of keys; a name that long is no name."""


@dataclass(frozen=True)
class Draft:
    """The text of a schema file, the schema it holds, and how many guesses to confirm."""

    text: str
    schema: Schema
    guesses: int


def draft_schema(
    table: pd.DataFrame,
    name: str,
    label: str | None = None,
    favourable: str | None = None,
    origin: str = "",
) -> Draft:
    """Return the draft of a schema for a table as read.

    Parameters
    ----------
    table
        The table, cells as read.
    name
        Name of the dataset.
    label, favourable
        The outcome column and its favourable value, where known.
    origin
        File named in the text.

    Returns
    -------
    Draft
        A schema that loads and names every column once; a table without gaps and
        stray cells passes its checks.

    Raises
    ------
    DataError
        If the table has no rows, no column can be the outcome, or none is left as
        a feature.
    """
    if len(table) < 2:
        raise DataError(f"{origin or name} has {len(table)} row(s); expected at least two")
    named = table.set_axis([str(column) for column in table.columns], axis=1)
    outcome = guess_label(named, label, favourable)
    parts = _Parts.of(named, outcome)
    if not parts.features:
        why = "; ".join(f"{column}: {reason}" for column, reason in parts.left_out.items())
        raise DataError(f"{origin or name}: no column is left as a feature. {why}")
    text = parts.text(f"{name}: drafted from {origin or 'a table'}", outcome, named)
    schema = Schema.from_mapping(name, yaml.safe_load(text), f"the draft of {name!r}")
    text += _proposals(mine_relations(named, schema.observed))
    return Draft(text, schema, text.count("# TODO"))


def save_draft(draft: Draft, path: Path, force: bool) -> None:
    """Write a draft; a schema that is there already stays unless ``force`` is given."""
    if path.exists() and not force:
        raise ParameterError(
            f"{path} exists already and may hold your work; use --force to replace it, --name for "
            "another dataset, or --output - to look at the draft first"
        )
    if not path.parent.is_dir():
        raise ParameterError(f"there is no folder {path.parent} to write {path.name} into")
    replace_file(path, draft.text.encode())


def next_steps(draft: Draft, path: Path, file: Path, project: Path) -> str:
    """Return what was written and which commands follow."""
    name = draft.schema.name
    target = RAW / f"{name}{file.suffix}"
    written = path.relative_to(project) if path.is_relative_to(project) else path
    lines = [f"drafted {written}: {draft.guesses} guesses for you to confirm, each marked TODO"]
    lines.append("next:")
    if file.resolve() != (project / target).resolve():
        lines.append(f"  cp {shlex.quote(str(file))} {target}")
    lines.append(f"  kedro countermove check {name}")
    return "\n".join(lines)


@dataclass
class _Parts:
    """The columns of a table by what they probably are for."""

    series: Series | None
    id: str | None
    sensitive: dict[str, str]
    features: dict[str, Guess]
    left_out: dict[str, str]

    @classmethod
    def of(cls, table: pd.DataFrame, outcome: LabelGuess) -> _Parts:
        rest = [column for column in table.columns if column != outcome.label.column]
        series = guess_series(table, rest)
        rest = [c for c in rest if series is None or c not in (series.entity, series.time)]
        who = None if series is not None else guess_id(table, rest)
        parts = cls(series, who, {}, {}, {})
        rest = [column for column in rest if column != who]
        groups = expanded_groups(table, rest)
        group_of = {column: group for group, members in groups.items() for column in members}
        for column in rest:
            parts._place(column, table[column], group_of.get(column), outcome)
        parts._drop_clashes()
        return parts

    def _place(
        self, column: str, values: pd.Series, group: str | None, outcome: LabelGuess
    ) -> None:
        """Put one column where it belongs."""
        guess = guess_column(values)
        if column in (ROW_ID, LABEL) or column.startswith(GROUP_PREFIX):
            self.left_out[column] = "the name is kept for the product's own tables: rename it"
        elif len(column) > LONGEST_NAME:
            self.left_out[column] = "the name is too long for a schema: rename it"
        elif name_words(column) & SENSITIVE and guess.entry:
            self.sensitive[column] = _audit_reason(values)
        elif not guess.entry:
            self.left_out[column] = "; ".join(guess.reasons)
        elif gives_away(_comparable(values, guess), outcome.favourable):
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

    def text(self, description: str, outcome: LabelGuess, table: pd.DataFrame) -> str:
        """Return the schema file."""
        rows, columns = table.shape
        lines = [
            f"# A draft from {rows} rows and {columns} columns. Confirm each TODO and delete it.",
            "# Nobody can change anything yet: write up, down or both where people can act. A",
            "# wrong immutable asks nothing of anyone; a wrong both promises what nobody can do.",
            "# Say what the numbers count as well, as in unit: EUR.",
            _line({"description": description}),
            "source: file",
        ]
        if self.series is not None:
            entry = {"entity": self.series.entity, "time": self.series.time}
            text = "one row per entity is kept, the last in time; steps: 3 would add earlier ones"
            lines.append(_line({"series": entry}, (text,)))
        if self.id is not None:
            lines.append(_line({"id": self.id}, ("every row has a value of its own",)))
        lines.append(_line({"label": outcome.label.to_mapping()}, (outcome.reason,)))
        lines.append("features:")
        for column, guess in self.features.items():
            kind, *others = guess.entry.items()
            entry = dict([kind, ("change", "immutable"), *others])
            lines.append("  " + _line({column: entry}, (WHO, *guess.reasons)))
        return "\n".join(lines + self._lists()) + "\n"

    def _lists(self) -> list[str]:
        """Return the lines of the columns that no score reads."""
        lines = []
        for key, reasons in (("sensitive", self.sensitive), ("ignore", self.left_out)):
            if reasons:
                lines.append(f"{key}:")
                lines += [f"  - {_scalar(column)}{_todo([why])}" for column, why in reasons.items()]
        return lines


def _proposals(mined: Sequence[MinedRelation]) -> str:
    """Return the mined relations as comments, each with what speaks for it."""
    if not mined:
        return ""
    lines = [
        "# No row breaks these relations. Uncomment those that must be true of everybody, and say",
        "# why; one that is a habit of this table would forbid advice that people can follow.",
        "# relations:",
    ]
    for each in mined:
        support = f"{each.support:.1%} of the rows speak for it and it excludes none of them"
        text = _scalar(each.rule.text)
        lines.append(f"#   - {text}  # {support}; by chance it would {each.excluded:.1%}")
    return "\n".join(lines) + "\n"


def _comparable(values: pd.Series, guess: Guess) -> pd.Series:
    """Return a column as numbers where it holds numbers, else as text."""
    if guess.entry["kind"] in ("numeric", "integer"):
        return pd.Series(numbers(values)[0])
    return texts(values)


def _audit_reason(values: pd.Series) -> str:
    groups = texts(values).nunique()
    many = f"; {groups} groups are too many for an audit: band them" if groups > 12 else ""
    return f"sensitive by its name: kept for audits, not read by the score{many}"


def _line(entry: Mapping[str, Any], todo: Iterable[str] = ()) -> str:
    """Return ``key: value`` with the value in flow style, and what to confirm."""
    ((key, value),) = entry.items()
    return f"{_scalar(key)}: {_scalar(_numbers_plain(value))}{_todo(todo)}"


def _todo(reasons: Iterable[str]) -> str:
    listed = "; ".join(reasons).replace("?;", "?")
    # A comment is one line of printable text, whatever the cells held.
    plain = "".join(c if c.isprintable() else repr(c)[1:-1] for c in listed)
    return f"  # TODO: {plain}" if plain else ""


def _scalar(value: object) -> str:
    """Return a value as YAML on one line."""
    text = _dumped(value, style=None)
    # Line breaks of any sort in a name or word: only double quotes spell them out.
    return _dumped(value, style='"') if len(text.splitlines()) > 1 else text


def _dumped(value: object, style: str | None) -> str:
    text = yaml.safe_dump(
        value,
        default_flow_style=True,
        default_style=style,
        allow_unicode=style is None,
        sort_keys=False,
        width=10**9,
    )
    return re.sub(r"\n(\.\.\.\n)?$", "", text)


def _numbers_plain(value: Any) -> Any:
    """Write 50.0 as 50."""
    if isinstance(value, Mapping):
        return {key: _numbers_plain(entry) for key, entry in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value
