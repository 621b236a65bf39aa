"""Whole histories as arrays, for scores that read sequences.

Steps are standardised like any other rows; entities with fewer steps than asked
for are padded with zeros on the left, so that the last step is always the last.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove.data.checks import raise_all
from countermove.data.cleaning import typed_steps
from countermove.data.design_matrix import design_matrix
from countermove.data.schema import Schema
from countermove.data.series import Steps
from countermove.data.standardise import Standardiser
from countermove.errors import ParameterError

Floats = NDArray[np.float64]


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


def _of_one_step(schema: Schema) -> Schema:
    """Return the schema of the rows as they stand in the file."""
    return replace(schema, features=schema.observed, series=None)


def _all_steps(raw: pd.DataFrame, schema: Schema) -> tuple[Floats, Floats, Steps]:
    """Return features in original units and outcomes of every step, row for row."""
    long, steps, problems = typed_steps(raw, schema)
    raise_all(problems, schema.name)
    if steps is None:
        raise ParameterError(
            f"schema {schema.name!r} has no series: say whose rows they are and what orders "
            "them, as in `series: {entity: company, time: year}`"
        )
    people = design_matrix(long, _of_one_step(schema))
    return people.X, people.y, steps
