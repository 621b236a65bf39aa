"""Models, registry, history and labelled batches: opened by the catalog, written elsewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from kedro.io import DatasetError, Version
from kedro.io.core import parse_dataset_definition

import countermove.catalog as catalog
from countermove.catalog import (
    HistoryDataset,
    LabelledBatchesDataset,
    ModelDataset,
    RegistryDataset,
)
from countermove.data.schema import load_schema
from countermove.data.standardise import Standardiser
from countermove.errors import ModelFileError
from countermove.scores.linear import LinearScore
from countermove.scores.storage import PublishedModel

CONF = Path(__file__).parents[2] / "conf"
SCHEMAS = CONF / "base" / "schemas"
TINY = {"path": str(SCHEMAS / "tiny.yml")}


def a_model(schema: str = "tiny") -> PublishedModel:
    described = load_schema(schema, SCHEMAS)
    d = len(described.feature_names)
    units = Standardiser(np.zeros(d), np.ones(d), described.feature_names)
    return PublishedModel(LinearScore(d), units, described.digest(), {"note": "é"})


def test_every_version_of_a_model_comes_back(tmp_path):
    for version in ("2024-01-01T00.00.00.000Z", "2024-02-01T00.00.00.000Z"):
        ModelDataset(str(tmp_path / "m"), TINY, Version(None, version)).save(a_model())
    newest = ModelDataset(str(tmp_path / "m"), TINY, Version(None, None))
    assert newest.load().about["note"] == "é"
    assert sorted(path.name[:7] for path in (tmp_path / "m").iterdir()) == ["2024-01", "2024-02"]
    assert newest._describe()["filepath"] == str(tmp_path / "m")


def test_a_model_of_another_schema_is_refused(tmp_path):
    dataset = ModelDataset(str(tmp_path / "m"), TINY, Version(None, "2024-01-01T00.00.00.000Z"))
    dataset.save(a_model("german"))
    with pytest.raises(DatasetError) as refused:
        ModelDataset(str(tmp_path / "m"), TINY, Version(None, None)).load()
    assert isinstance(refused.value.__cause__, ModelFileError)


@pytest.mark.parametrize(
    ("dataset", "described", "words"),
    [
        (RegistryDataset({"path": "models"}, TINY), {"url": "models"}, "retrain pipeline"),
        (HistoryDataset({"path": "h.db"}, "tiny"), {"dataset": "tiny"}, "retrain pipeline"),
        (LabelledBatchesDataset({"path": "raw"}), {"folder": "raw"}, "read-only"),
    ],
    ids=["registry", "history", "batches"],
)
def test_the_catalog_writes_to_none_of_them(dataset, described, words):
    assert dataset._describe() == described
    with pytest.raises(DatasetError, match=words):
        dataset.save("anything")


def test_registry_and_history_open_empty(tmp_path):
    registry = RegistryDataset({"path": str(tmp_path / "models")}, TINY)
    assert registry.load().decisions() == []
    assert registry.preview() is None
    history = HistoryDataset({"path": str(tmp_path / "deep" / "h.db")}, "tiny")
    assert history.preview() is None
    assert len(history.load().decisions()) == 0


def test_the_password_of_a_database_stays_out_of_the_description():
    url = {"url": "postgresql://me:secret@host/db"}
    dataset = HistoryDataset({"path": "h.db"}, "tiny", credentials=url)
    assert "secret" not in str(dataset._describe())
    assert dataset.preview() is None


def test_batches_come_in_the_order_of_their_names(tmp_path):
    dataset = LabelledBatchesDataset({"path": str(tmp_path / "none")})
    assert dataset.load() == []
    assert not dataset.exists()
    for name in ("b", "a"):
        pd.DataFrame({"who": [name]}).to_csv(tmp_path / f"{name}.csv", index=False)
    batches = LabelledBatchesDataset({"path": str(tmp_path)}).load()
    assert [batch.raw["who"].tolist() for batch in batches] == [["a"], ["b"]]


def types_in(entry: object) -> set[str]:
    """Every ``type:`` and ``class:`` of this package in a catalog file."""
    if isinstance(entry, dict):
        own = {entry[key] for key in ("type", "class") if isinstance(entry.get(key), str)}
        return own.union(*map(types_in, entry.values()))
    return set().union(*map(types_in, entry)) if isinstance(entry, list) else set()


PEOPLE = "countermove.pipelines.people_dataset.PeopleDataset"
"""Reads parameters, which the catalog may not import."""


def test_every_entry_of_the_project_names_a_class_of_the_catalog():
    files = sorted(CONF.glob("*/catalog*.yml"))
    named = set().union(*(types_in(yaml.safe_load(path.read_text())) for path in files))
    ours = {name for name in named if name.startswith("countermove.")}
    assert PEOPLE in ours
    public = {name.removeprefix("countermove.catalog.") for name in ours - {PEOPLE}}
    assert public <= set(catalog.__all__)
    for name in ours - {"countermove.catalog.MatchesSchema"}:
        assert parse_dataset_definition({"type": name})[0].__name__ == name.rpartition(".")[2]


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg//bob:S3CRET@host/db",
        "postgresql+psycopg:/bob:S3CRET@host/db",
        "postgresql+psycopg:///bob:S3CRET@host/db",
        "bob:S3CRET@host/db",
        "//host/S3CRET",
        "postgresql:S3CRET",
        "Postgres bob S3CRET",
    ],
)
def test_a_url_that_is_none_is_refused_and_becomes_no_file(tmp_path, monkeypatch, url):
    """A lost colon must not make a file with the password in its name."""
    monkeypatch.chdir(tmp_path)
    dataset = HistoryDataset({"path": "history.db"}, "credit", {"url": url})
    with pytest.raises(DatasetError, match="COUNTERMOVE_HISTORY_URL") as refused:
        dataset.load()
    chain = [refused.value, refused.value.__cause__]
    assert not any("S3" in str(each) for each in chain)
    assert list(tmp_path.iterdir()) == []
