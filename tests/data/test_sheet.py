"""A data sheet says what the table holds, and terms only where they are on record."""

import json

import pandas as pd
import pytest

from countermove.data.report import table_sheet
from countermove.data.schema import Schema

SCHEMA = Schema.from_mapping(
    "tiny",
    {
        "label": {"column": "good", "favourable": 1},
        "features": {
            "income": {"kind": "numeric", "change": "up", "unit": "EUR"},
            "school": {"kind": "ordered", "change": "up", "categories": ["none", "some"]},
        },
        "sensitive": ["sex"],
        "source": "file",
        "description": "made up",
    },
)
TABLE = pd.DataFrame(
    {
        "row_id": list("abcd"),
        "label": [1, -1, 1, 1],
        "income": [1.0, 2.0, 4.0, 9.0],
        "school": ["none", "some", "none", "none"],
        "sex": list("fmfm"),
    }
)


def test_columns_say_who_may_change_them_and_what_they_hold():
    sheet = table_sheet(TABLE, SCHEMA)
    assert (sheet["rows"], sheet["favourable_share"]) == (4, 0.75)
    income, school = sheet["columns"]
    assert (income["lowest"], income["median"], income["highest"]) == (1.0, 3.0, 9.0)
    assert (income["change"], income["unit"]) == ("up", "EUR")
    assert school["values"] == {"none": 3, "some": 1}
    assert sheet["sensitive"] == ["sex"]
    json.dumps(sheet, allow_nan=False)


@pytest.mark.parametrize(("rows", "share", "known"), [(240, 104, True), (240, 120, False)])
def test_terms_are_those_of_the_table_on_record_alone(rows, share, known):
    """The fabricated table has 240 rows, 104 of them favourable; a user's may bear its name."""
    labels = [1] * share + [-1] * (rows - share)
    table = pd.concat([TABLE] * (rows // 4), ignore_index=True).assign(label=labels)
    assert (table_sheet(table, SCHEMA)["terms"] is not None) == known
