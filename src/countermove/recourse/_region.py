"""Where else a person may end: bounds of single amounts, and a region of all of them together.

For an affine score going further keeps approval by the sign of a weight, and of the weights of
whatever a relation moves along; columns of a path go further together, as time does. Of all
amounts at once, in offsets z >= 0 from the advised action, approval and every relation say
M z <= c with M, c >= 0 at the worst corner of a box, so the offsets grow alike until what is left
of a row is used up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch

from countermove._types import Floats, Mask
from countermove.data.relations import ConditionalRow, HistoryPath, LevelRow, LinearRow
from countermove.data.schema import Schema
from countermove.people.feasible import TOLERANCE, absent
from countermove.recourse.problem import SearchProblem
from countermove.scores.base import values

if TYPE_CHECKING:
    from countermove.recourse.recommend import Advice


Way = tuple[str, float]
"""A column and the direction it goes, +1 or -1."""


def further_keeps(schema: Schema, slope: Floats, after: Floats, action: Floats) -> Mask:
    """Return whose move of each model column may go further, shape (n, d); original units."""
    judge = _FurtherMoves(schema, slope, after)
    kept: Mask = np.zeros(after.shape, bool)
    for j, column in enumerate(schema.model_features()):
        if column.group is not None:
            continue
        for sign in (1.0, -1.0):
            who = action[:, j] * sign > 0.0
            if who.any():
                kept[who, j] = judge.keeps((column.name, sign), ())[who]
    return kept


class _FurtherMoves:
    """What further moves of one column do to the score and to the relations."""

    def __init__(self, schema: Schema, slope: Floats, after: Floats) -> None:
        self.schema = schema
        self.n = len(after)
        single = [(j, c) for j, c in enumerate(schema.model_features()) if c.group is None]
        self.weight = {column.name: float(slope[j]) for j, column in single}
        self.column = {column.name: column for _, column in single}
        self.after = _codes(schema, after)

    def keeps(self, way: Way, before: Sequence[str]) -> Mask:
        """Return for whom going further this way keeps approval, with what moves along."""
        name, sign = way
        kept: Mask = np.full(self.n, self.weight[name] * sign >= 0.0)
        path = next((path for path in self.schema.paths if name in path.columns), None)
        if path is not None:
            return kept & self._time_keeps(path, way)
        for relation in self.schema.relations:
            if kept.any() and name in relation.columns:
                kept &= self._relation_keeps(relation.rule, way, before)
        return kept

    def _time_keeps(self, path: HistoryPath, way: Way) -> bool:
        # A window that clean steps enter only falls, in all its summaries, as time goes on.
        falls = path.enters == 0.0 and path.at_least == 0.0
        return falls and way[1] < 0.0 and all(self.weight[name] <= 0.0 for name in path.columns)

    def _relation_keeps(
        self, rule: LinearRow | LevelRow | ConditionalRow, way: Way, before: Sequence[str]
    ) -> Mask:
        if not isinstance(rule, ConditionalRow):
            return self._row_keeps(rule, way, before)
        name, sign = way
        kept = np.ones(self.n, bool)
        if name in rule.premise.columns:
            # Where the premise still lies ahead, what it asks for has to hold already.
            ahead = (_bound(rule.premise) - self.after[name].to_numpy()) * sign > 0.0
            kept &= ~ahead | rule.then.holds(self.after)
        if name in rule.then.columns:
            kept &= ~rule.premise.holds(self.after) | self._row_keeps(rule.then, way, before)
        return kept

    def _row_keeps(self, row: LinearRow | LevelRow, way: Way, before: Sequence[str]) -> Mask:
        name, sign = way
        terms = dict(row.terms) if isinstance(row, LinearRow) else {row.column: 1.0}
        move = terms[name] * sign
        if (row.sense == "<=" and move < 0.0) or (row.sense == ">=" and move > 0.0):
            return np.ones(self.n, bool)
        kept = np.zeros(self.n, bool)
        column = self.column[name]
        end = column.max if sign > 0.0 else column.min
        if np.isfinite(end):
            # What holds at the end of the column, beyond which nothing lies, holds on the way.
            kept |= row.holds(self.after.assign(**{name: end}))
        for partner, weight in terms.items():
            along = (partner, -float(np.sign(move * weight)))
            if partner not in (name, *before) and self._may(along):
                kept |= self.keeps(along, (*before, name))
        return kept

    def _may(self, way: Way) -> bool:
        column = self.column.get(way[0])
        allowed = ("both", "up") if way[1] > 0.0 else ("both", "down")
        return column is not None and column.change in allowed


def _bound(row: LinearRow | LevelRow) -> float:
    """Return the value that a row about one column compares with."""
    if isinstance(row, LevelRow):
        return float(row.code)
    return row.bound / row.terms[0][1]


def _codes(schema: Schema, after: Floats) -> pd.DataFrame:
    """Return people as one coded column per feature; of a one-hot feature the category's place."""
    columns = schema.model_features()
    found = {}
    for feature in schema.features:
        own = [
            j
            for j, column in enumerate(columns)
            if column.source == feature.name and (column.group or not column.indicator)
        ]
        values = after[:, own]
        found[feature.name] = values[:, 0] if len(own) == 1 else values.argmax(axis=1) * 1.0
    return pd.DataFrame(found)


