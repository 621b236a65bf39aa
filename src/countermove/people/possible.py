r"""Who can exist: relations between columns, histories and usual ranges, in an action set's units.

An action is possible if the person it leads to can exist: :math:`l \le A x' \le u`, conditional
rows where their premise holds, columns of a history in one of the person's own states, amounts
within the usual range. Whoever breaks something already may stay, but not break it further.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from countermove._types import Floats, Index, Mask
from countermove.data.missing import until_supplied
from countermove.data.relations import (
    HistoryPath,
    LinearRows,
    NumericRelations,
    PathStates,
    numeric_relations,
)
from countermove.people._action_arguments import json_numbers

if TYPE_CHECKING:
    import pandas as pd

    from countermove.data.schema import Schema
    from countermove.data.standardise import Standardiser

SAME = 1e-6
"""States this near to each other, in standardised units, are one."""


@dataclass(frozen=True, eq=False)
class HistoryColumns:
    """The columns of one history, and what is known of its states without the raw table."""

    path: HistoryPath
    columns: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Possible:
    """Who can exist, as `ActionSet` holds it.

    Parameters
    ----------
    relations
        Relations over the d columns, in the units of the set.
    histories
        Columns that only move together, along their path.
    low, high
        The usual range of each column, shape (d,), in the units of the set; infinite where
        there is none. Whoever stands outside may stay or move inward.
    states
        What the histories of n people can lead to, one entry per history, each of shape
        (n, s, k) in the units of the set; None: what the columns themselves tell.
    max_steps
        How many steps along a history may be asked for; None: any number.
    in_responses
        Whether responses obey it too; see `ActionSet.obeyed_in_responses`.
    """

    relations: NumericRelations
    histories: tuple[HistoryColumns, ...]
    low: Floats
    high: Floats
    states: tuple[Floats, ...] | None = None
    max_steps: int | None = None
    in_responses: bool = False

    @classmethod
    def from_schema(
        cls, schema: Schema, standardiser: Standardiser, declared: bool = True
    ) -> Possible | None:
        """Return what a schema declares, in original units; None where it declares nothing.

        Ranges are those the standardiser brings from its training rows. Not ``declared``: only
        that a cell which people can supply is as assumed until then.
        """
        if not declared:
            schema = replace(schema, relations=(), paths=())
        relations, d = numeric_relations(schema), len(schema.feature_names)
        relations = _until_supplied(relations, schema, standardiser)
        place = {name: j for j, name in enumerate(schema.feature_names)}
        histories = []
        for path in schema.paths:
            columns = tuple(place[name] for name in path.columns)
            histories.append(HistoryColumns(path, columns))
        ranges = standardiser.ranges if declared else None
        if not relations and not histories and ranges is None:
            return None
        low = np.full(d, -np.inf) if ranges is None else ranges.low
        high = np.full(d, np.inf) if ranges is None else ranges.high
        return cls(relations, tuple(histories), low, high)

    @property
    def n_people(self) -> int | None:
        """Number of people whose states are given, None where columns tell."""
        return len(self.states[0]) if self.states else None

    @property
    def only_ranges(self) -> bool:
        """Whether nothing ties columns to each other: who can exist is a box."""
        return not self.relations and not self.histories

    def with_windows(self, X: Floats, windows: pd.DataFrame) -> Possible:
        """Return the set that knows the windows of n people; see `ActionSet.with_windows`."""
        states = []
        for history, certain in zip(self.histories, self._from_features(X), strict=True):
            path = history.path
            if not path.from_raw or not set(path.window) <= set(windows.columns):
                states.append(certain)
                continue
            cells = windows[list(path.window)].to_numpy(np.float64)
            known = ~np.isnan(cells).any(axis=1)
            # Who is known by features alone stands still until the last step.
            own = certain[:, [*([0] * len(path.window)), certain.shape[1] - 1]]
            own[known] = self._in_units(history, path.reachable(cells[known]))
            states.append(own)
        return replace(self, states=tuple(states))

    def _in_units(self, history: HistoryColumns, states: Floats) -> Floats:
        """Return states in original units in those of the set."""
        columns = list(history.columns)
        converted: Floats = (states - self.relations.mean[columns]) / self.relations.scale[columns]
        return converted

    def _from_features(self, X: Floats) -> list[Floats]:
        """Return the states that the columns themselves tell, one entry per history."""
        found = []
        for history in self.histories:
            columns = list(history.columns)
            mean, scale = self.relations.mean[columns], self.relations.scale[columns]
            present = X[:, columns] * scale + mean
            whole = np.round(present)
            present = np.where(np.abs(present - whole) < SAME, whole, present)
            states = history.path.from_features(present)
            found.append(self._in_units(history, states))
        return found

    def of_rows(self, rows: Index) -> Possible:
        """Return the set of some people only."""
        if self.states is None:
            return self
        return replace(self, states=tuple(part[rows] for part in self.states))

    def rescaled(self, scale: Floats, mean: Floats) -> Possible:
        """Return the same of rows ``(x - mean) / scale``."""
        relations = self.relations.rescaled(mean, scale)
        states = None
        if self.states is not None:
            states = tuple(
                (part - mean[list(one.columns)]) / scale[list(one.columns)]
                for part, one in zip(self.states, self.histories, strict=True)
            )
        low, high = (self.low - mean) / scale, (self.high - mean) / scale
        return replace(self, relations=relations, low=low, high=high, states=states)

    def path_states(self, X: Floats) -> tuple[PathStates, ...]:
        """Return where everybody's history can lead, in original units."""
        states = self._from_features(X) if self.states is None else self.states
        found = []
        for history, own in zip(self.histories, states, strict=True):
            columns = list(history.columns)
            mean, scale = self.relations.mean[columns], self.relations.scale[columns]
            found.append(PathStates(history.path, history.columns, own * scale + mean))
        return tuple(found)

    def changes(self, X: Floats) -> list[Floats]:
        """Return the actions on each history's columns that lead to its states, (n, s, k)."""
        # The first state is where the person stands, also where the table says otherwise.
        found = []
        states = self._from_features(X) if self.states is None else self.states
        for history, own in zip(self.histories, states, strict=True):
            change = own - X[:, None, list(history.columns)]
            change[:, 0] = 0.0
            if self.max_steps is not None:
                change[:, _steps(history.path, change.shape[1]) > self.max_steps] = 0.0
            found.append(np.where(np.abs(change) < SAME, 0.0, change))
        return found

    def box(self, X: Floats, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """Return the box of actions, each (n, d), cut to the usual range."""
        low = np.maximum(lower, np.minimum(self.low - X, 0.0))
        high = np.minimum(upper, np.maximum(self.high - X, 0.0))
        # Somebody who has to move keeps their way: a bound of the action set comes first.
        return np.minimum(low, upper), np.maximum(high, lower)

    def allows(self, X: Floats, action: Floats, unknown: Mask | None = None) -> Mask:
        """Return whose action leads to somebody who can exist, or breaks nothing further.

        Relations with a cell that is ``unknown``, shape (n, d), are not judged.
        """
        after = X + action
        rows, conditional = self.unjudged(unknown)
        good = (_no_worse(self.relations.rows, X, after) | rows).all(axis=1)
        there, here = self.relations.in_force(after), self.relations.in_force(X)
        good &= (
            ~there
            | conditional
            | self.relations.conditional.satisfied(after)
            | (here & _no_worse(self.relations.conditional, X, after))
        ).all(axis=1)
        for history, change in zip(self.histories, self.changes(X), strict=True):
            away = np.abs(action[:, None, list(history.columns)] - change)
            good &= np.asarray((away <= SAME).all(axis=2)).any(axis=1)
        return np.asarray(good)

    def unjudged(self, unknown: Mask | None) -> tuple[Mask, Mask]:
        """Return whose rows, and conditional rows, have a cell that nobody knows, (n, m) each."""
        relations = self.relations
        cells = np.zeros((1, len(self.low)), bool) if unknown is None else unknown
        plain = np.asarray(cells @ (relations.rows.A != 0.0).T)
        then = np.asarray(cells @ (relations.conditional.A != 0.0).T)
        return plain, then | cells[:, relations.premise_columns]

    def describe(self) -> dict[str, Any]:
        """Return JSON-ready facts that `from_description` reads; states of people are left out."""
        relations = self.relations
        described: dict[str, Any] = {
            "columns": list(relations.columns),
            "premise_columns": relations.premise_columns.tolist(),
            "premise_values": relations.premise_values.tolist(),
            "mean": relations.mean.tolist(),
            "scale": relations.scale.tolist(),
            "low": json_numbers(self.low.tolist()),
            "high": json_numbers(self.high.tolist()),
        }
        for name in ("rows", "conditional"):
            rows = getattr(relations, name)
            described[name] = {
                "A": rows.A.tolist(),
                "lower": json_numbers(rows.lower.tolist()),
                "upper": json_numbers(rows.upper.tolist()),
                "texts": list(rows.texts),
            }
        if self.max_steps is not None:
            described["max_steps"] = self.max_steps
        if self.in_responses:
            described["in_responses"] = True
        described["histories"] = [
            {"path": asdict(one.path), "columns": list(one.columns)} for one in self.histories
        ]
        return described

    @classmethod
    def from_description(cls, said: Mapping[str, Any]) -> Possible:
        """Return what :meth:`describe` described."""
        d = len(said["columns"])
        rows, conditional = (
            LinearRows(
                np.array(part["A"], np.float64).reshape(-1, d),
                np.array(part["lower"], np.float64),
                np.array(part["upper"], np.float64),
                tuple(part["texts"]),
            )
            for part in (said["rows"], said["conditional"])
        )
        relations = NumericRelations(
            tuple(said["columns"]),
            rows,
            conditional,
            np.array(said["premise_columns"], np.intp),
            np.array(said["premise_values"], np.float64),
            np.array(said["mean"], np.float64),
            np.array(said["scale"], np.float64),
        )
        histories = tuple(_history(one) for one in said["histories"])
        low, high = (np.array(said[end], np.float64) for end in ("low", "high"))
        return cls(
            relations,
            histories,
            low,
            high,
            max_steps=said.get("max_steps"),
            in_responses=bool(said.get("in_responses", False)),
        )


def _until_supplied(
    relations: NumericRelations, schema: Schema, standardiser: Standardiser
) -> NumericRelations:
    """Return the relations, and that cells which people can supply are as assumed until then."""
    found = until_supplied(schema, standardiser.fill)
    if not found:
        return relations
    indicators, columns, assumed = zip(*found, strict=True)
    names, then = schema.feature_names, relations.conditional
    texts = [f"if {names[i]} then {names[j]} == {value:g}" for i, j, value in found]
    rows = LinearRows(
        np.vstack([then.A, np.eye(len(names))[list(columns)]]),
        np.append(then.lower, assumed),
        np.append(then.upper, assumed),
        (*then.texts, *texts),
    )
    return replace(
        relations,
        conditional=rows,
        premise_columns=np.append(relations.premise_columns, indicators).astype(np.intp),
        premise_values=np.append(relations.premise_values, np.ones(len(found))),
    )


def _history(said: Mapping[str, Any]) -> HistoryColumns:
    listed = ("columns", "summaries", "window")
    path: dict[str, Any] = {
        key: tuple(value) if key in listed else value for key, value in said["path"].items()
    }
    return HistoryColumns(HistoryPath(**path), tuple(said["columns"]))


def _steps(path: HistoryPath, count: int) -> Index:
    """Return how many steps each of ``count`` states is away."""
    if path.from_raw and count == 2:  # the present and the last, known by features alone
        return np.array([0, len(path.window)])
    return np.arange(count)


def _no_worse(rows: LinearRows, X: Floats, after: Floats) -> Mask:
    """Return which rows hold after the move, or are broken no further by it, shape (n, m)."""

    def lacking(where: Floats) -> Floats:
        values = where @ rows.A.T
        below = np.where(np.isfinite(rows.lower), rows.lower - values, 0.0)
        above = np.where(np.isfinite(rows.upper), values - rows.upper, 0.0)
        return np.maximum(np.maximum(below, above), 0.0)

    return np.asarray(rows.satisfied(after) | (lacking(after) <= lacking(X) + 1e-7))
