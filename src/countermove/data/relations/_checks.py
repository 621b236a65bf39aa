"""What a table says against its schema's relations, derived columns and paths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from countermove.data.checks import TableProblem, rows_problem
from countermove.data.relations._contradictions import contradictions, frozen_columns
from countermove.data.relations._paths import PathStates, path_states
from countermove.data.relations._rules import TOLERANCE
from countermove.errors import DataError

if TYPE_CHECKING:
    from countermove.data.schema import Schema

MANY = 0.01
"""Share of those who could change a column from which a relation that stops them is doubtful."""


@dataclass(frozen=True)
class RelationReport:
    """What contradicts itself or the table, what is doubtful, and what holds, in lines."""

    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    summary: tuple[str, ...] = ()


def relation_report(raw: pd.DataFrame, table: pd.DataFrame, schema: Schema) -> RelationReport:
    """Return what is wrong between a schema's relations, its bounds and a table.

    Parameters
    ----------
    raw
        The raw rows, for paths that are read off them.
    table
        The typed rows of the same people.
    schema
        What the columns mean.
    """
    problems = [contradiction.text for contradiction in contradictions(schema, table)]
    problems += [problem.text for problem in broken_relations(table, schema)]
    problems += _path_problems(raw, table, schema)
    warnings = []
    for frozen in frozen_columns(schema, table):
        change = schema.feature(frozen.column).change
        text = (
            f"relation {frozen.relation!r} leaves {frozen.people} of the {frozen.movable} people "
            f"who could change {frozen.column!r} no room to"
        )
        if frozen.people == frozen.movable:
            key = f"features.{frozen.column}.change: {change}"
            problems.append(f"{text}: it contradicts {key}; keep one of the two")
        elif frozen.people >= MANY * frozen.movable:
            warnings.append(f"{text}; is it true of them for ever, or only of today?")
    held = len(schema.relations) + len(schema.derived)
    summary = [f"{held} relation(s) hold in all {len(table)} rows"] if held and not problems else []
    return RelationReport(tuple(problems), tuple(warnings), tuple(summary))


def broken_relations(table: pd.DataFrame, schema: Schema) -> list[TableProblem]:
    """Return which relations and derived columns typed rows break, with those rows."""
    problems = []
    for relation in schema.relations:
        because = f" ({relation.because})" if relation.because else ""
        text = f"relation {relation.text!r}{because} is broken"
        problems += rows_problem(text, ~relation.holds(table))
    for derived in schema.derived:
        found = table[derived.column].to_numpy(np.float64)
        text = f"derived column {derived.text!r} holds something else"
        problems += rows_problem(text, ~derived.holds(table), found)
    return problems


def _path_problems(raw: pd.DataFrame, table: pd.DataFrame, schema: Schema) -> Iterator[str]:
    """Yield where a path's states are not the person's, or contradict relations and changes."""
    for path in schema.paths:
        try:
            (found,) = path_states(schema, table, raw, [path])
        except DataError as error:
            yield str(error)
            continue
        yield from (problem.text for problem in _state_problems(found, table, schema))


def _state_problems(found: PathStates, table: pd.DataFrame, schema: Schema) -> list[TableProblem]:
    path, states = found.path, found.states
    problems = []
    governed = {name: states[:, :, place] for place, name in enumerate(path.columns)}
    for name, values in governed.items():
        feature = schema.feature(name)
        if feature.categorical:
            present = pd.Index(feature.categories).get_indexer(pd.Index(table[name]))
        else:
            present = table[name].to_numpy(np.float64)
        size = TOLERANCE * (1 + np.abs(values[:, 0]))
        other = np.abs(values[:, 0] - present) > size
        text = f"path {path.name!r}: {name!r} is not what its window says now"
        problems += rows_problem(text, other)
        if name in path.window or feature.change == "both":
            continue
        steps = np.diff(values, axis=1) * (1 if feature.change == "down" else -1)
        text = f"path {path.name!r} moves {name!r} against its change: {feature.change}"
        problems += rows_problem(text, np.asarray((steps > 0).any(axis=1)))
    for relation in schema.relations:
        if set(relation.columns) <= set(path.columns):
            broken = np.zeros(len(table), dtype=np.bool_)
            for step in range(path.n_states):
                there = {name: values[:, step] for name, values in governed.items()}
                broken |= ~relation.holds(pd.DataFrame(there))
            text = f"path {path.name!r} leads to states that break {relation.text!r}"
            problems += rows_problem(text, broken)
    return problems
