"""The states that a person's history can go through, in their order.

An overdue month cannot be undone; it leaves the window as new months come in. A path
says which columns move together so, and what they hold after 0, 1, 2, … steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from countermove._types import Floats
from countermove.data.checks import TableProblem, cell_problem, missing_problems, raise_all
from countermove.data.parsing import numbers
from countermove.errors import DataError, shown

if TYPE_CHECKING:
    from countermove.data.schema import Schema
    from countermove.data.standardise import Standardiser

Summary: TypeAlias = Literal["sum", "max", "min", "latest", "count", "spells", "any"]


def _spells(window: Floats) -> Floats:
    """Return how many unbroken runs of values other than 0 each row has."""
    other = window != 0
    starts = other.copy()
    starts[:, 1:] &= ~other[:, :-1]
    return np.asarray(starts.sum(axis=1), dtype=np.float64)


SUMMARIES: dict[Summary, Callable[[Floats], Floats]] = {
    "sum": lambda window: np.asarray(window.sum(axis=1)),
    "max": lambda window: np.asarray(window.max(axis=1)),
    "min": lambda window: np.asarray(window.min(axis=1)),
    "latest": lambda window: window[:, 0],
    "count": lambda window: np.asarray((window != 0).sum(axis=1), dtype=np.float64),
    "spells": _spells,
    "any": lambda window: np.asarray((window != 0).any(axis=1), dtype=np.float64),
}
"""What a column may say of a window: how many of its values are not 0, in how many runs, …"""


@dataclass(frozen=True)
class HistoryPath:
    r"""Columns that move together along states in a fixed order.

    With a window :math:`(m_0, \dots, m_{T-1})` of columns, newest first, the window after
    :math:`t` steps is :math:`(e, \dots, e, m_0, \dots, m_{T-1-t})` with :math:`t` entries
    :math:`e`, and every governed column is a summary of it.

    Parameters
    ----------
    name
        What the path is called.
    columns
        The governed columns: those that summarise the window, then those of the window that are
        features themselves.
    summaries
        How the first of the columns follow from the window, one each.
    window
        Columns of the raw table (before its recipe), newest first.
    enters
        :math:`e`, what a step brings.
    at_least
        Values of the window below this count as this; None leaves them.
    step
        What a step is, for people: a month.
    because
        The reason, for people.
    verb
        What people do while the steps pass, with ``{value}`` where their number stands.
    """

    name: str
    columns: tuple[str, ...]
    summaries: tuple[Summary, ...]
    window: tuple[str, ...]
    enters: float = 0.0
    at_least: float | None = None
    step: str = "step"
    because: str = field(default="", compare=False)
    verb: str = field(default="", compare=False)

    @property
    def n_states(self) -> int:
        """How many states a person's list has, the present one included."""
        return len(self.window) + 1

    @property
    def from_raw(self) -> bool:
        """Whether the window lies in the raw table, not among the features."""
        return not set(self.window) <= set(self.columns)

    def to_entry(self) -> dict[str, Any]:
        """Return the entry as a schema file would hold it."""
        entry: dict[str, Any] = {"step": self.step} if self.step != "step" else {}
        if self.because:
            entry["because"] = self.because
        if self.verb:
            entry["verb"] = self.verb
        entry |= {"window": list(self.window), "enters": self.enters}
        if self.at_least is not None:
            entry["at_least"] = self.at_least
        # Columns of the window that are features follow; they are governed by being in it.
        summarised = self.columns[: len(self.summaries)]
        if summarised:
            entry["columns"] = dict(zip(summarised, self.summaries, strict=True))
        return entry

    def facts(self) -> dict[str, Any]:
        """Return what the path says of people, without the words for them."""
        said = replace(self, because="", verb="")
        return said.to_entry() | {"because": "", "name": self.name}

    def reachable(self, windows: Floats) -> Floats:
        """Return what the governed columns hold after 0, 1, … steps.

        Parameters
        ----------
        windows
            The window's columns of n people, newest first, shape (n, T).

        Returns
        -------
        array of shape (n, T + 1, k)
            One state per step and column of ``columns``; equal states may follow each other.
        """
        now = windows if self.at_least is None else np.maximum(windows, self.at_least)
        states = np.empty((len(now), now.shape[1] + 1, len(self.columns)))
        kept = [self.window.index(name) for name in self.columns[len(self.summaries) :]]
        for step in range(now.shape[1] + 1):
            for place, summary in enumerate(self.summaries):
                states[:, step, place] = SUMMARIES[summary](now)
            states[:, step, len(self.summaries) :] = now[:, kept]
            entered = np.full((len(now), 1), self.enters)
            now = np.hstack([entered, now[:, :-1]])
        return states

    def known_states(self, schema: Schema, X: Floats) -> Floats:
        """Return the states that model columns alone tell of, shape (n, s, k)."""
        place = {name: j for j, name in enumerate(schema.feature_names)}
        return self.from_features(X[:, [place[name] for name in self.columns]])

    def from_features(self, present: Floats) -> Floats:
        """Return the states that the governed columns (coded, shape (n, k)) tell of: (n, s, k).

        A window that lies in the raw table is not known here: what is certain of everybody is
        the present and the last state, when only what a step brings is left in the window.
        """
        if not self.from_raw:
            return self.reachable(present[:, [self.columns.index(name) for name in self.window]])
        last = self.reachable(np.full((1, len(self.window)), self.enters))[:, 0]
        return np.stack([present, np.broadcast_to(last, present.shape)], axis=1)


