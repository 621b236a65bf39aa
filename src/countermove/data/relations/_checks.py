"""What a table, or the relations themselves, say against a schema's relations and paths."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from countermove._types import Floats, Mask
from countermove.data.checks import TableProblem, rows_problem
from countermove.data.relations._numeric import LinearRows, NumericRelations, numeric_relations
from countermove.data.relations._paths import PathStates, path_states
from countermove.data.relations._rules import TOLERANCE, ConditionalRow
from countermove.errors import DataError, shown

if TYPE_CHECKING:
    from countermove.data.schema import ModelFeature, Schema

MANY = 0.01
"""Share of those who could change a column from which a relation that stops them is doubtful."""

SECONDS = 10.0
"""For one question of feasibility; one that takes longer is no contradiction found."""

INFEASIBLE = 2
"""Status by which SciPy's milp says that nothing satisfies all rows."""


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
    problems = list(contradictions(schema))
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
    held = len(schema.relations)
    summary = [f"{held} relation(s) hold in all {len(table)} rows"] if held and not problems else []
    return RelationReport(tuple(problems), tuple(warnings), tuple(summary))


def contradictions(schema: Schema) -> Iterator[str]:
    """Yield which relations nobody can satisfy together, in words.

    One mixed-integer program (HiGHS) over the model columns and their bounds asks whether somebody
    can exist; one more per condition ``a == v``, whether somebody can meet it.
    """
    relations = numeric_relations(schema)
    if not relations:
        return
    always = list(relations.rows.texts)
    if not _feasible(schema, relations, None):
        yield f"relations: nobody can exist under all of {shown(map(repr, always), cap=20)}"
        return
    rules = [r.rule for r in schema.relations if isinstance(r.rule, ConditionalRow)]
    asked: dict[str, list[int]] = defaultdict(list)
    for k, rule in enumerate(rules):
        asked[rule.premise.text].append(k)
    for premise, rows in asked.items():
        if not _feasible(schema, relations, rows):
            given = [relations.conditional.texts[k] for k in rows] + always
            listed = shown(map(repr, given), cap=20)
            yield f"relations: nobody can have {premise} under all of {listed}"


def _feasible(schema: Schema, relations: NumericRelations, rows: list[int] | None) -> bool:
    """Return whether somebody can exist, or meet the common condition of some conditional rows."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    columns, then = schema.model_features(), relations.conditional
    low, high = (np.array([getattr(c, end) for c in columns]) for end in ("min", "max"))
    chosen = rows or []
    if rows:
        place, value = relations.premise_columns[rows[0]], relations.premise_values[rows[0]]
        if not low[place] <= value <= high[place]:
            return False
        low[place] = high[place] = value
    groups = sorted({c.group for c in columns if c.group is not None})
    one = np.array([[float(c.group == group) for c in columns] for group in groups])
    A = np.vstack([relations.rows.A, then.A[chosen], one.reshape(len(groups), len(columns))])
    ones = np.ones(len(groups))
    lower = np.concatenate([relations.rows.lower, then.lower[chosen], ones])
    upper = np.concatenate([relations.rows.upper, then.upper[chosen], ones])
    answer = milp(
        np.zeros(len(columns)),
        constraints=[LinearConstraint(A, lower, upper)] if len(A) else [],
        bounds=Bounds(low, high),
        integrality=np.array([int(c.kind != "numeric") for c in columns]),
        options={"time_limit": SECONDS},
    )
    return bool(answer.status != INFEASIBLE)


def broken_relations(table: pd.DataFrame, schema: Schema) -> list[TableProblem]:
    """Return which relations typed rows break, with those rows."""
    problems = []
    for relation in schema.relations:
        because = f" ({relation.because})" if relation.because else ""
        text = f"relation {relation.text!r}{because} is broken"
        problems += rows_problem(text, ~relation.holds(table))
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


@dataclass(frozen=True)
class Frozen:
    """A relation that leaves people no room in a column that the schema lets them change.

    ``people`` of the ``movable`` ones, who could move the column but for the relation.
    """

    relation: str
    column: str
    people: int
    movable: int


def frozen_columns(schema: Schema, table: pd.DataFrame) -> Iterator[Frozen]:
    """Yield which relation, taken alone, takes back which column's ``change:`` for how many rows.

    A conditional row counts for people who meet its condition and cannot leave it.
    """
    from countermove.data.rows import coded_features

    relations = numeric_relations(schema)
    if not relations:
        return
    X, columns = _complete(coded_features(table, schema)), schema.model_features()
    down, up = _room(X, columns)
    for rows, binding in _bound_rows(relations, X, down, up):
        for i in range(len(rows)):
            for place in np.flatnonzero(rows.A[i]).tolist():
                movable = (down[:, place] < 0) | (up[:, place] > 0)
                stuck = movable & binding[:, i] & ~_can_move(rows, i, place, X, down, up)
                if stuck.any():
                    source = columns[place].source
                    yield Frozen(rows.texts[i], source, int(stuck.sum()), int(movable.sum()))


def _complete(X: Floats) -> Floats:
    """Return the people whose every cell is known."""
    known: Floats = X[~np.isnan(X).any(axis=1)]
    return known


def _room(X: Floats, columns: Sequence[ModelFeature]) -> tuple[Floats, Floats]:
    """Return how far each person may lower and raise each column by ``change``, min and max."""
    least = np.array([column.min for column in columns])
    most = np.array([column.max for column in columns])
    with np.errstate(over="ignore"):
        down, up = np.minimum(least - X, 0.0), np.maximum(most - X, 0.0)
    for place, column in enumerate(columns):
        if column.change in ("immutable", "up"):
            down[:, place] = 0.0
        if column.change in ("immutable", "down"):
            up[:, place] = 0.0
    return down, up


def _bound_rows(
    relations: NumericRelations, X: Floats, down: Floats, up: Floats
) -> Iterator[tuple[LinearRows, Mask]]:
    """Yield the rows, and whom each binds wherever they go."""
    rows = relations.rows
    yield rows, rows.satisfied(X)
    at = relations.premise_columns
    stays = (down[:, at] == 0) & (up[:, at] == 0)
    conditional = relations.conditional
    yield conditional, relations.in_force(X) & stays & conditional.satisfied(X)


def _can_move(rows: LinearRows, i: int, place: int, X: Floats, down: Floats, up: Floats) -> Mask:
    """Return who can move one column under one row, the others doing what they can for it."""
    weights = rows.A[i]
    others = np.flatnonzero(weights)
    others = others[others != place]
    value = X @ weights
    ends = np.stack([weights[others] * down[:, others], weights[others] * up[:, others]])
    least, most = ends.min(axis=0).sum(axis=1), ends.max(axis=0).sum(axis=1)
    # The row leaves the column's own share of the sum between these two.
    room = np.stack([rows.lower[i] - value - most, rows.upper[i] - value - least])
    moves = np.sort(room / weights[place], axis=0)
    small = 1e-9 * (1 + np.abs(X[:, place]))
    return np.asarray(
        (np.minimum(moves[1], up[:, place]) > small)
        | (np.maximum(moves[0], down[:, place]) < -small)
    )
