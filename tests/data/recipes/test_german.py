"""The German credit table: readable, favourable = good, sex not a feature."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from countermove.data.cleaning import clean
from countermove.data.recipes import german
from countermove.data.rows import design_matrix
from countermove.data.schema import Schema, load_schema
from countermove.data.sources import read_embedded
from countermove.errors import DataError


@pytest.fixture(scope="module")
def raw() -> pd.DataFrame:
    return read_embedded("german")


def test_the_published_counts_come_out(raw: pd.DataFrame, schemas: Path) -> None:
    table = clean(raw, load_schema("german", schemas))
    # Counts of the UCI description: 700 good and 300 bad, 394 without a checking account.
    assert len(table) == 1000
    assert (table["label"] == 1).sum() == 700
    assert (table["checking_status"] == "no account").sum() == 394
    assert (table["no_checking_account"] == 1).sum() == 394
    assert (table["sex"] == "female").sum() == 310
    assert (table["foreign_worker"] == "yes").sum() == 963
    assert set(table["age_band"]) == {"under 25", "25 to 59", "60 or over"}


def test_the_first_person_reads_as_published(raw: pd.DataFrame) -> None:
    first = german(raw).iloc[0]
    assert first["checking_status"] == "overdrawn"
    assert first["duration_months"] == 6
    assert first["credit_history"] == "critical or credits elsewhere"
    assert first["credit_amount"] == 1169
    assert first["employment_since"] == "7 years or more"
    assert first["age_years"] == 67
    assert first["credit_risk"] == "good"


def test_sensitive_columns_are_no_features(raw: pd.DataFrame, schemas: Path) -> None:
    schema = load_schema("german", schemas)
    rows = design_matrix(clean(raw, schema), schema)
    assert list(rows.groups.columns) == ["sex", "age_band", "foreign_worker"]
    words = ("sex", "age_", "foreign", "personal")
    assert not [name for name in schema.feature_names if name.startswith(words)]
    assert np.linalg.matrix_rank(rows.X - rows.X.mean(axis=0)) > 30


def test_a_sensitive_column_becomes_a_feature_when_listed(raw: pd.DataFrame, schemas: Path) -> None:
    content = load_schema("german", schemas).to_mapping()
    content["features"]["age_years"] = {"kind": "integer", "min": 18, "max": 100}
    content["features"]["foreign_worker"] = {"kind": "binary", "categories": ["no", "yes"]}
    schema = Schema.from_mapping("german", content)
    rows = design_matrix(clean(raw, schema), schema)
    assert schema.feature_names[-2:] == ("age_years", "foreign_worker")
    assert rows.X[0, -2:].tolist() == [67, 1]


def test_unknown_codes_are_refused(raw: pd.DataFrame, schemas: Path) -> None:
    spoiled = raw.copy()
    spoiled.loc[5, "purpose"] = "A99"
    spoiled.loc[6, "housing"] = ""
    with pytest.raises(DataError, match="2 problems") as caught:
        clean(spoiled, load_schema("german", schemas))
    assert caught.value.rows == (5, 6)
    assert "unknown category 'A99'" in str(caught.value)
