"""Whole histories as arrays, for scores that read sequences.

Steps are standardised like any other rows; entities with fewer steps than asked
for are padded with zeros on the left, so that the last step is always the last.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from countermove._types import Floats
from countermove.data.checks import raise_all
from countermove.data.cleaning import typed_steps
from countermove.data.design_matrix import design_matrix
from countermove.data.schema import Schema
from countermove.data.series import Steps
from countermove.data.standardise import Standardiser
from countermove.errors import DataError, ParameterError, shown

ABSENT = -1
"""In a table of columns: the feature was not kept at that step."""


@dataclass(frozen=True)
class Sequences:
    """The steps of n entities.

    Parameters
    ----------
    ids
        The entities, shape (n,), in order of first appearance.
    X
        Features, shape (n, k, d), standardised units; step k - 1 is the last one,
        and steps an entity does not have are zero.
    y
        Outcome at the last step, +1 or -1, shape (n,).
    lengths
        How many of the k steps are real, shape (n,).
    """

    ids: NDArray[np.str_]
    X: Floats
    y: Floats
    lengths: NDArray[np.int64]

    @property
    def rows(self) -> Floats:
        """The sequences flattened, earliest step first, shape (n, k * d)."""
        flat: Floats = self.X.reshape(len(self.X), -1)
        return flat


def fit_step_standardiser(
    raw: pd.DataFrame, schema: Schema, ids: Collection[str], divide_by_root_d: bool = False
) -> Standardiser:
    """Return means and scales over all steps of the entities in ``ids`` (the training ones).

    Parameters
    ----------
    raw
        The table as read, several rows per entity.
    schema
        A schema with a series.
    ids
        The entities to learn from.
    divide_by_root_d
        As in `Standardiser.fit`.
    """
    X, _, steps = _all_steps(raw, schema)
    chosen = np.isin(steps.names, list(ids))
    whose = np.empty(len(X), dtype=np.int64)
    whose[steps.order] = np.repeat(np.arange(len(steps.names)), steps.lengths)
    names = _of_one_step(schema).feature_names
    return Standardiser.fit(X[chosen[whose]], names, divide_by_root_d=divide_by_root_d)


def padded_sequences(
    raw: pd.DataFrame, schema: Schema, standardiser: Standardiser, steps: int | None = None
) -> Sequences:
    """Return the last steps of every entity, zeros on the left where it has fewer.

    Parameters
    ----------
    raw
        The table as read, several rows per entity.
    schema
        A schema with a series. Its own ``steps`` and ``shorter`` do not count here.
    standardiser
        Of the columns of one step, as `fit_step_standardiser` returns it.
    steps
        k; the longest history when None.

    Raises
    ------
    DataError
        With every problem of the table, as `clean` has them.
    ParameterError
        If the schema has no series or k is below 1.
    """
    X, y, found = _all_steps(raw, schema)
    k = int(found.lengths.max()) if steps is None else steps
    if k < 1:
        raise ParameterError(f"steps is {k}; expected a whole number from 1")
    Z = standardiser.transform(X)
    padded = np.zeros((len(found.names), k, Z.shape[1]))
    for lag in range(k):
        there = found.lengths > lag
        padded[there, k - 1 - lag] = Z[found.rows_before_last(lag)[there]]
    return Sequences(
        ids=np.array(found.names, dtype=np.str_),
        X=padded,
        y=y[found.rows_before_last(0)],
        lengths=np.minimum(found.lengths, k),
    )


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
    """Return which model column is which feature at which step, shape (k, d), earliest first.

    A feature whose earlier values were not kept (``series.earlier``) is `ABSENT` there.

    Raises
    ------
    ParameterError
        If the schema has no series.
    """
    if schema.series is None:
        raise ParameterError(no_series(schema))
    lags = {feature.name: feature.lag for feature in schema.features}
    where: dict[tuple[int, str], int] = {}
    for position, column in enumerate(schema.model_features()):
        lag, source = lags[column.source], column.source
        feature = source.removesuffix(f"_t-{lag}") + column.name.removeprefix(source)
        where[lag, feature] = position
    now = [feature for lag, feature in where if lag == 0]
    return [
        [where.get((lag, feature), ABSENT) for feature in now]
        for lag in reversed(range(schema.series.steps))
    ]


def with_steps(schema: Schema, steps: int) -> Schema:
    """Return the schema with another number of steps; shorter histories repeat their first one.

    Raises
    ------
    ParameterError
        If the schema has no series.
    """
    if schema.series is None:
        raise ParameterError(no_series(schema))
    mapping = schema.to_mapping()
    mapping["series"] |= {"steps": steps, "shorter": "repeat_first"}
    return Schema.from_mapping(schema.name, mapping)


def no_series(schema: Schema) -> str:
    """Say what a schema without a series lacks."""
    return (
        f"schema {schema.name!r} has no series: say whose rows they are and what orders "
        "them, as in `series: {entity: company, time: year}`"
    )


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


def _of_one_step(schema: Schema) -> Schema:
    """Return the schema of the rows as they stand in the file."""
    return replace(schema, features=schema.observed, series=None)


def _all_steps(raw: pd.DataFrame, schema: Schema) -> tuple[Floats, Floats, Steps]:
    """Return features in original units and outcomes of every step, row for row."""
    long, steps, problems = typed_steps(raw, schema)
    raise_all(problems, schema.name)
    if steps is None:
        raise ParameterError(no_series(schema))
    people = design_matrix(long, _of_one_step(schema))
    return people.X, people.y, steps
