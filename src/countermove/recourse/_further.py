"""Whether more of one amount keeps approval: by the sign of a weight, and of what moves along.

Relations may take other columns along, whose weights then count too; columns of a path go further
together, as time does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from countermove._types import Floats, Mask
from countermove.data.relations import ConditionalRow, HistoryPath, LevelRow, LinearRow
from countermove.data.schema import Schema

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
