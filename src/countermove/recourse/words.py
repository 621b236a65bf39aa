"""Advice as people read it: original units, one sentence each, one row each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.data.schema import ROW_ID, ModelFeature, Schema
from countermove.data.standardise import Standardiser
from countermove.errors import DataError
from countermove.recourse.advice import NOT_NEEDED, Advice
from countermove.recourse.phrases import spoken

CHANGE = "change:"
"""Prefix of the columns that hold a feature's change in original units."""


def sentences(advice: Advice, X: Floats, schema: Schema, standardiser: Standardiser) -> list[str]:
    """Return one sentence per person, in original units.

    Parameters
    ----------
    advice
        What `recommend` returned for these people.
    X
        The people, shape (n, d), standardised units.
    schema
        What the columns mean.
    standardiser
        The units of ``X``.
    """
    words: list[str] = spoken(advice, X, schema, standardiser).to_pylist()
    return words


def advice_table(
    advice: Advice,
    X: Floats,
    schema: Schema,
    standardiser: Standardiser,
    ids: Sequence[str] | NDArray[np.str_] | None = None,
) -> pd.DataFrame:
    """Return one row per person, ready for parquet or CSV.

    Columns: ``row_id``, ``decision`` (+1 or -1, as they stand), ``probability``,
    ``status``, ``probability_after``, ``cost``, one ``change:<column>`` in original
    units for every column the schema lets people change (missing where no action
    is known), and ``words``.

    Parameters
    ----------
    advice, X, schema, standardiser
        As in `sentences`.
    ids
        Row ids, shape (n,); ``r0, r1, …`` by default.
    """
    names = [f"r{i}" for i in range(len(X))] if ids is None else [str(name) for name in ids]
    if len(names) != len(advice.status):
        raise DataError(f"{len(names)} ids for the advice of {len(advice.status)} people")
    action = standardiser.action_to_original(advice.action)
    changes = {
        f"{CHANGE}{column.name}": _whole(action[:, j], column)
        for j, column in enumerate(schema.model_features())
        if column.change != "immutable"
    }
    return pd.DataFrame(
        {
            ROW_ID: names,
            "decision": np.where(advice.status == NOT_NEEDED, 1, -1),
            "probability": advice.probability_before,
            "status": advice.status.astype(object),
            "probability_after": advice.probability_after,
            "cost": advice.cost,
            **changes,
            "words": pd.Series(spoken(advice, X, schema, standardiser).to_pandas(), dtype="str"),
        }
    )


def _whole(values: Floats, column: ModelFeature) -> Floats:
    """Return whole changes without the dust of the standardisation."""
    if column.kind == "numeric":
        return values
    rounded: Floats = np.where(np.abs(values - np.round(values)) < 1e-6, np.round(values), values)
    return rounded + 0.0
