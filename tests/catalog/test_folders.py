"""Folders: tables in parts are written whole, the user's own are only read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from kedro.io import DatasetError

from countermove.catalog import (
    ApplicantBatchesDataset,
    FolderDataset,
    PartsDataset,
    RawPartsDataset,
)
from countermove.errors import DataError

TABLE = pd.DataFrame({"a": [1, 2, 3]})


def test_workers_get_an_absolute_path(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert FolderDataset({"path": "data/out"}).load() == tmp_path / "data" / "out"


@pytest.mark.parametrize(
    ("dataset", "words"),
    [
        (FolderDataset({"path": "data/out"}), "filled by a node"),
        (ApplicantBatchesDataset({"path": "data/out"}), "read-only"),
        (RawPartsDataset({"path": "data/out"}, "loans"), "read-only"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_catalog_writes_nothing_there(dataset, words):
    with pytest.raises(DatasetError, match=words):
        dataset.save(Path("x"))
    assert dataset._describe()["folder"] == "data/out"


def test_parts_come_back_by_split(tmp_path):
    dataset = PartsDataset({"path": str(tmp_path / "splits")})
    assert not dataset.exists()
    dataset.save(iter([("train", TABLE), ("test", TABLE.head(1)), ("train", TABLE.tail(1))]))
    assert dataset.exists()
    loaded = dataset.load()
    assert sorted(loaded) == ["test", "train"]
    assert loaded["train"].read()["a"].tolist() == [1, 2, 3, 3]
    assert loaded["test"].read()["a"].tolist() == [1]
    assert dataset._describe() == {"folder": str(tmp_path / "splits")}


def test_parts_that_stop_halfway_leave_the_previous_folder(tmp_path):
    dataset = PartsDataset({"path": str(tmp_path / "splits")})
    dataset.save(iter([("train", TABLE)]))

    def broken() -> Iterator[tuple[str, pd.DataFrame]]:
        yield "train", TABLE.head(1)
        raise DataError("the second part is broken")

    with pytest.raises(DatasetError, match="second part is broken"):
        dataset.save(broken())
    assert dataset.load()["train"].read().equals(TABLE)


def test_parts_before_the_ingest_say_what_to_run(tmp_path):
    with pytest.raises(DatasetError, match="run the ingest of partitions first"):
        PartsDataset({"path": str(tmp_path / "none")}).load()


def test_raw_parts_are_found_by_the_name_of_the_dataset(tmp_path):
    TABLE.to_parquet(tmp_path / "loans.parquet")
    parts = RawPartsDataset({"path": str(tmp_path)}, "loans").load()(2)
    assert [part["a"].tolist() for part in parts] == [[1, 2], [3]]


def test_applicants_are_found_by_the_id_of_their_batch(tmp_path):
    (tmp_path / "nov").mkdir()
    TABLE.head(2).to_parquet(tmp_path / "nov" / "one.parquet")
    TABLE.tail(1).to_parquet(tmp_path / "nov" / "two.parquet")
    read = ApplicantBatchesDataset({"path": str(tmp_path)}).load()
    assert read("nov", rows_per_part=10).read()["a"].tolist() == [1, 2, 3]
    with pytest.raises(DataError, match="missing table: 'dec'"):
        read("dec", rows_per_part=10)
