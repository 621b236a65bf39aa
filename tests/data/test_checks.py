"""A typed table is checked again wherever it is read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from countermove.data.checks import check_table
from countermove.data.cleaning import clean
from countermove.data.schema import Schema
from countermove.errors import DataError

Spoil = Callable[[pd.DataFrame], pd.DataFrame]


def put(column: str, row: int, value: object) -> Spoil:
    def spoil(table: pd.DataFrame) -> pd.DataFrame:
        kept = table[column].astype(object)
        kept.iloc[row] = value
        return table.assign(**{column: kept.infer_objects()})

    return spoil


SPOILED: dict[str, tuple[Spoil, str, tuple[int, ...]]] = {
    "missing": (put("income", 4, np.nan), "'income': missing value", (4,)),
    "infinite": (put("income", 4, np.inf), "'income': infinite value", (4,)),
    "below": (put("income", 4, -1.0), r"below min 0 EUR, in 1 row\(s\): 4 \(-1\)", (4,)),
    "above": (put("loans", 4, 10), "'loans': above max 9", (4,)),
    "not whole": (put("loans", 4, 1.5), "'loans': not a whole number", (4,)),
    "not exact": (put("loans", 4, 1e17), "beyond 2", (4,)),
    "not binary": (put("owner", 4, 7), "neither 0 nor 1", (4,)),
    "category": (put("level", 4, "top"), "unknown category 'top'", (4,)),
    "no category": (put("level", 4, None), "'level': missing value", (4,)),
    "no group": (put("sex", 4, None), "'sex': missing value", (4,)),
    "text": (put("income", 4, "x"), "expected numbers", ()),
    "id": (put("row_id", 4, "c1"), "duplicated ids 'c1'", (1, 4)),
    "label": (put("label", 4, 0), r"label neither \+1 nor -1", (4,)),
    "label text": (put("label", 4, "good"), r"label neither \+1 nor -1", (4,)),
    "one label": (lambda table: table.assign(label=1), "one value, \\+1", ()),
    "constant": (lambda table: table.assign(loans=2), "constant feature", ()),
    "no column": (lambda table: table.drop(columns="sex"), "missing columns: 'sex'", ()),
    "column": (lambda table: table.assign(x=1), "extra columns", ()),
    "no rows": (lambda table: table.head(0), "no rows", ()),
}


@pytest.mark.parametrize("case", SPOILED)
def test_what_a_schema_forbids_is_refused(case: str, raw: pd.DataFrame, schema: Schema) -> None:
    spoil, expected, rows = SPOILED[case]
    table = clean(raw, schema)
    check_table(table, schema)
    with pytest.raises(DataError, match=expected) as caught:
        check_table(spoil(table), schema)
    assert caught.value.rows == rows


def test_several_broken_columns_are_reported_together(raw: pd.DataFrame, schema: Schema) -> None:
    table = clean(raw, schema)
    for spoil in (put("income", 2, -1.0), put("loans", 5, 99), put("region", 8, "east")):
        table = spoil(table)
    with pytest.raises(DataError, match="3 problems") as caught:
        check_table(table, schema)
    assert caught.value.rows == (2, 5, 8)
    for column in ("income", "loans", "region"):
        assert f"column {column!r}" in str(caught.value)
