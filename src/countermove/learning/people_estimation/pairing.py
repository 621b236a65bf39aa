"""Two tables of people, matched by key or kept as two samples.

Whatever would make an estimate silently wrong is refused here: keys that do not
match or repeat, columns that are missing, values that are not finite.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from countermove._types import Floats
from countermove.data.standardise import Standardiser
from countermove.errors import DataError, ParameterError, shown

Key: TypeAlias = str | tuple[ArrayLike, ArrayLike] | None
"""A column of both tables, a pair of key arrays, or None for two samples without keys."""


@dataclass(frozen=True)
class People:
    """People before and after, in standardised units.

    Attributes
    ----------
    before, after
        Features, shapes (n, d) and (m, d); row i is the same person iff ``matched``.
    names
        Of the features.
    matched
        Whether rows are paired.
    keys
        Who they are, in the order of ``before``; empty without keys.
    """

    before: Floats
    after: Floats
    names: tuple[str, ...]
    matched: bool
    keys: NDArray[Any]


def pair_up(before: Any, after: Any, key: Key, units: Standardiser | None = None) -> People:
    """Match two tables.

    Parameters
    ----------
    before, after
        DataFrames or arrays of shape (n, d).
    key
        See `Key`. Row order counts for nothing.
    units
        Converts from original units; its names pick the columns. None: the tables
        are in standardised units already, and DataFrames hold features and key only.

    Raises
    ------
    DataError
        Naming the keys, columns or rows concerned.
    """
    if not (key is None or isinstance(key, str) or (isinstance(key, tuple) and len(key) == 2)):
        raise ParameterError(f"key is a column, a pair (before, after) or None, got {key!r}")
    names = _names(before, after, key, units)
    tables = [
        _features(table, names, where) for table, where in ((before, "before"), (after, "after"))
    ]
    if units is not None:
        tables = [units.transform(table) for table in tables]
    if key is None:
        return People(tables[0], tables[1], names, False, np.empty(0, dtype=object))
    first, second = _keys(before, after, key)
    for keys, rows, where in ((first, tables[0], "before"), (second, tables[1], "after")):
        _check_keys(keys, len(rows), where)
    order = _matched(first, second)
    return People(tables[0], tables[1][order], names, True, first.to_numpy(dtype=object))


def _names(before: Any, after: Any, key: Key, units: Standardiser | None) -> tuple[str, ...]:
    frames = [isinstance(table, pd.DataFrame) for table in (before, after)]
    if all(frames):
        named = [str(name) for name in before.columns if name != key]
        return tuple(units.names) if units is not None else tuple(named)
    if any(frames):
        raise DataError("one table is a DataFrame and the other is not; bring two of a kind")
    width = np.asarray(before).shape[-1] if np.ndim(before) == 2 else 0
    if units is not None and width == units.n_features:
        return tuple(units.names)
    return tuple(f"x{j}" for j in range(width))


def _features(table: Any, names: tuple[str, ...], where: str) -> Floats:
    """Return the named columns as finite numbers."""
    if isinstance(table, pd.DataFrame):
        absent = [name for name in names if name not in table.columns]
        if absent:
            raise DataError(
                f"the table {where} lacks the columns {shown(map(repr, absent))}; it must hold "
                f"what the rule reads: {shown(names)}"
            )
        table = table[list(names)]
    try:
        rows = np.ascontiguousarray(table, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"the table {where} holds cells that are no numbers: {error}") from error
    if rows.ndim != 2 or rows.shape[1] != len(names):
        raise DataError(
            f"the table {where} has shape {rows.shape}; expected one row per person and "
            f"{len(names)} features"
        )
    broken = ~np.isfinite(rows)
    if broken.any():
        where_rows = np.flatnonzero(broken.any(axis=1))
        columns = [names[j] for j in np.flatnonzero(broken.any(axis=0))]
        raise DataError(
            f"the table {where} has missing or infinite values in {shown(map(repr, columns))}, "
            f"rows {shown(where_rows)} (counted from 0); fill them or leave these people out of "
            "both tables",
            rows=where_rows,
        )
    return rows


def _keys(before: Any, after: Any, key: Key) -> tuple[pd.Series, pd.Series]:
    if isinstance(key, str):
        for table, where in ((before, "before"), (after, "after")):
            if not isinstance(table, pd.DataFrame):
                raise ParameterError(
                    f"key={key!r} names a column, but the table {where} is an array; give the "
                    "keys as a pair (keys_before, keys_after)"
                )
            if key not in table.columns:
                raise DataError(f"the table {where} lacks the key column {key!r}")
        return before[key].reset_index(drop=True), after[key].reset_index(drop=True)
    assert isinstance(key, tuple)
    return pd.Series(np.asarray(key[0])), pd.Series(np.asarray(key[1]))


def _check_keys(keys: pd.Series, n_rows: int, where: str) -> None:
    if len(keys) != n_rows:
        raise DataError(f"the table {where} has {n_rows} rows but {len(keys)} keys")
    missing = np.flatnonzero(keys.isna())
    if missing.size:
        raise DataError(f"the table {where} has rows without a key: {shown(missing)}", rows=missing)
    twice = keys.duplicated(keep=False).to_numpy(dtype=bool)
    if twice.any():
        named = dict.fromkeys(map(repr, keys[twice].tolist()))
        raise DataError(
            f"the table {where} has keys that occur more than once: {shown(named)}; each person "
            "needs one row, so keep the latest or aggregate",
            rows=np.flatnonzero(twice),
        )


def _matched(first: pd.Series, second: pd.Series) -> NDArray[np.intp]:
    """Return where the people of ``first`` stand in ``second``."""
    order: NDArray[np.intp] = pd.Index(second).get_indexer(pd.Index(first))
    gone = first[order < 0].tolist()
    known = second.isin(first).to_numpy(dtype=bool)
    new = second[~known].tolist()
    if gone or new:
        parts = [
            f"{len(keys)} only {where}: {shown(map(repr, keys))}"
            for keys, where in ((gone, "before"), (new, "after"))
            if keys
        ]
        raise DataError(
            f"the tables do not match by key ({'; '.join(parts)}). Keep the people who are in "
            "both (whether those who left differ is for you to judge), or compare the tables as "
            "two samples with key=None",
            rows=np.flatnonzero(order < 0),
        )
    return order
