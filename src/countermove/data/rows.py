"""People in standardised units: the form in which every later stage reads a split."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove.data.design_matrix import feature_matrix, sensitive_groups
from countermove.data.schema import LABEL, ROW_ID, Schema
from countermove.data.standardise import Standardiser

GROUP = "group:"
"""Prefix of sensitive columns, which may bear the name of a feature."""


@dataclass(frozen=True)
class Rows:
    """One split: ids (n,), features (n, d) in standardised units, labels ±1 (n,), groups."""

    ids: NDArray[np.str_]
    X: NDArray[np.float64]
    y: NDArray[np.float64]
    groups: pd.DataFrame


def fit_standardiser(table: pd.DataFrame, schema: Schema, divide_by_root_d: bool) -> Standardiser:
    """Return means and scales of a typed table, one per model column."""
    X = feature_matrix(table, schema)
    return Standardiser.fit(X, schema.feature_names, divide_by_root_d=divide_by_root_d)


def standardised_table(
    table: pd.DataFrame, schema: Schema, standardiser: Standardiser
) -> pd.DataFrame:
    """Return a typed table as one frame: row_id, label, standardised features, groups."""
    X = standardiser.transform(feature_matrix(table, schema))
    features = pd.DataFrame(X, columns=list(schema.feature_names))
    labels = table[LABEL].to_numpy(np.float64)
    who = pd.DataFrame({"row_id": table[ROW_ID].reset_index(drop=True), "label": labels})
    return pd.concat([who, features, sensitive_groups(table, schema).add_prefix(GROUP)], axis=1)


def rows_of(frame: pd.DataFrame, schema: Schema) -> Rows:
    """Read back what `standardised_table` wrote."""
    groups = frame[[name for name in frame.columns if name.startswith(GROUP)]]
    return Rows(
        ids=frame["row_id"].to_numpy(dtype=np.str_),
        # A copy: pandas lends out a single column read-only.
        X=np.array(frame[list(schema.feature_names)].to_numpy(dtype=np.float64), order="C"),
        y=frame["label"].to_numpy(dtype=np.float64),
        groups=groups.rename(columns=lambda name: name.removeprefix(GROUP)),
    )
