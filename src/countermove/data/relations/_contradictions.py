"""Relations that cannot all be true, and relations that take back what the schema allows.

Feasibility is decided by HiGHS over the model columns; a contradiction is shrunk by leaving out
one sentence after the other (a deletion filter) until every one that is left is needed.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from countermove._types import Floats, Mask
from countermove.data.relations._numeric import LinearRows, NumericRelations, numeric_relations
from countermove.data.relations._rules import ConditionalRow

if TYPE_CHECKING:
    from countermove.data.schema import ModelFeature, Schema

SECONDS = 10.0
"""For one question of feasibility; one that takes longer is no contradiction found."""

INFEASIBLE = 2
"""Status by which SciPy's milp says that nothing satisfies all rows."""

Fixed: TypeAlias = tuple[int, float]
"""A model column and the value it is held at."""


@dataclass(frozen=True)
class Contradiction:
    """Sentences that cannot all be true, each of them needed for it.

    Parameters
    ----------
    premise
        The condition under which they clash (``a == v``); empty if they always do.
    members
        Relations, derived columns and bounds (``features.a.max: 3``).
    """

    premise: str
    members: tuple[str, ...]

    @property
    def text(self) -> str:
        """The contradiction in words."""
        listed = "".join(f"\n    {member}" for member in self.members)
        if not self.premise:
            return f"relations: nobody can exist, since these contradict each other:{listed}"
        if not self.members:
            return f"relations: nobody can have {self.premise}: the column has no such value"
        return f"relations: nobody can have {self.premise}, since these contradict it:{listed}"


def contradictions(schema: Schema, table: pd.DataFrame | None = None) -> list[Contradiction]:
    """Return which relations, derived columns and bounds of a schema contradict each other.

    Parameters
    ----------
    schema
        What the columns mean.
    table
        Typed rows, original units. A row that satisfies everything proves that its values are
        possible; without rows every condition is examined.

    Returns
    -------
    list of Contradiction
        The one between sentences without a condition, if there is one; else one per condition
        ``a == v`` that no person could meet. Each is minimal.
    """
    relations = numeric_relations(schema)
    if not relations:
        return []
    problem = _Problem(schema, relations)
    if problem.impossible(problem.members, None):
        return [Contradiction("", problem.smallest(None))]
    rules = [relation.rule for relation in schema.relations]
    premises = [rule.premise.text for rule in rules if isinstance(rule, ConditionalRow)]
    seen = _witnessed(relations, table, schema)
    found, asked = [], set()
    for k in range(len(relations.conditional)):
        fixed = (int(relations.premise_columns[k]), float(relations.premise_values[k]))
        if seen[k] or fixed in asked:
            continue
        asked.add(fixed)
        if problem.impossible(problem.members, fixed):
            found.append(Contradiction(premises[k], problem.smallest(fixed)))
    return found


def _witnessed(relations: NumericRelations, table: pd.DataFrame | None, schema: Schema) -> Mask:
    """Return for which conditions somebody meets them and satisfies every relation."""
    from countermove.data.rows import coded_features

    if table is None or not len(relations.conditional):
        return np.zeros(len(relations.conditional), dtype=np.bool_)
    X = _complete(coded_features(table, schema))
    return np.asarray((relations.in_force(X) & relations.holds(X)[:, None]).any(axis=0))


class _Member(NamedTuple):
    """Something that may be left out: a row, a conditional row or a bound, by its place."""

    kind: Literal["row", "condition", "min", "max"]
    at: int