SHARES = 0.5 ** np.arange(8)
"""Of the possible box, tried in turn on scores that bend: gradients vary less in a small one."""
WIDEST = 1e3
"""Where nothing ends a column, how far a box goes on a score that bends, standardised units."""
VISIBLE = 1e-6
"""Offsets below this, in standardised units, are rounding."""
USED_UP = 1e-12


def with_region(advice: Advice, problem: SearchProblem, aim: float) -> Advice:
    """Return verified advice with the certified region around every action."""
    low, high = advice.action.copy(), advice.action.copy()
    who = np.flatnonzero(~absent(advice.action) & (advice.n_changed > 0))
    if problem.consequences is None and who.size:
        below, above = _offsets(problem.rows(who), advice.action[who], aim)
        low[who] -= below
        high[who] += above
    return replace(advice, action_low=low, action_high=high)


def _offsets(problem: SearchProblem, action: Floats, aim: float) -> tuple[Floats, Floats]:
    """Return how far below and above an action every column may end, each (n, d)."""
    feasible, branch = problem.feasible, problem.feasible.branch_at(action)
    amounts = np.abs(action) > TOLERANCE
    for part in feasible.listed:
        amounts[:, part.columns] = False
    low, high = (
        np.where(branch.open_low, -np.inf, branch.low),
        np.where(branch.open_high, np.inf, branch.high),
    )
    room = np.where(np.hstack([amounts, amounts]), np.hstack([action - low, high - action]), 0.0)
    room = np.maximum(room, 0.0)
    rows = np.zeros((0, 2 * action.shape[1]))
    left = np.zeros((len(action), 0))
    if branch.A is not None and branch.b is not None:
        rows = np.hstack([np.maximum(branch.A, 0.0), np.maximum(-branch.A, 0.0)])
        left = np.maximum(action @ branch.A.T + branch.b, 0.0)
    beyond = values(problem.score, problem.X + action) - aim
    beyond = np.maximum(beyond * (1.0 - 1e-9) - USED_UP, 0.0)
    step = np.tile(problem.feasible.step, 2)
    if problem.slope is not None:
        slope = np.hstack([np.maximum(problem.slope, 0.0), np.maximum(-problem.slope, 0.0)])
        found = _filled(room, rows, left, np.broadcast_to(slope, room.shape), beyond, step)
    else:
        found = _of_bent(problem, action, (room, rows, left, beyond, step))
    found = np.where(found < VISIBLE, 0.0, found)
    d = action.shape[1]
    return found[:, :d], found[:, d:]


