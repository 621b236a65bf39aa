"""Several rows per entity, in the order of time.

The rows of an entity are its steps, whatever their order in the file. The last
step is where the entity stands now and all that it can still change.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove._types import Mask
from countermove.data.checks import Problem, missing_problems, rows_problem
from countermove.data.parsing import numbers, texts
from countermove.data.schema import ROW_ID, Schema, Series
from countermove.errors import shown

Positions = NDArray[np.int64]


@dataclass(frozen=True)
class Steps:
    """Where the steps of every entity lie in a table.

    Parameters
    ----------
    names
        The entities, in order of first appearance.
    order
        Rows of the table, entity after entity, earliest step first.
    starts, lengths
        Where in ``order`` each entity begins, and how many steps it has.
    """

    names: tuple[str, ...]
    order: Positions
    starts: Positions
    lengths: Positions

    def rows_before_last(self, lag: int) -> Positions:
        """Return each entity's row ``lag`` steps before its last (its first, if it has fewer)."""
        ends = self.starts + self.lengths - 1
        rows: Positions = self.order[np.maximum(ends - lag, self.starts)]
        return rows

    @property
    def last(self) -> Mask:
        """Which rows are the last step of their entity."""
        mask = np.zeros(len(self.order), dtype=np.bool_)
        mask[self.rows_before_last(0)] = True
        return mask


def order_steps(
    entity: pd.Series, time: pd.Series, series: Series
) -> tuple[Steps | None, list[Problem]]:
    """Return the steps of a table, or what keeps them from being told apart.

    Parameters
    ----------
    entity, time
        The two columns as read.
    series
        Their names.
    """
    whose = texts(entity)
    moments, problems = _moments(time, series.time)
    problems = missing_problems(series.entity, whose.isna().to_numpy(np.bool_)) + problems
    if problems:
        return None, problems
    codes, names = pd.factorize(whose)
    order = np.lexsort((moments, codes))
    same = (np.diff(codes[order]) == 0) & (np.diff(moments[order]) == 0)
    twice = np.zeros(len(order), dtype=np.bool_)
    twice[order[1:][same]] = twice[order[:-1][same]] = True
    if twice.any():
        pairs = dict.fromkeys(zip(whose[twice], texts(time)[twice], strict=True))
        listed = shown((f"{who} at {when}" for who, when in pairs), cap=3)
        text = f"two rows for one {series.entity!r} and {series.time!r} ({listed})"
        return None, rows_problem(text, twice)
    lengths = np.bincount(codes, minlength=len(names)).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    return Steps(tuple(map(str, names)), order.astype(np.int64), starts, lengths), []


def last_steps(
    long: pd.DataFrame, steps: Steps, schema: Schema
) -> tuple[pd.DataFrame, list[Problem]]:
    """Return one row per entity: its last step, and the earlier ones the schema asks for.

    Parameters
    ----------
    long
        Typed columns, one row per step.
    steps
        Where the steps lie.
    schema
        Its series says how many steps, and what happens to shorter entities.
    """
    series = schema.series
    if series is None:
        return long, []
    kept = steps.lengths >= series.steps
    if series.shorter == "repeat_first":
        kept[:] = True
    if not kept.any():
        text = f"no {series.entity!r} has {series.steps} steps; the longest has "
        return long, [Problem(text + f"{steps.lengths.max()}: ask for fewer under series.steps")]
    now = long.iloc[steps.rows_before_last(0)[kept]].reset_index(drop=True)
    now[ROW_ID] = pd.Series([n for n, keep in zip(steps.names, kept, strict=True) if keep])
    earlier = {
        feature.name: long[feature.name.removesuffix(f"_t-{feature.lag}")]
        .iloc[steps.rows_before_last(feature.lag)[kept]]
        .reset_index(drop=True)
        for feature in schema.features
        if feature.lag
    }
    wide = pd.concat([now, pd.DataFrame(earlier)], axis=1) if earlier else now
    return wide[list(schema.table_columns)], []


def _moments(time: pd.Series, column: str) -> tuple[NDArray[np.float64], list[Problem]]:
    """Read times as numbers, or else as ISO dates."""
    if not pd.api.types.is_datetime64_any_dtype(time.dtype):
        read, missing, unparseable = numbers(time)
        if not unparseable.any():
            problems = missing_problems(column, missing)
            return read, problems + rows_problem(f"column {column!r}: infinite", np.isinf(read))
    else:
        missing = time.isna().to_numpy(np.bool_)
    dates = pd.to_datetime(texts(time), format="ISO8601", errors="coerce", utc=True)
    strange = dates.isna().to_numpy(np.bool_) & ~missing
    text = f"column {column!r}: neither a number nor a date such as 2024-12-31"
    problems = missing_problems(column, missing) + rows_problem(text, strange)
    # Whole nanoseconds exceed what a float holds exactly: count in ranks instead.
    ranks = np.asarray(dates.rank(method="dense"), dtype=np.float64)
    return ranks, problems
