"""The text of a drafted schema."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from countermove.data.drafting._labels import LabelGuess, guess_label
from countermove.data.drafting._layout import FoundLayout, find_layout
from countermove.data.drafting._roles import Roles
from countermove.data.files import RawTable, read_table, table_suffix
from countermove.data.schema import Schema
from countermove.data.storage import replace_file
from countermove.errors import DataError, ParameterError

RAW = Path("data") / "01_raw"

WHO = "can people change it: up, down, both?"


@dataclass(frozen=True)
class Draft:
    """The text of a schema file, the schema it holds, and how many guesses to confirm."""

    text: str
    schema: Schema
    guesses: int


def draft_file(
    path: Path, name: str, label: str | None = None, favourable: str | None = None
) -> Draft:
    """Return the draft of a schema for a file: how it is laid out, and what its columns are.

    See `draft_schema`; lines that are no rows are counted in the text.
    """
    found = find_layout(path)
    raw = read_table(path, found.layout)
    return draft_schema(raw, name, label, favourable, path.name, found)


def draft_schema(
    table: pd.DataFrame | RawTable,
    name: str,
    label: str | None = None,
    favourable: str | None = None,
    origin: str = "",
    found: FoundLayout | None = None,
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
    found
        How that file is laid out.

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
    raw = table if isinstance(table, RawTable) else RawTable(table)
    if len(raw.frame) < 2:
        raise DataError(f"{origin or name} has {len(raw.frame)} row(s); expected at least two")
    named = raw.frame.set_axis([str(column) for column in raw.frame.columns], axis=1)
    outcome = guess_label(named, label, favourable)
    roles = Roles.of(named, outcome)
    if not roles.features:
        why = "; ".join(f"{column}: {reason}" for column, reason in roles.left_out.items())
        raise DataError(f"{origin or name}: no column is left as a feature. {why}")
    head = _head(raw, f"{name}: drafted from {origin or 'a table'}", found or FoundLayout())
    text = "\n".join([*head, *_body(roles, outcome)]) + "\n"
    schema = Schema.from_mapping(name, yaml.safe_load(text), f"the draft of {name!r}")
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


def open_guesses(text: str) -> list[str]:
    """Return the keys and columns of a schema file whose guesses are still marked ``# TODO``."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        entry, marked, _ = line.partition("# TODO")
        if marked:
            try:
                held = yaml.safe_load(entry.strip().lstrip("#").strip())
            except yaml.YAMLError:
                held = None
            name = next(iter(held), None) if isinstance(held, dict | list) else held
            found.append(f"line {number}" if name is None else str(name))
    return found


def next_steps(draft: Draft, path: Path, file: Path, project: Path) -> str:
    """Return what was written and which commands follow."""
    name = draft.schema.name
    target = RAW / f"{name}{table_suffix(file) or file.suffix}"
    written = path.relative_to(project) if path.is_relative_to(project) else path
    lines = [f"drafted {written}: {draft.guesses} guesses for you to confirm, each marked TODO"]
    lines.append("next:")
    if file.resolve() != (project / target).resolve():
        lines.append(f"  cp {shlex.quote(str(file))} {target}")
    lines.append(f"  kedro countermove check {name}")
    return "\n".join(lines)


def _head(raw: RawTable, description: str, found: FoundLayout) -> list[str]:
    """Return the first lines: what was drafted from, and how the file is laid out."""
    rows, columns = raw.frame.shape
    lines = [
        f"# A draft from {rows} rows and {columns} columns. Confirm each TODO and delete it.",
        "# Nobody can change anything yet: write up, down or both where people can act. A",
        "# wrong immutable asks nothing of anyone; a wrong both promises what nobody can do.",
        "# Say what the numbers count as well, as in unit: EUR.",
    ]
    if raw.broken:
        first = raw.broken[0]
        lines.append(
            _comment(
                f"# {len(raw.broken)} line(s) are no rows and go into quarantine, the first one "
                f"line {first.line} ({first.found}; expected {first.expected})."
            )
        )
    lines += [_line({"description": description}), "source: file"]
    layout = found.layout.to_mapping()
    if layout or found.questions:
        lines.append(_line({"file": layout}, found.questions))
    return lines


def _body(roles: Roles, outcome: LabelGuess) -> list[str]:
    """Return the lines of the columns."""
    lines = []
    if roles.series is not None:
        entry = {"entity": roles.series.entity, "time": roles.series.time}
        text = "one row per entity is kept, the last in time; steps: 3 would add earlier ones"
        lines.append(_line({"series": entry}, (text,)))
    if roles.id is not None:
        lines.append(_line({"id": roles.id}, ("every row has a value of its own",)))
    if roles.moment is not None:
        text = "uncomment it to train on earlier rows and test on later ones"
        lines.append(f"# {_line({'time': roles.moment})}  # {text}")
    lines.append(_line({"label": outcome.label.to_mapping()}, (outcome.reason,)))
    lines.append("features:")
    for column, guess in roles.features.items():
        lines.append("  " + _line({column: _entry(guess.entry)}, (WHO, *guess.reasons)))
    for key, reasons in (("sensitive", roles.sensitive), ("ignore", roles.left_out)):
        lines += [f"{key}:"] if reasons else []
        for column, why in reasons.items():
            lines.append(f"  - {_scalar(column)}{_todo([why])}")
            for name, choice in roles.choices.get(column, ()):
                lines.append(f"  #   {_line({name: _entry(choice)})}")
    if roles.reads:
        lines.append("read:")
        lines += ["  " + _line({column: read}, why) for column, (read, why) in roles.reads.items()]
    return lines


def _entry(drafted: Mapping[str, Any]) -> dict[str, Any]:
    """Return a feature's entry, which nobody can change yet."""
    kind, *others = drafted.items()
    return dict([kind, ("change", "immutable"), *others])


def _line(entry: Mapping[str, Any], todo: Iterable[str] = ()) -> str:
    """Return ``key: value`` with the value in flow style, and what to confirm."""
    ((key, value),) = entry.items()
    return f"{_scalar(key)}: {_scalar(_numbers_plain(value))}{_todo(todo)}"


def _todo(reasons: Iterable[str]) -> str:
    listed = _comment("; ".join(reasons).replace("?;", "?"))
    return f"  # TODO: {listed}" if listed else ""


def _comment(text: str) -> str:
    """Return one line of printable text, whatever the cells held."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


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