class _Problem:
    """Whether somebody can exist, given some of a schema's sentences and bounds."""

    def __init__(self, schema: Schema, relations: NumericRelations) -> None:
        self._relations = relations
        self._columns = schema.model_features()
        self._groups = _groups(self._columns)
        self._whole = np.array([int(column.kind != "numeric") for column in self._columns])
        amounts = [i for i, c in enumerate(self._columns) if c.kind in ("numeric", "integer")]
        self.members = [
            *(_Member("row", i) for i in range(len(relations.rows))),
            *(_Member("condition", k) for k in range(len(relations.conditional))),
            *(_Member("min", i) for i in amounts if math.isfinite(self._columns[i].min)),
            *(_Member("max", i) for i in amounts if math.isfinite(self._columns[i].max)),
        ]

    def smallest(self, fixed: Fixed | None) -> tuple[str, ...]:
        """Return a contradicting set of which no member can be left out."""
        # Bounds first: a contradiction among sentences alone says more than one with a bound.
        kept = list(self.members)
        for member in reversed(self.members):
            rest = [other for other in kept if other != member]
            if self.impossible(rest, fixed):
                kept = rest
        return tuple(self._text(member) for member in kept)

    def impossible(self, members: Sequence[_Member], fixed: Fixed | None) -> bool:
        """Return whether nobody satisfies some members (with one column fixed)."""
        rows = [member.at for member in members if member.kind == "row"]
        waiting = [member.at for member in members if member.kind == "condition"]
        low, high = self._box(set(members), fixed)
        active: list[int] = []
        while not self._infeasible(rows, active, low, high):
            # Where nobody left can avoid a condition, its row holds as well.
            forced = [k for k in waiting if self._unavoidable(k, rows, active, low, high)]
            if not forced:
                return False
            active += forced
            waiting = [k for k in waiting if k not in forced]
        return True

    def _unavoidable(
        self, k: int, rows: list[int], active: list[int], low: Floats, high: Floats
    ) -> bool:
        """Return whether everybody left meets a condition."""
        place = int(self._relations.premise_columns[k])
        value = float(self._relations.premise_values[k])
        if low[place] == high[place]:
            return bool(low[place] == value)
        held = (self._relations.rows.A[rows], self._relations.conditional.A[active], self._groups)
        if not any(A[:, place].any() for A in held):
            return False
        # Whole numbers leave a value by 1, amounts by a little.
        away = 1.0 if self._whole[place] else 1e-6 * (1 + abs(value))
        below, above = high.copy(), low.copy()
        below[place] = min(high[place], value - away)
        above[place] = max(low[place], value + away)
        return self._infeasible(rows, active, low, below) and self._infeasible(
            rows, active, above, high
        )

    def _box(self, chosen: set[_Member], fixed: Fixed | None) -> tuple[Floats, Floats]:
        """Return the bounds in force; those of categories always are."""
        low = np.array([column.min for column in self._columns])
        high = np.array([column.max for column in self._columns])
        for place, column in enumerate(self._columns):
            if column.kind in ("numeric", "integer"):
                low[place] = low[place] if _Member("min", place) in chosen else -np.inf
                high[place] = high[place] if _Member("max", place) in chosen else np.inf
        if fixed is not None:
            place, value = fixed
            low[place], high[place] = max(low[place], value), min(high[place], value)
        return low, high

    def _infeasible(self, rows: list[int], active: list[int], low: Floats, high: Floats) -> bool:
        """Return whether no model columns satisfy the rows between the bounds."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        if (low > high).any():
            return True
        always, then = self._relations.rows, self._relations.conditional
        ones = np.ones(len(self._groups))
        A = np.vstack([always.A[rows], then.A[active], self._groups])
        lower = np.concatenate([always.lower[rows], then.lower[active], ones])
        upper = np.concatenate([always.upper[rows], then.upper[active], ones])
        answer = milp(
            np.zeros(A.shape[1]),
            constraints=[LinearConstraint(A, lower, upper)] if len(A) else [],
            bounds=Bounds(low, high),
            integrality=self._whole,
            options={"time_limit": SECONDS},
        )
        return bool(answer.status == INFEASIBLE)

    def _text(self, member: _Member) -> str:
        """Return how a member is called."""
        if member.kind == "row":
            return self._relations.rows.texts[member.at]
        if member.kind == "condition":
            return self._relations.conditional.texts[member.at]
        column = self._columns[member.at]
        return f"features.{column.name}.{member.kind}: {getattr(column, member.kind):g}"


def _groups(columns: Sequence[ModelFeature]) -> Floats:
    """Return one row of ones per group of which exactly one column is 1."""
    members: dict[str, list[int]] = defaultdict(list)
    for place, column in enumerate(columns):
        if column.group is not None:
            members[column.group].append(place)
    A = np.zeros((len(members), len(columns)))
    for row, places in enumerate(members.values()):
        A[row, places] = 1.0
    return A


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
