"""People as arrays: the form in which every later stage reads a split.

Numbers stay as they are, ordered categories become 0, 1, …, and a one-hot
feature becomes one 0/1 column per category.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.data.checks import category_problems, missing_problems, raise_all
from countermove.data.missing import filled_in, fitted_fill, never_missing
from countermove.data.parsing import texts
from countermove.data.relations import Tails
from countermove.data.schema import (
    CLUSTER_PREFIX,
    GROUP_PREFIX,
    LABEL,
    ROW_ID,
    WINDOW_PREFIX,
    Feature,
    Schema,
)
from countermove.data.standardise import Standardiser
from countermove.errors import DataError


@dataclass(frozen=True)
class Rows:
    """People of one table or split.

    Parameters
    ----------
    ids
        Row ids, shape (n,).
    X
        Features, shape (n, d), columns ``schema.feature_names``; in original units from
        `design_matrix`, in standardised units from `rows_of`.
    y
        Labels in {-1, +1}, shape (n,).
    groups
        The sensitive columns as text.
    windows
        The raw columns that the schema's paths read, under their names, where they are known.
    clusters
        Whose rows they are, by the column that the schema names under ``group_by``, shape
        (n,); None where it names none, or the table has lost it.
    """

    ids: NDArray[np.str_]
    X: Floats
    y: Floats
    groups: pd.DataFrame
    windows: pd.DataFrame = field(default_factory=pd.DataFrame)
    clusters: NDArray[np.object_] | None = None


def design_matrix(table: pd.DataFrame, schema: Schema) -> Rows:
    """Return the arrays of a typed table.

    Parameters
    ----------
    table
        A typed table, or any rows of one.
    schema
        What its columns mean.

    Returns
    -------
    Rows
        ``ids`` (n,), ``X`` (n, d) in original units, ``y`` (n,) in {-1, +1} and
        ``groups``, the sensitive columns as text, indexed like the rows from 0.

    Raises
    ------
    DataError
        If a column is absent, or a cell is missing or not of its kind.
    """
    X = feature_matrix(table, schema)
    return Rows(
        ids=table[ROW_ID].to_numpy(dtype=np.str_),
        X=X,
        y=table[LABEL].to_numpy(np.float64),
        groups=_sensitive_groups(table, schema),
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


def _sensitive_groups(table: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Return the sensitive columns as text, indexed like the rows from 0."""
    return table[list(schema.sensitive)].astype("str").reset_index(drop=True)


def _coded(values: pd.Series, feature: Feature, name: str) -> Floats:
    """Return the model columns of one feature, shape (n, k)."""
    missing = values.isna().to_numpy(np.bool_)
    if feature.missing is None:
        raise_all(missing_problems(feature.name, missing), name)
        return _read_columns(values, feature, missing, name)
    # A cell without a value leaves all its columns open; the standardiser fills them.
    block = _read_columns(values, feature, missing, name)
    block = np.hstack([block, np.zeros((len(block), 1))])
    block[missing] = np.nan
    return block


def _read_columns(values: pd.Series, feature: Feature, missing: Mask, name: str) -> Floats:
    """Return the columns of the values that are there."""
    if not feature.categorical:
        return values.to_numpy(np.float64)[:, None]
    raise_all(category_problems(values, feature, ~missing), name)
    codes = pd.Index(feature.categories).get_indexer(pd.Index(values))
    if feature.kind == "ordered":
        return codes.astype(np.float64)[:, None]
    return np.equal.outer(codes, np.arange(len(feature.categories))).astype(np.float64)


def fit_standardiser(table: pd.DataFrame, schema: Schema, divide_by_root_d: bool) -> Standardiser:
    """Return means, scales, fills and usual ranges of a typed table, one per model column."""
    X = feature_matrix(table, schema)
    fill = fitted_fill(schema, [X])
    X = filled_in(X, fill)
    keep = never_missing(schema, fill)
    fitted = Standardiser.fit(X, schema.feature_names, divide_by_root_d, keep_constant=keep)
    return replace(fitted, ranges=Tails.of(X).ranges(schema), fill=fill)


def standardised_table(
    table: pd.DataFrame, schema: Schema, standardiser: Standardiser
) -> pd.DataFrame:
    """Return a typed table as one frame: row_id, label, standardised features, groups, cluster."""
    X = standardiser.transform(feature_matrix(table, schema))
    features = pd.DataFrame(X, columns=list(schema.feature_names))
    labels = table[LABEL].to_numpy(np.float64)
    who = pd.DataFrame({"row_id": table[ROW_ID].reset_index(drop=True), "label": labels})
    groups = _sensitive_groups(table, schema).add_prefix(GROUP_PREFIX)
    # A table that was made by hand may carry no windows.
    windows = table.reindex(columns=list(schema.carried_windows)).reset_index(drop=True)
    beside = [_cluster_column(table, schema), windows.astype(np.float64)]
    return pd.concat([who, features, groups, *beside], axis=1)


def _cluster_column(table: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Return the column whose equal values are one cluster, as text, or no column."""
    if schema.group_by is None:
        return pd.DataFrame(index=range(len(table)))
    words = texts(table[schema.group_by]).reset_index(drop=True)
    return words.to_frame(f"{CLUSTER_PREFIX}{schema.group_by}")


def clusters_of(frame: pd.DataFrame, schema: Schema) -> NDArray[np.object_] | None:
    """Return whose rows those of a standardised table are; None where it does not say."""
    found = frame.get(f"{CLUSTER_PREFIX}{schema.group_by}")
    return None if found is None else found.to_numpy(dtype=object)


def rows_of(frame: pd.DataFrame, schema: Schema) -> Rows:
    """Read back what `standardised_table` wrote."""
    groups = frame[[name for name in frame.columns if name.startswith(GROUP_PREFIX)]]
    return Rows(
        ids=frame["row_id"].to_numpy(dtype=np.str_),
        # A copy: pandas lends out a single column read-only.
        X=np.array(frame[list(schema.feature_names)].to_numpy(dtype=np.float64), order="C"),
        y=frame["label"].to_numpy(dtype=np.float64),
        groups=groups.rename(columns=lambda name: name.removeprefix(GROUP_PREFIX)),
        windows=windows_of(frame, schema),
        clusters=clusters_of(frame, schema),
    )


def windows_of(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Return the columns of a typed or standardised table that paths read, under their names."""
    kept = [name for name in schema.carried_windows if name in frame]
    return frame[kept].rename(columns=lambda name: name.removeprefix(WINDOW_PREFIX))
