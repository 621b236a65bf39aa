"""From a typed table to the arrays a score reads.

Numbers stay as they are, ordered categories become 0, 1, …, and a one-hot
feature becomes one 0/1 column per category.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.data.checks import category_problems, missing_problems, raise_all
from countermove.data.schema import LABEL, ROW_ID, Feature, Schema
from countermove.errors import DataError


class DesignMatrix(NamedTuple):
    """Ids, features in original units (columns ``schema.feature_names``), labels, groups."""

    ids: NDArray[np.str_]
    X: Floats
    y: Floats
    groups: pd.DataFrame


def design_matrix(table: pd.DataFrame, schema: Schema) -> DesignMatrix:
    """Return the arrays of a typed table.

    Parameters
    ----------
    table
        A typed table, or any rows of one.
    schema
        What its columns mean.

    Returns
    -------
    DesignMatrix
        ``ids`` (n,), ``X`` (n, d) in original units, ``y`` (n,) in {-1, +1} and
        ``groups``, the sensitive columns as text, indexed like the rows from 0.

    Raises
    ------
    DataError
        If a column is absent, or a cell is missing or not of its kind.
    """
    X = feature_matrix(table, schema)
    return DesignMatrix(
        ids=table[ROW_ID].to_numpy(dtype=np.str_),
        X=X,
        y=table[LABEL].to_numpy(np.float64),
        groups=sensitive_groups(table, schema),
    )


def feature_matrix(table: pd.DataFrame, schema: Schema) -> Floats:
    """Return the features of a typed table, shape (n, d); errors as in `design_matrix`."""
    absent = [column for column in schema.table_columns if column not in table]
    if absent:
        raise DataError(f"table {schema.name!r} lacks the columns {', '.join(absent)}")
    return coded_features(table, schema)


def coded_features(table: pd.DataFrame, schema: Schema) -> Floats:
    """Return the same of a table that holds typed features, whatever else it lacks."""
    X = np.empty((len(table), len(schema.feature_names)), dtype=np.float64)
    start = 0
    for feature in schema.features:
        block = _coded(table[feature.name], feature, schema.name)
        X[:, start : start + block.shape[1]] = block
        start += block.shape[1]
    return X


def sensitive_groups(table: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Return the sensitive columns as text, indexed like the rows from 0."""
    return table[list(schema.sensitive)].astype("str").reset_index(drop=True)


def _coded(values: pd.Series, feature: Feature, name: str) -> Floats:
    """Return the model columns of one feature, shape (n, k)."""
    missing = values.isna().to_numpy(np.bool_)
    raise_all(missing_problems(feature.name, missing), name)
    if not feature.categorical:
        return values.to_numpy(np.float64)[:, None]
    raise_all(category_problems(values, feature, ~missing), name)
    codes = pd.Index(feature.categories).get_indexer(pd.Index(values))
    if feature.kind == "ordered":
        return codes.astype(np.float64)[:, None]
    return np.equal.outer(codes, np.arange(len(feature.categories))).astype(np.float64)
