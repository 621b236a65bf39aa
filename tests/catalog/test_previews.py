"""What kedro-viz can show of each dataset, and that it shows nothing before there is anything."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from kedro.io import Version

from countermove.catalog import (
    AtomicCSVDataset,
    AtomicJSONDataset,
    AtomicParquetDataset,
    AtomicPlotlyDataset,
    DeploymentTableDataset,
    FolderDataset,
    ModelDataset,
    PartsDataset,
    RawTableDataset,
    SchemaDataset,
)
from countermove.catalog.previews import table_preview

SCHEMAS = Path(__file__).parents[2] / "conf" / "base" / "schemas"
TABLE = pd.DataFrame({"age": range(20), "income": np.linspace(0, 1, 20)})
DRAWN = {"TablePreview", "JSONPreview", "PlotlyPreview"}
"""What kedro-viz draws; a page of 5 MB is not among it on purpose."""


def kind(dataset) -> str:
    return inspect.signature(dataset.preview).return_annotation


def saved(path: Path):
    schema = {"path": str(SCHEMAS / "tiny.yml")}
    return [
        (AtomicParquetDataset(filepath=str(path / "t.parquet")), TABLE),
        (AtomicCSVDataset(filepath=str(path / "c.csv")), TABLE),
        (AtomicJSONDataset(filepath=str(path / "f.json")), {"accuracy": 0.5}),
        (AtomicPlotlyDataset(filepath=str(path / "p.json")), go.Figure(go.Scatter(y=[1, 2]))),
        (PartsDataset(folder={"path": str(path / "parts")}), None),
        (FolderDataset(folder={"path": str(path / "folder")}), None),
        (DeploymentTableDataset(folder={"path": str(path)}, name="people_before"), None),
        (ModelDataset(str(path / "m"), schema, version=Version(None, None)), None),
    ]


@pytest.mark.parametrize("index", range(8))
def test_nothing_is_shown_before_a_run(index, tmp_path):
    dataset, _ = saved(tmp_path)[index]
    assert kind(dataset) in DRAWN
    assert dataset.preview() is None


@pytest.mark.parametrize("index", [0, 1])
def test_the_first_rows_of_a_table(index, tmp_path):
    dataset, table = saved(tmp_path)[index]
    dataset.save(table)
    shown = dataset.preview(3)
    assert shown["columns"] == ["age", "income"]
    assert shown["data"] == [[0, 0.0], [1, 0.0526], [2, 0.1053]]


def test_facts_and_figures(tmp_path):
    facts, figure = saved(tmp_path)[2:4]
    for dataset, data in (facts, figure):
        dataset.save(data)
    assert json.loads(facts[0].preview()) == {"accuracy": 0.5}
    assert figure[0].preview()["data"][0]["y"] == [1, 2]


def test_parts_and_folders_show_their_first_table(tmp_path):
    parts, folder = (dataset for dataset, _ in saved(tmp_path)[4:6])
    parts.save(iter([("train", TABLE), ("test", TABLE.tail(2))]))
    assert parts.preview(1)["data"] == [[18, 0.9474]]
    AtomicParquetDataset(filepath=str(tmp_path / "folder" / "deep" / "part.parquet")).save(TABLE)
    assert len(folder.preview()["data"]) == 5


def test_raw_tables_and_schemas_come_with_the_project(tmp_path):
    schema = SCHEMAS / "credit.yml"
    raw = RawTableDataset(folder={"path": str(tmp_path)}, schema={"path": str(schema)})
    assert len(raw.preview()["data"]) == 5
    shown = SchemaDataset(str(schema)).preview()
    assert shown["columns"][:3] == ["feature", "kind", "change"]
    assert len(shown["data"]) == 11
    assert all(cell is not None for row in shown["data"] for cell in row)  # blank, not null


def test_a_missing_value_is_valid_json():
    table = pd.DataFrame({"a": [1.0, np.nan], "when": pd.to_datetime(["2020-01-02", None])})
    shown = table_preview(table)
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown
    assert shown["data"][1] == [None, None]


def test_an_empty_table_shows_its_columns(tmp_path):
    dataset = AtomicParquetDataset(filepath=str(tmp_path / "t.parquet"))
    dataset.save(TABLE.head(0))
    assert dataset.preview()["columns"] == ["age", "income"]
