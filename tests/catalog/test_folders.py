"""A folder that nodes fill is a path to them, and nothing the catalog writes."""

from pathlib import Path

import pytest
from kedro.io import DatasetError

from countermove.catalog import FolderDataset


def test_workers_get_an_absolute_path(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert FolderDataset({"path": "data/out"}).load() == tmp_path / "data" / "out"


def test_the_catalog_writes_nothing_there():
    dataset = FolderDataset({"path": "data/out"})
    with pytest.raises(DatasetError, match="filled by a node"):
        dataset.save(Path("x"))
