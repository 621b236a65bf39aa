"""The credit table is cleaned as in the strategic-classification papers, cell by cell."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from countermove.data.cleaning import clean
from countermove.data.recipes import credit
from countermove.data.schema import load_schema
from countermove.data.sources import read_embedded
from countermove.errors import DataError

# SHA-256 of each column of the published table, as little-endian 64-bit integers.
PUBLISHED = {
    "NoDefaultNextMonth": "c92566ddbdb8328b17f99338482255208fd7f6f3c671185ab0d3e1b6d2bb7bdd",
    "Married": "29c2488fc2cc1747e1c2312893c7039d68d7a3267669f29c9c09862ed3178821",
    "Single": "dc18e861631980ba681c8530d45379af2be9531679e2043aad1c8c18919c1152",
    "Age_lt_25": "a888b9c8dde77ae43a1ec067089154ad1830a1bd97a6e0d58ac30cec2c2fb060",
    "Age_in_25_to_40": "baf514111d8a2e3a4f02877d3656dd1053547bb5cf1999ecdefbac185f5e9ac1",
    "Age_in_40_to_59": "88bf5ee149c613ac146b86d1b84656ebf643d37f1f670c4f621756a5f9a8b5ca",
    "Age_geq_60": "814abe4f0a8361847137226d423dfb558c0142d60233f3a0a3d48192cbd4f0c9",
    "EducationLevel": "d576526689d404d455caaba7f02411702753f9eb66592ed3582b46958330510d",
    "MaxBillAmountOverLast6Months": (
        "1ed8c66e2ba96434b64f5528758feb4c384d41d8e2a8794ad09acad31c7da4fd"
    ),
    "MaxPaymentAmountOverLast6Months": (
        "6b542500a6a8b8873845002e9d3d94ad535d8d5bcf827cbaecdcbd828a37bbfd"
    ),
    "MonthsWithZeroBalanceOverLast6Months": (
        "fa54f07ce6747ba66ae99e351045de270bfe7a656135f7b61de7584a5c9ebd76"
    ),
    "MonthsWithLowSpendingOverLast6Months": (
        "14b4be497b4170ab9664092c06acdd888ba83495792895510bae49854dc9fd4e"
    ),
    "MonthsWithHighSpendingOverLast6Months": (
        "69e2b87f10642c4e66546577537ae9b9262c57d7e77f550219e68e4c309a18ce"
    ),
    "MostRecentBillAmount": "162917b4a556f9ee4efc242bdbad81422cb2e3de316faf13487b28b497a81070",
    "MostRecentPaymentAmount": "84e6f426e31327953e99722b06071ccd400c4d216183f341d08c025ecb88a85e",
    "TotalOverdueCounts": "b9530e691ad38f3319aae8adb82af17decbcdc57d0ce4a0e3788b20458ba31c3",
    "TotalMonthsOverdue": "253f7e9c95df3c70af62597c9afec97820a5e96c2fd43aa2385dda0a28c42bfe",
    "HistoryOfOverduePayments": "72feb133549a27bd8a95b2870928a9bdc42ebeb879d68034d02ee9dfaea28c26",
}


@pytest.fixture(scope="module")
def raw() -> pd.DataFrame:
    return read_embedded("credit")


@pytest.fixture(scope="module")
def cleaned(raw: pd.DataFrame) -> pd.DataFrame:
    return credit(raw)


@pytest.mark.parametrize("column", PUBLISHED)
def test_every_column_has_the_published_digest(cleaned: pd.DataFrame, column: str) -> None:
    cells = cleaned[column].to_numpy(np.int64).astype("<i8").tobytes()
    assert hashlib.sha256(cells).hexdigest() == PUBLISHED[column]


def test_every_cell_equals_the_published_table(cleaned: pd.DataFrame) -> None:
    folder = os.environ.get("COUNTERMOVE_PARITY_DATA")
    if not folder or not (Path(folder) / "credit_processed.csv.gz").is_file():
        pytest.skip("COUNTERMOVE_PARITY_DATA names no folder with credit_processed.csv.gz")
    published = pd.read_csv(Path(folder) / "credit_processed.csv.gz")
    assert published.shape == (30_000, 18)
    assert list(published.columns) == list(PUBLISHED)
    assert np.array_equal(cleaned[list(PUBLISHED)].to_numpy(), published.to_numpy())


def test_the_typed_table_has_the_eleven_strategic_features(
    raw: pd.DataFrame, cleaned: pd.DataFrame, schemas: Path
) -> None:
    schema = load_schema("credit", schemas)
    table = clean(raw, schema)
    assert len(schema.feature_names) == 11
    assert np.array_equal(
        table[list(schema.feature_names)].to_numpy(), cleaned[list(schema.feature_names)].to_numpy()
    )
    # +1 is "no default": 77.88 % of the clients.
    assert np.array_equal(table["label"] == 1, cleaned["NoDefaultNextMonth"] == 1)
    assert (table["label"] == 1).mean() == pytest.approx(0.7788)
    assert table["row_id"].tolist() == raw["ID"].tolist()
    protected = {"Married", "Single", "Age_lt_25", "Age_geq_60", "Sex"}
    assert protected <= set(schema.sensitive)
    assert not protected & set(schema.feature_names)


def test_overdue_months_can_only_leave_the_window(schemas: Path) -> None:
    columns = load_schema("credit", schemas).model_features()
    changes = {column.name: column.change for column in columns}
    assert [name for name, change in changes.items() if change == "immutable"] == ["EducationLevel"]
    assert {change for name, change in changes.items() if "Overdue" in name} == {"down"}
    assert all(column.min == 0 for column in columns)


def test_broken_raw_cells_are_named(raw: pd.DataFrame, schemas: Path) -> None:
    few = raw.head(50).copy()
    few.loc[3, "BILL_AMT2"] = "many"
    few.loc[[4, 7], "AGE"] = ""
    few.loc[9, "EDUCATION"] = "1.5"
    with pytest.raises(DataError, match="3 problems") as caught:
        clean(few, load_schema("credit", schemas))
    assert caught.value.rows == (3, 4, 7, 9)
    few = raw.head(50).copy()
    few.loc[6, "SEX"] = "3"
    with pytest.raises(DataError, match="column 'SEX': unknown category '3'") as caught:
        clean(few, load_schema("credit", schemas))
    assert caught.value.rows == (6,)
