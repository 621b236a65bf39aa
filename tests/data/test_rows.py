"""A typed table becomes arrays, and standardised rows read back as they were written."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from countermove.data.cleaning import clean
from countermove.data.rows import design_matrix, fit_standardiser, rows_of, standardised_table
from countermove.data.schema import Schema
from countermove.errors import DataError


@pytest.mark.parametrize("columns", [("score",), ("score", "age")])
def test_rows_come_back_as_they_were_written(columns: tuple[str, ...]) -> None:
    schema = Schema.from_mapping(
        "shop",
        {
            "label": {"column": "repaid", "favourable": 1},
            "features": {column: {"kind": "numeric"} for column in columns},
            "sensitive": ["group"],
        },
    )
    table = pd.DataFrame(
        {
            "row_id": ["a", "b", "c"],
            **{column: [1.0, 2.0, 4.0] for column in columns},
            "group": ["x", "y", "x"],
            "label": [1, -1, 1],
        }
    )
    standardiser = fit_standardiser(table, schema, divide_by_root_d=False)
    rows = rows_of(standardised_table(table, schema, standardiser), schema)
    np.testing.assert_allclose(standardiser.inverse(rows.X)[:, 0], [1, 2, 4])
    assert rows.ids.tolist() == ["a", "b", "c"]
    assert rows.y.tolist() == [1, -1, 1]
    assert rows.groups["group"].tolist() == ["x", "y", "x"]
    # torch warns about arrays it may not write to.
    assert rows.X.flags.writeable
    assert rows.X.flags.c_contiguous


def test_columns_are_those_of_the_schema(raw: pd.DataFrame, schema: Schema) -> None:
    rows = design_matrix(clean(raw, schema), schema)
    ids, X, y, groups = rows.ids, rows.X, rows.y, rows.groups
    assert X.shape == (12, len(schema.feature_names))
    assert X.dtype == y.dtype == np.float64
    # income, loans, owner, level (low 0, middle 1, high 2), region=north, region=south
    assert X[4].tolist() == [104.5, 0, 0, 1, 1, 0]
    assert X[5].tolist() == [105.5, 1, 1, 2, 0, 1]
    assert y.tolist() == [1] * 6 + [-1] * 6
    assert ids.tolist() == raw["customer"].tolist()
    assert groups["sex"].tolist() == raw["sex"].tolist()


def test_one_hot_columns_sum_to_one(raw: pd.DataFrame, schema: Schema) -> None:
    X = design_matrix(clean(raw, schema), schema).X
    group = [column.group == "region" for column in schema.model_features()]
    assert np.array_equal(X[:, group].sum(axis=1), np.ones(12))


def test_any_rows_of_a_table_will_do(raw: pd.DataFrame, schema: Schema) -> None:
    table = clean(raw, schema)
    part = design_matrix(table[3:5], schema)
    assert np.array_equal(part.X, design_matrix(table, schema).X[3:5])
    assert part.groups.index.tolist() == [0, 1]


def test_cells_that_do_not_fit_are_refused(raw: pd.DataFrame, schema: Schema) -> None:
    table = clean(raw, schema)
    with pytest.raises(DataError, match="lacks the columns level, label"):
        design_matrix(table.drop(columns=["level", "label"]), schema)
    with pytest.raises(DataError, match="unknown category 'top'") as caught:
        design_matrix(table.assign(level=["top", *table["level"][1:]]), schema)
    assert caught.value.rows == (0,)
    with pytest.raises(DataError, match="missing value") as caught:
        design_matrix(table.assign(income=[*table["income"][:-1], np.nan]), schema)
    assert caught.value.rows == (11,)


def test_standardised_rows_read_back(raw: pd.DataFrame, schema: Schema) -> None:
    table = clean(raw, schema)
    standardiser = fit_standardiser(table, schema, divide_by_root_d=True)
    rows = rows_of(standardised_table(table, schema, standardiser), schema)
    people = design_matrix(table, schema)
    assert np.allclose(standardiser.inverse(rows.X), people.X)
    assert np.array_equal(rows.ids, people.ids)
    assert np.array_equal(rows.y, people.y)
    pd.testing.assert_frame_equal(rows.groups, people.groups)
