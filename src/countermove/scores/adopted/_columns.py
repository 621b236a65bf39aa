"""The table a model reads, and its people as a matrix: numbers as they are, categories one-hot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from countermove._types import Floats
from countermove.errors import DataError, shown


@dataclass(frozen=True)
class TableColumns:
    """The columns a model was fitted on, in its order.

    Parameters
    ----------
    names
        Of the table.
    categories
        By column: what it may hold, where it holds categories.
    fill
        By column: what the model itself puts in the place of a missing number.
    open_categories
        Columns whose encoder takes categories it does not know.
    named
        Whether the model was fitted on a table with names: then it is given one again.
    """

    names: tuple[str, ...]
    categories: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    fill: Mapping[str, float] = field(default_factory=dict)
    open_categories: frozenset[str] = frozenset()
    named: bool = False

    @property
    def matrix_names(self) -> tuple[str, ...]:
        """The matrix' columns: ``name`` of a number, ``name=category`` of a category."""
        found: list[str] = []
        for name in self.names:
            known = self.categories.get(name)
            found += [name] if known is None else [f"{name}={value}" for value in known]
        return tuple(found)

    def places(self, name: str) -> tuple[int, ...]:
        """Return the matrix' columns of one of the table's."""
        at = 0
        for other in self.names:
            width = len(self.categories.get(other, (None,)))
            if other == name:
                return tuple(range(at, at + width))
            at += width
        raise DataError(
            f"the model reads no column {name!r}; it reads {shown(map(repr, self.names))}"
        )

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The one-hot columns of each column of categories."""
        return tuple(self.places(name) for name in self.names if name in self.categories)

    def encode(self, X: Any) -> Floats:
        """Return people as a matrix of doubles, shape (n, d), NaN where a number is missing."""
        if self._is_encoded(X):
            return np.ascontiguousarray(X, np.float64)
        table = self.table(X)
        parts: list[Floats] = []
        for at, name in enumerate(self.names):
            column = table[:, at] if isinstance(table, np.ndarray) else table[name]
            if name in self.categories:
                parts.append(self._one_hot(name, np.asarray(column)))
                continue
            values = np.asarray(column, np.float64).reshape(-1, 1)
            if name in self.fill:
                values = np.where(np.isnan(values), self.fill[name], values)
            parts.append(values)
        return np.ascontiguousarray(np.hstack(parts))

    def _is_encoded(self, X: Any) -> bool:
        return (
            bool(self.categories)
            and isinstance(X, np.ndarray)
            and X.dtype.kind in "fiub"
            and X.shape[1:] == (len(self.matrix_names),)
        )

    def decode(self, rows: Floats) -> Any:
        """Return the table of a matrix, as the model was fitted on one."""
        import pandas as pd

        columns: dict[str, Any] = {}
        for name in self.names:
            places = list(self.places(name))
            if name not in self.categories:
                columns[name] = rows[:, places[0]]
                continue
            known = np.array(self.categories[name], object)
            on = rows[:, places] > 0.5
            columns[name] = np.where(on.any(axis=1), known[on.argmax(axis=1)], None)
        if not self.named and not self.categories:
            return np.column_stack([columns[name] for name in self.names])
        frame = pd.DataFrame(columns)
        return frame if self.named else frame.to_numpy(object)

    def table(self, X: Any) -> Any:
        """Return a table after checking that it has the model's columns."""
        held = getattr(X, "columns", None)
        if held is None:
            found = np.asarray(X)
            if found.ndim != 2 or found.shape[1] != len(self.names):
                raise DataError(
                    f"the model reads {len(self.names)} columns ({shown(self.names)}); the table "
                    f"has shape {found.shape}"
                )
            return found
        given = [str(name) for name in held]
        if not self.named and len(given) == len(self.names) and set(given) != set(self.names):
            return np.asarray(X)
        lacking = [name for name in self.names if name not in given]
        if lacking:
            raise DataError(
                f"the model reads {shown(map(repr, self.names))}, the table has "
                f"{shown(map(repr, given))}: it lacks {shown(map(repr, lacking))}"
            )
        return X

    def _one_hot(self, name: str, column: Any) -> Floats:
        known = self.categories[name]
        bits = np.column_stack([_same(column, value) for value in known]).astype(np.float64)
        strange = np.flatnonzero(bits.sum(axis=1) == 0.0)
        if strange.size and name not in self.open_categories:
            raise DataError(
                f"column {name!r} holds {column[strange[0]]!r} in rows {shown(strange)}; the model "
                f"knows {shown(map(repr, known))}",
                rows=strange,
            )
        return bits


def _same(column: Any, value: Any) -> Any:
    import pandas as pd

    if value is None or (isinstance(value, float) and np.isnan(value)):
        return np.asarray(pd.isna(column))
    return np.array([entry == value for entry in column], bool)
