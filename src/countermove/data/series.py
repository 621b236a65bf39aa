"""Several rows per entity, in the order of time.

The rows of an entity are its steps, whatever their order in the file. The last
step is where the entity stands now and all that it can still change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from countermove._types import Floats, Mask
from countermove.data.checks import (
    TableProblem,
    cell_problem,
    control_problems,
    missing_problems,
    rows_problem,
)
from countermove.data.parsing import numbers, texts
from countermove.data.reading import DateReading, Reading
from countermove.data.schema import ROW_ID, Schema, Series
from countermove.errors import DataError, ParameterError, shown

Positions = NDArray[np.int64]


@dataclass(frozen=True)
class Steps:
    """Where the steps of every entity lie in a table."""

    names: tuple[str, ...]  # Entities in order of first appearance.
    order: Positions  # Rows of the table, entity after entity, earliest step first.
    starts: Positions  # Where in ``order`` each entity begins …
    lengths: Positions  # … and how many steps it has.

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
    entity: pd.Series, time: pd.Series, series: Series, reading: Reading | None = None
) -> tuple[Steps | None, list[TableProblem]]:
    """Return the steps of a table, or what keeps them from being distinguished."""
    whose = texts(entity)
    moments, problems = _moments(time, series.time, reading)
    named = missing_problems(series.entity, whose.isna().to_numpy(np.bool_))
    problems = named + control_problems(whose) + problems
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
        pair = (series.entity, series.time)
        return None, rows_problem(text, twice, columns=pair, expected="one row for each of them")
    lengths = np.bincount(codes, minlength=len(names)).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    return Steps(tuple(map(str, names)), order.astype(np.int64), starts, lengths), []


def last_steps(
    long: pd.DataFrame, steps: Steps, schema: Schema
) -> tuple[pd.DataFrame, list[TableProblem]]:
    """Return one row per entity: its last step, and the earlier ones that the schema names."""
    series = schema.series
    if series is None:
        return long, []
    kept = steps.lengths >= series.steps
    if series.shorter == "repeat_first":
        kept[:] = True
    if not kept.any():
        text = f"no {series.entity!r} has {series.steps} steps; the longest has "
        return long, [
            TableProblem(text + f"{steps.lengths.max()}: ask for fewer under series.steps")
        ]
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


def _moments(
    time: pd.Series, column: str, reading: Reading | None
) -> tuple[Floats, list[TableProblem]]:
    """Read times as numbers, or else as the ranks of dates."""
    read, problems = read_times(time, column, reading)
    if read.dtype == np.float64:
        return read.to_numpy(), problems
    # Whole microseconds exceed what a float holds exactly: count in ranks instead.
    return np.asarray(read.rank(method="dense"), dtype=np.float64), problems


def read_times(
    time: pd.Series, column: str, reading: Reading | None = None
) -> tuple[pd.Series, list[TableProblem]]:
    """Read a column of times as the schema says, else as numbers or ISO dates.

    What cannot be read is returned as well.
    """
    if isinstance(reading, DateReading):
        moments, missing, strange = reading.dates(time)
        expected = f"a date as `read:` says ({', '.join(reading.formats)})"
        problems = missing_problems(column, missing)
        problems += cell_problem(column, f"not {expected}", strange, expected)
        return moments.dt.tz_localize("UTC"), problems
    if not pd.api.types.is_datetime64_any_dtype(time.dtype):
        read, missing, unparseable = numbers(time)
        if not unparseable.any():
            problems = missing_problems(column, missing)
            problems += cell_problem(column, "infinite", np.isinf(read), "a finite number")
            return pd.Series(read + 0.0), problems
    else:
        missing = time.isna().to_numpy(np.bool_)
    dates = pd.to_datetime(texts(time), format="ISO8601", errors="coerce", utc=True)
    strange = dates.isna().to_numpy(np.bool_) & ~missing
    what, expected = "neither a number nor a date such as 2024-12-31", "a number or a date"
    problems = missing_problems(column, missing) + cell_problem(column, what, strange, expected)
    return dates.dt.as_unit("us"), problems


ABSENT = -1
"""In a table of columns: the feature was not kept at that step."""


def stacked_histories(
    histories: Sequence[ArrayLike],
    steps: int | None = None,
    shorter: Literal["zeros", "repeat_first"] | None = None,
) -> Floats:
    """Return histories of one's own as one array, shape (n, k, d), the last step last.

    Parameters
    ----------
    histories
        One array per entity, shape (its steps, d), earliest step first, standardised units.
    steps
        k, the last steps kept; the longest history when None.
    shorter
        What stands in for the steps an entity does not have: ``"zeros"`` (the mean, in
        standardised units), or its first one (``"repeat_first"``). None refuses them.

    Raises
    ------
    DataError
        If shapes disagree, or histories are shorter than k and no rule says what to do.
    """
    tables = [np.asarray(history, dtype=np.float64) for history in histories]
    _check_histories(tables)
    k = max(len(table) for table in tables) if steps is None else steps
    if k < 1:
        raise ParameterError(f"steps is {k}; expected a whole number from 1")
    short = [i for i, table in enumerate(tables) if len(table) < k]
    if short and shorter is None:
        raise DataError(
            f"the histories of rows {shown(short)} have fewer than {k} steps; say what stands in "
            "for the missing ones (shorter='zeros' or 'repeat_first'), or ask for fewer steps",
            rows=short,
        )
    stacked = np.zeros((len(tables), k, tables[0].shape[1]))
    for i, table in enumerate(tables):
        kept = table[-k:]
        stacked[i, k - len(kept) :] = kept
        if shorter == "repeat_first":
            stacked[i, : k - len(kept)] = kept[0]
    return stacked


def step_columns(schema: Schema) -> list[list[int]]:
    """Return the model column of each feature at each step (or `ABSENT`), earliest step first."""
    series = _series_of(schema)
    lags = {feature.name: feature.lag for feature in schema.features}
    where: dict[tuple[int, str], int] = {}
    for position, column in enumerate(schema.model_features()):
        lag, source = lags[column.source], column.source
        feature = source.removesuffix(f"_t-{lag}") + column.name.removeprefix(source)
        where[lag, feature] = position
    now = [feature for lag, feature in where if lag == 0]
    return [
        [where.get((lag, feature), ABSENT) for feature in now]
        for lag in reversed(range(series.steps))
    ]


def with_steps(schema: Schema, steps: int) -> Schema:
    """Return the schema with another number of steps; shorter histories repeat their first one."""
    _series_of(schema)
    mapping = schema.to_mapping()
    mapping["series"] |= {"steps": steps, "shorter": "repeat_first"}
    return Schema.from_mapping(schema.name, mapping)


def _series_of(schema: Schema) -> Series:
    if schema.series is None:
        raise ParameterError(
            f"schema {schema.name!r} has no series: say whose rows they are and what orders "
            "them, as in `series: {entity: company, time: year}`"
        )
    return schema.series


def _check_histories(tables: list[Floats]) -> None:
    if not tables:
        raise DataError("there are no histories to stack")
    wrong = [i for i, table in enumerate(tables) if table.ndim != 2 or not len(table)]
    if wrong:
        raise DataError(
            f"a history is an array of shape (steps, features) with at least one step; "
            f"rows {shown(wrong)} are not",
            rows=wrong,
        )
    widths = [table.shape[1] for table in tables]
    other = [i for i, width in enumerate(widths) if width != widths[0]]
    if other:
        raise DataError(
            f"row 0 has {widths[0]} features per step, rows {shown(other)} have others", rows=other
        )
