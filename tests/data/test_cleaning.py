"""Cells become what the schema says, or the error names their rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countermove.data.checks import check_table
from countermove.data.cleaning import clean
from countermove.data.parsing import numbers, texts
from countermove.data.schema import Schema, load_schema
from countermove.data.sources import read_file
from countermove.errors import DataError, SchemaError


def test_every_kind_gets_its_type(raw: pd.DataFrame, schema: Schema) -> None:
    table = clean(raw, schema)
    assert tuple(table.columns) == schema.table_columns
    assert table["row_id"].tolist() == raw["customer"].tolist()
    assert table["income"].dtype == np.float64
    assert table["income"].iloc[0] == 100.5
    assert table["loans"].dtype == table["owner"].dtype == table["label"].dtype == np.int64
    assert table["level"].iloc[1] == "middle"
    assert table["label"].tolist() == [1] * 6 + [-1] * 6
    check_table(table, schema)


def test_rows_without_an_id_are_numbered(raw: pd.DataFrame, mapping: dict[str, Any]) -> None:
    del mapping["id"]
    mapping["ignore"].append("customer")
    table = clean(raw, Schema.from_mapping("shop", mapping))
    assert table["row_id"].tolist() == [f"r{row}" for row in range(12)]


def test_ignored_columns_may_be_there(raw: pd.DataFrame, schema: Schema) -> None:
    pd.testing.assert_frame_equal(clean(raw.assign(note="x"), schema), clean(raw, schema))


def test_the_typed_table_survives_parquet(
    raw: pd.DataFrame, schema: Schema, tmp_path: Path
) -> None:
    table = clean(raw, schema)
    table.to_parquet(tmp_path / "shop.parquet")
    again = read_file(tmp_path / "shop.parquet")
    pd.testing.assert_frame_equal(again, table)
    check_table(again, schema)


def test_typed_sources_read_like_text(raw: pd.DataFrame, schema: Schema) -> None:
    typed = raw.assign(
        income=raw["income"].astype(float),
        loans=raw["loans"].astype(float),
        owner=raw["owner"] == "1",
        level=raw["level"].astype("category"),
    )
    pd.testing.assert_frame_equal(clean(typed, schema), clean(raw, schema))


def test_words_for_true_and_false_are_binary(raw: pd.DataFrame, schema: Schema) -> None:
    words = raw.assign(owner=raw["owner"].map({"0": "False", "1": " TRUE"}))
    pd.testing.assert_frame_equal(clean(words, schema), clean(raw, schema))


def test_a_binary_may_have_two_names(raw: pd.DataFrame, mapping: dict[str, Any]) -> None:
    mapping["features"]["owner"]["categories"] = ["no", "yes"]
    named = raw.assign(owner=raw["owner"].map({"0": "no", "1": "yes"}))
    table = clean(named, Schema.from_mapping("shop", mapping))
    assert table["owner"].tolist() == [0, 1] * 6


@pytest.mark.parametrize("favourable", [1, 1.0, "1"])
@pytest.mark.parametrize("cells", [("1", "0"), ("1.0", "0.0"), (1, 0), (1.0, 0.0), (True, False)])
def test_numbers_match_however_they_are_written(
    raw: pd.DataFrame, mapping: dict[str, Any], favourable: Any, cells: tuple[Any, Any]
) -> None:
    mapping["label"]["favourable"] = favourable
    schema = Schema.from_mapping("shop", mapping)
    table = clean(raw.assign(outcome=[cells[row // 6] for row in range(12)]), schema)
    assert table["label"].tolist() == [1] * 6 + [-1] * 6


def test_a_sensitive_column_may_be_a_feature_when_listed(
    raw: pd.DataFrame, mapping: dict[str, Any]
) -> None:
    mapping["sensitive"] = ["sex", "owner"]
    table = clean(raw, Schema.from_mapping("shop", mapping))
    assert list(table.columns).count("owner") == 1
    assert table["owner"].dtype == np.int64


BAD_CELLS: dict[str, tuple[str, str, str]] = {
    "unparseable": ("income", "many", "column 'income': not a number, such as 'many'"),
    "decimal comma": ("income", "1,5", "not a number"),
    "a date": ("income", "2020-01-01", "not a number"),
    "empty": ("income", "", "column 'income': missing value"),
    "nan": ("income", "NaN", "column 'income': missing value"),
    "infinite": ("income", "-inf", "column 'income': infinite value"),
    "overflow": ("income", "1e999", "column 'income': infinite value"),
    "below": ("income", "-1", "column 'income': below min 0 EUR"),
    "above": ("income", "1000.5", "column 'income': above max 1000 EUR"),
    "fraction": ("loans", "1.5", "column 'loans': not a whole number"),
    "binary": ("owner", "2", "column 'owner': neither 0 nor 1"),
    "category": ("level", "hgh", r"unknown category 'hgh', did you mean 'high'\? known"),
    "category of one-hot": ("region", "east", "unknown category 'east'"),
    "no category": ("level", " ", "column 'level': missing value"),
    "no group": ("sex", "", "column 'sex': missing value"),
    "no label": ("outcome", "", "column 'outcome': missing value"),
    "no id": ("customer", "", "missing id"),
}


@pytest.mark.parametrize("case", BAD_CELLS)
def test_a_bad_cell_is_named_with_its_row(case: str, raw: pd.DataFrame, schema: Schema) -> None:
    column, cell, expected = BAD_CELLS[case]
    raw.loc[7, column] = cell
    with pytest.raises(DataError, match=expected) as caught:
        clean(raw, schema)
    assert caught.value.rows == (7,)
    assert "rows are counted from 0, the header not counted" in str(caught.value)


def test_all_problems_come_at_once(raw: pd.DataFrame, schema: Schema) -> None:
    raw.loc[1, "income"] = "x"
    raw.loc[2, "income"] = "-5"
    raw.loc[3, "level"] = "top"
    raw.loc[4, "sex"] = ""
    with pytest.raises(DataError, match="4 problems") as caught:
        clean(raw, schema)
    assert caught.value.rows == (1, 2, 3, 4)


def test_many_rows_are_counted_and_capped_in_the_text(raw: pd.DataFrame, schema: Schema) -> None:
    many = pd.concat([raw] * 100, ignore_index=True)
    many["customer"] = [f"c{row}" for row in range(len(many))]
    many.loc[5:, "income"] = "x"
    with pytest.raises(DataError, match=r"in 1195 row\(s\): 5, 6, .* and 1185 more") as caught:
        clean(many, schema)
    assert caught.value.rows == tuple(range(5, 1200))
    assert len(str(caught.value)) < 400


def test_rows_are_positions_whatever_the_index(raw: pd.DataFrame, schema: Schema) -> None:
    raw.loc[2, "income"] = "x"
    with pytest.raises(DataError) as caught:
        clean(raw.set_index(raw.index + 100), schema)
    assert caught.value.rows == (2,)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["accepted"] * 12, "has one value, 'accepted'; expected two"),
        (["accepted", "refused", "maybe"] * 4, "has 3 values, 'accepted', 'maybe', 'refused'"),
        (["Accepted", "refused"] * 6, "never holds its favourable value 'accepted'"),
    ],
)
def test_a_label_needs_two_values(
    raw: pd.DataFrame, schema: Schema, labels: list[str], expected: str
) -> None:
    with pytest.raises(DataError, match=expected):
        clean(raw.assign(outcome=labels), schema)


def test_duplicated_ids_are_refused(raw: pd.DataFrame, schema: Schema) -> None:
    raw.loc[[3, 9], "customer"] = "twin"
    with pytest.raises(DataError, match="duplicated ids 'twin'") as caught:
        clean(raw, schema)
    assert caught.value.rows == (3, 9)


def test_a_constant_feature_is_refused(raw: pd.DataFrame, schema: Schema) -> None:
    with pytest.raises(DataError, match="'loans': constant feature, every row holds 3"):
        clean(raw.assign(loans="3"), schema)


def test_a_category_that_never_occurs_is_refused(
    raw: pd.DataFrame, mapping: dict[str, Any]
) -> None:
    mapping["features"]["region"]["categories"].append("west")
    with pytest.raises(DataError, match="the category 'west' never occurs"):
        clean(raw, Schema.from_mapping("shop", mapping))


def test_missing_and_extra_columns_are_named(raw: pd.DataFrame, schema: Schema) -> None:
    with pytest.raises(DataError, match="missing columns: 'income'; did you mean 'incme'") as error:
        clean(raw.rename(columns={"income": "incme"}), schema)
    assert "extra columns the schema does not name: 'incme'" in str(error.value)
    with pytest.raises(DataError, match="missing columns: 'sex'"):
        clean(raw.drop(columns="sex"), schema)
    with pytest.raises(DataError, match="'x'; describe them in the schema, or list them under `ig"):
        clean(raw.assign(x="1"), schema)


def split_schema(mapping: dict[str, Any]) -> Schema:
    return Schema.from_mapping("shop", mapping | {"group_by": "house", "time": "day"})


def test_groups_are_text_and_times_numbers_or_dates(
    raw: pd.DataFrame, mapping: dict[str, Any]
) -> None:
    schema = split_schema(mapping)
    house = [f"0{row // 2}" for row in range(12)]
    days = [f"2024-0{1 + row % 9}-01T08:00:00+02:00" for row in range(12)]
    table = clean(raw.assign(house=house, day=days), schema)
    assert table["house"].tolist() == house
    assert str(table["day"].dtype) == "datetime64[us, UTC]"
    assert table["day"].iloc[0] == pd.Timestamp("2024-01-01T06:00:00", tz="UTC")
    check_table(table, schema)
    stamped = raw.assign(house=range(12), day=pd.to_datetime(days, utc=True))
    assert clean(stamped, schema)["day"].tolist() == table["day"].tolist()
    numbered = clean(raw.assign(house=house, day=[f" {row}" for row in range(12)]), schema)
    assert numbered["day"].tolist() == list(range(12))


@pytest.mark.parametrize(
    ("column", "cells", "says"),
    [
        ("house", {4: None, 7: "  "}, r"column 'house': missing value, in 2 row\(s\): 4, 7"),
        ("day", {4: ""}, r"column 'day': missing value, in 1 row\(s\): 4"),
        ("day", {5: "soon"}, r"'day': neither a number nor a date such as 2024-12-31.*: 5"),
        ("day", {5: "2024"}, r"column 'day': a number among dates, in 1 row\(s\): 5"),
    ],
)
def test_rows_that_cannot_be_placed_are_named(
    raw: pd.DataFrame, mapping: dict[str, Any], column: str, cells: dict[int, Any], says: str
) -> None:
    spoilt = raw.assign(house="h", day=[f"2024-01-{1 + row:02d}" for row in range(12)])
    for row, cell in cells.items():
        spoilt.loc[row, column] = cell
    with pytest.raises(DataError, match=says) as caught:
        clean(spoilt, split_schema(mapping))
    assert caught.value.rows == tuple(cells)


def test_a_declared_column_that_is_not_there_is_missing(
    raw: pd.DataFrame, mapping: dict[str, Any]
) -> None:
    with pytest.raises(DataError, match="missing columns: 'house', 'day'; did you mean 'hose'"):
        clean(raw.assign(hose="h"), split_schema(mapping))


def test_duplicate_columns_are_refused(raw: pd.DataFrame, schema: Schema) -> None:
    with pytest.raises(DataError, match="duplicate columns in the header: 'sex'"):
        clean(pd.concat([raw, raw["sex"]], axis=1), schema)


def test_a_table_without_rows_is_refused(raw: pd.DataFrame, schema: Schema) -> None:
    with pytest.raises(DataError, match="has no rows"):
        clean(raw.head(0), schema)


def test_a_schema_cannot_name_a_column_its_recipe_does_not_offer(schemas: Path) -> None:
    schema = load_schema("german", schemas)
    content = schema.to_mapping() | {"sensitive": ["sexx"]}
    from countermove.data.sources import read_embedded

    with pytest.raises(SchemaError, match="offers no column 'sexx'; did you mean 'sex'"):
        clean(read_embedded("german"), Schema.from_mapping("german", content))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_printed_numbers_are_read_back_exactly(values: list[float]) -> None:
    read, missing, unparseable = numbers(pd.Series([repr(value) for value in values], dtype="str"))
    assert read.tolist() == values
    assert not missing.any()
    assert not unparseable.any()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=8), min_size=1, max_size=20))
def test_every_text_is_a_number_or_missing_or_reported(cells: list[str]) -> None:
    values = pd.Series(cells, dtype="str")
    read, missing, unparseable = numbers(values)
    assert np.array_equal(np.isnan(read), missing | unparseable)
    assert not (missing & unparseable).any()
    assert texts(values).dropna().str.len().gt(0).all()