@dataclass(frozen=True, eq=False)
class PathStates:
    """Where the histories of n people can lead.

    Parameters
    ----------
    path
        The path.
    columns
        Places of its columns among the model columns, shape (k,).
    states
        Coded values in original units, shape (n, s, k); ``states[:, 0]`` is the present.
        Equal states may follow each other.
    """

    path: HistoryPath
    columns: tuple[int, ...]
    states: Floats

    def standardised(self, standardiser: Standardiser) -> PathStates:
        """Return the same states in a standardiser's units."""
        columns = list(self.columns)
        states = (self.states - standardiser.mean[columns]) / standardiser.scale[columns]
        return PathStates(self.path, self.columns, states)


def path_states(
    schema: Schema,
    table: pd.DataFrame,
    raw: pd.DataFrame | None = None,
    paths: Sequence[HistoryPath] | None = None,
) -> tuple[PathStates, ...]:
    """Return where everybody's history can lead, one entry per path of the schema.

    Parameters
    ----------
    schema
        What the columns mean.
    table
        Typed rows, original units.
    raw
        The raw rows of the same people in the same order, where a path's window lies in
        columns that the typed table does not carry (see `HistoryPath.from_raw`).
    paths
        Some of the schema's paths; all of them unless given.

    Raises
    ------
    DataError
        If the raw rows are needed and absent, fewer or more, or hold no numbers there.
    """
    paths = schema.paths if paths is None else paths
    place = {name: i for i, name in enumerate(schema.feature_names)}
    found = []
    for path in paths:
        columns = tuple(place[name] for name in path.columns)
        states = path.reachable(_windows(path, table, raw, schema.name))
        found.append(PathStates(path, columns, states))
    return tuple(found)


def _windows(path: HistoryPath, table: pd.DataFrame, raw: pd.DataFrame | None, name: str) -> Floats:
    """Return the cells of a path's window, shape (n, T)."""
    source = raw if path.from_raw else table
    if source is None:
        raise DataError(
            f"table {name!r}: the path {path.name!r} is read off the raw columns "
            f"{shown(path.window)}; give the raw rows as well"
        )
    absent = [column for column in path.window if column not in source]
    if absent:
        raise DataError(
            f"table {name!r} lacks the columns {shown(map(repr, absent))} of the path "
            f"{path.name!r}; bring them, or take the path out of the schema"
        )
    if len(source) != len(table):
        raise DataError(
            f"table {name!r}: {len(source)} raw rows for {len(table)} typed ones; the path "
            f"{path.name!r} needs one each, in the same order"
        )
    problems: list[TableProblem] = []
    cells = np.empty((len(source), len(path.window)))
    for place, column in enumerate(path.window):
        cells[:, place], missing, strange = numbers(source[column])
        problems += missing_problems(column, missing)
        problems += cell_problem(column, "not a number", strange, "a number")
    raise_all(problems, name)
    return cells