def _of_bent(
    problem: SearchProblem, action: Floats, given: tuple[Floats, Floats, Floats, Floats, Floats]
) -> Floats:
    """Return offsets for a score whose gradient is bounded over a box; zeros where it is not."""
    room, rows, left, beyond, step = given
    place, d = problem.X + action, action.shape[1]
    best, width = np.zeros_like(room), np.zeros(len(room))
    for share in SHARES:
        inner = share * np.minimum(room, WIDEST)
        box = torch.from_numpy(place - inner[:, :d]), torch.from_numpy(place + inner[:, d:])
        bounds = problem.score.gradient_bounds(*box)
        if bounds is None:
            return best
        least, most = (part.numpy() for part in bounds)
        slope = np.hstack([np.maximum(most, 0.0), np.maximum(-least, 0.0)])
        found = _filled(inner, rows, left, slope, beyond, step)
        wide = np.minimum(found, 1.0).sum(axis=1)
        wins = wide > width
        best[wins], width[wins] = found[wins], wide[wins]
    return best


def _filled(
    room: Floats, rows: Floats, left: Floats, slope: Floats, beyond: Floats, step: Floats
) -> Floats:
    """Return offsets that grow alike to the end of their room or of a row they use up."""
    used = np.flatnonzero((room > 0.0).any(axis=0))
    found = np.zeros_like(room)
    if used.size:
        inner = (room[:, used], rows[:, used], left, slope[:, used], beyond)
        found[:, used] = _whole_steps(_grown(*inner), *inner, step[used])
    return found


def _grown(room: Floats, rows: Floats, left: Floats, slope: Floats, beyond: Floats) -> Floats:
    """Return continuous offsets; a person's are done when each has met its end."""
    offsets, left, beyond = np.zeros_like(room), left.copy(), beyond.copy()
    enough, needed = USED_UP * (1.0 + left), USED_UP * (1.0 + beyond)
    grows: Mask = np.asarray(room > 0.0)
    for _ in range(room.shape[1]):
        grows &= ~((left <= enough).astype(float) @ rows > 0.0)
        grows &= ~((beyond <= needed)[:, None] & (slope > 0.0))
        if not grows.any():
            break
        uses, spends = grows @ rows.T, (grows * slope).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            by_rows = np.where(uses > 0.0, left / uses, np.inf).min(axis=1, initial=np.inf)
            by_score = np.where(spends > 0.0, beyond / spends, np.inf)
            by_room = np.where(grows, room - offsets, np.inf).min(axis=1)
        far = np.minimum(np.minimum(by_rows, by_score), by_room)
        offsets = np.where(grows, offsets + far[:, None], offsets)
        ends = np.isfinite(far)
        left[ends] = np.maximum(left[ends] - far[ends, None] * uses[ends], 0.0)
        beyond[ends] = np.maximum(beyond[ends] - far[ends] * spends[ends], 0.0)
        grows &= (offsets < room) & ends[:, None]
    return np.minimum(offsets, room)


def _whole_steps(
    offsets: Floats,
    room: Floats,
    rows: Floats,
    left: Floats,
    slope: Floats,
    beyond: Floats,
    step: Floats,
) -> Floats:
    """Return offsets in whole steps where a column has some; what that frees goes to the next."""
    on = np.where(step > 0.0, step, 1.0)
    with np.errstate(invalid="ignore"):
        offsets = np.where(step > 0.0, np.floor(offsets / on + 1e-9) * on, offsets)
    finite = np.where(np.isfinite(offsets), offsets, 0.0)  # an endless column uses up nothing
    left = np.maximum(left - finite @ rows.T, 0.0)
    beyond = np.maximum(beyond - (finite * slope).sum(axis=1), 0.0)
    for j in np.flatnonzero(step):
        uses, spends = rows[:, j], slope[:, j]
        with np.errstate(divide="ignore", invalid="ignore"):
            further = np.where(uses > 0.0, left / uses, np.inf).min(axis=1, initial=np.inf)
            further = np.minimum(further, np.where(spends > 0.0, beyond / spends, np.inf))
            further = np.minimum(further, room[:, j] - offsets[:, j])
        more = np.where(np.isfinite(further), np.floor(further / step[j] + 1e-9) * step[j], 0.0)
        more = np.maximum(more, 0.0)
        offsets[:, j] += more
        left = np.maximum(left - more[:, None] * uses, 0.0)
        beyond = np.maximum(beyond - more * spends, 0.0)
    return offsets
