"""Where tables come from, and files that are not what they seem."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from countermove.data import sources
from countermove.data.recipes import digits, iris
from countermove.data.schema import Schema, load_schema
from countermove.data.sources import (
    known_datasets,
    read_embedded,
    read_file,
    read_raw,
    schema_file,
    table_hash,
)
from countermove.errors import DataError, UnknownNameError


def test_the_project_knows_its_datasets(schemas: Path) -> None:
    assert {"credit", "german", "tiny"} <= set(known_datasets(schemas))
    assert schema_file("tiny", schemas) == schemas / "tiny.yml"


@pytest.mark.parametrize("name", ["credti", "Credit", "credit_", "nothing-like-it"])
def test_an_unknown_name_lists_the_known_ones(name: str, schemas: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"known: .*credit.*german"):
        schema_file(name, schemas)


def test_the_nearest_name_is_suggested(schemas: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'credit'"):
        schema_file("credti", schemas)


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../tiny",
        "/etc/passwd",
        "a/b",
        "a\\b",
        "tiny.yml",
        " tiny",
        "tiny\n",
        "-x",
        "é",
    ],
)
def test_a_name_is_never_a_path(name: str, schemas: Path) -> None:
    with pytest.raises(UnknownNameError, match="not a dataset name"):
        schema_file(name, schemas)


def test_a_missing_file_says_where_it_is_expected(schema: Schema, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"missing file.*shop\.csv or .*shop\.parquet"):
        read_raw("shop", tmp_path, schema)
    with pytest.raises(DataError, match="missing file"):
        read_file(tmp_path / "shop.csv")


def test_the_users_file_wins_over_the_embedded_table(schemas: Path, tmp_path: Path) -> None:
    schema = load_schema("german", schemas)
    assert len(read_raw("german", tmp_path, schema)) == 1000
    (tmp_path / "german.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    assert read_raw("german", tmp_path, schema).to_dict("list") == {"a": ["1"], "b": ["2"]}


def test_the_fabricated_table_is_always_the_same(schemas: Path, tmp_path: Path) -> None:
    schema = load_schema("tiny", schemas)
    first, second = (read_raw("tiny", tmp_path, schema) for _ in range(2))
    pd.testing.assert_frame_equal(first, second)
    assert len(first) == 240


def test_two_files_of_one_name_are_refused(
    schema: Schema, raw: pd.DataFrame, tmp_path: Path
) -> None:
    raw.to_csv(tmp_path / "shop.csv", index=False)
    raw.to_parquet(tmp_path / "shop.parquet")
    with pytest.raises(DataError, match="two files"):
        read_raw("shop", tmp_path, schema)


def test_csv_and_parquet_give_the_same_cells(raw: pd.DataFrame, tmp_path: Path) -> None:
    raw.to_csv(tmp_path / "shop.csv", index=False)
    raw.to_parquet(tmp_path / "shop.parquet")
    pd.testing.assert_frame_equal(
        read_file(tmp_path / "shop.csv"), read_file(tmp_path / "shop.parquet")
    )


def test_csv_survives_a_byte_order_mark_and_unicode(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes("\ufeffgröße,名\n1,café\n".encode())
    assert read_file(path).to_dict("list") == {"größe": ["1"], "名": ["café"]}


def test_csv_cells_are_not_interpreted(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text('a,b\n007,NA\n"1,5",\n', encoding="utf-8")
    assert read_file(path).to_dict("list") == {"a": ["007", "1,5"], "b": ["NA", ""]}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a,b,a\n1,2,3\n", "duplicate columns in the header: 'a'"),
        (b",a\n0,1\n", "a column has no name"),
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"a;b\n1;2\n", "separated by ';'"),
        (b"a\tb\n1\t2\n", r"separated by '\\t'"),
        (b"a,b\n1,2,3\n4,5,6\n", "more cells than the header"),
        (b"a,b\n1,2\n4,5,6\n", "is not a table"),
        (b'a,b\n1,"2\n', "a quote that is not closed"),
        ("naïve,b\n1,2\n".encode("latin-1"), "not UTF-8"),
    ],
)
def test_broken_csv_files_are_refused(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=expected):
        read_file(path)


@pytest.mark.parametrize("keep", [0, 10, 200, -5])
def test_a_truncated_parquet_file_is_refused(raw: pd.DataFrame, tmp_path: Path, keep: int) -> None:
    path = tmp_path / "x.parquet"
    raw.to_parquet(path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DataError, match=r"x\.parquet is not a parquet file"):
        read_file(path)


def test_duplicate_columns_in_parquet_are_refused(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    pq.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(DataError, match="duplicate columns in the header: 'a'"):
        read_file(tmp_path / "x.parquet")


def test_a_pandas_index_is_no_column(raw: pd.DataFrame, tmp_path: Path) -> None:
    raw[::2].to_parquet(tmp_path / "x.parquet")
    assert list(read_file(tmp_path / "x.parquet").columns) == list(raw.columns)


def test_other_formats_and_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"unknown format '\.xls'"):
        read_file(tmp_path / "x.xls")
    (tmp_path / "x.csv").mkdir()
    with pytest.raises(DataError, match="cannot be read"):
        read_file(tmp_path / "x.csv")


def test_embedded_tables_have_their_published_size() -> None:
    assert read_embedded("credit").shape == (30_000, 25)
    assert read_embedded("german").shape == (1_000, 21)
    with pytest.raises(UnknownNameError, match="did you mean 'credit'"):
        read_embedded("credits")


def test_a_damaged_embedded_table_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sources.EMBEDDED, "german", ("german.csv.gz", "0" * 64))
    with pytest.raises(DataError, match="is damaged"):
        read_embedded("german")
    monkeypatch.setitem(sources.EMBEDDED, "german", ("absent.csv.gz", "0" * 64))
    with pytest.raises(DataError, match=r"lacks absent\.csv\.gz"):
        read_embedded("german")


def test_the_hash_follows_the_content(raw: pd.DataFrame) -> None:
    table = raw.assign(x=np.arange(len(raw)) / 7)
    digest = table_hash(table)
    assert table_hash(table.copy().set_index(table.index + 5)) == digest
    assert table_hash(table.rename(columns={"sex": "gender"})) != digest
    assert table_hash(table[::-1]) != digest
    table.loc[3, "x"] += 1e-12
    assert table_hash(table) != digest
    raw.loc[0, "sex"] = None
    assert table_hash(raw) != table_hash(raw.fillna(""))


def test_they_are_what_was_published():
    flowers, images = iris(read_embedded("iris")), digits(read_embedded("digits"))
    assert flowers.groupby("species").size().to_dict() == {
        "setosa": 50,
        "versicolor": 50,
        "virginica": 50,
    }
    assert flowers["is_virginica"].sum() == 50
    assert len(images) == 1797
    assert images[[f"is_{d}" for d in range(10)]].sum(axis=1).eq(1).all()


def test_another_table_is_refused(monkeypatch):
    read, _ = sources.BUNDLED["iris"]
    monkeypatch.setitem(sources.BUNDLED, "iris", (read, "0" * 64))
    with pytest.raises(DataError, match="not the one on record"):
        read_embedded("iris")


def test_strange_classes_are_refused():
    flowers, images = read_embedded("iris"), read_embedded("digits")
    flowers.loc[3, "species"] = "tulip"
    images.loc[5, "digit"] = 11
    with pytest.raises(DataError, match="species") as error:
        iris(flowers)
    assert error.value.rows == (3,)
    with pytest.raises(DataError, match="digit") as error:
        digits(images)
    assert error.value.rows == (5,)
