"""Schemas, raw tables and texts: found by name, read as they came, never written."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from kedro.io import DatasetError

from countermove.catalog import (
    DeploymentTableDataset,
    MatchesSchema,
    RawTableDataset,
    SchemaDataset,
    TablesByNameDataset,
    TextsByNameDataset,
)
from countermove.data.cleaning import clean
from countermove.data.schema import load_schema
from countermove.data.synthetic import fabricate
from countermove.errors import DataError

SCHEMAS = Path(__file__).parents[2] / "conf" / "base" / "schemas"
TINY = {"path": str(SCHEMAS / "tiny.yml")}


def test_a_table_comes_cleaned_or_raw(tmp_path):
    where = {"folder": {"path": str(tmp_path)}, "schemas": [str(SCHEMAS)]}
    raw, schema = TablesByNameDataset(**where, cleaned=False).load()("tiny")
    typed, same = TablesByNameDataset(**where).load()("tiny")
    assert same == schema
    assert "label" not in raw
    pd.testing.assert_frame_equal(clean(raw, schema), typed)


@pytest.mark.parametrize(
    ("dataset", "described"),
    [
        (SchemaDataset("tiny.yml"), {"filepath": "tiny.yml"}),
        (RawTableDataset({"path": "raw"}, TINY), {"dataset": "tiny", "folder": "raw"}),
        (DeploymentTableDataset({"path": "raw"}, "before"), {"folder": "raw", "name": "before"}),
        (
            TablesByNameDataset({"path": "raw"}, ["own", "schemas"]),
            {"folder": "raw", "schemas": ["own", "schemas"], "cleaned": True},
        ),
        (TextsByNameDataset({"path": "raw"}), {"folder": "raw"}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_they_describe_themselves_and_are_never_written(dataset, described):
    assert dataset._describe() == described
    with pytest.raises(DatasetError, match=r"read-only|schemas are configuration"):
        dataset.save(pd.DataFrame({"a": [1]}))


def test_a_schema_is_that_of_its_file():
    dataset = SchemaDataset(TINY["path"])
    assert dataset.exists()
    assert dataset.load() == load_schema("tiny", SCHEMAS)
    with pytest.raises(DatasetError, match="unknown dataset 'tinny'"):
        SchemaDataset(str(SCHEMAS / "tinny.yml")).load()


def test_the_users_own_table_wins_over_the_fabricated_one(tmp_path):
    dataset = RawTableDataset({"path": str(tmp_path)}, TINY)
    pd.testing.assert_frame_equal(dataset.load().frame, fabricate("tiny"))
    fabricate("tiny", 60).to_csv(tmp_path / "tiny.csv", index=False)
    assert len(dataset.load().frame) == 60


def test_people_around_a_deployment_are_read_as_they_came(tmp_path):
    dataset = DeploymentTableDataset({"path": str(tmp_path)}, "before")
    with pytest.raises(DatasetError, match=r"expected in .*before\.csv or .*before\.parquet"):
        dataset.load()
    (tmp_path / "before.csv").write_text("a,b\n01,x\n")
    assert dataset.load().to_dict("list") == {"a": ["01"], "b": ["x"]}
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "before.parquet")
    with pytest.raises(DatasetError, match="two files for 'before'"):
        dataset.load()


def test_texts_are_found_by_name(tmp_path):
    (tmp_path / "mine.csv").write_text("text,label\na fine film,fresh\na dull one,rotten\n")
    texts = TextsByNameDataset({"path": str(tmp_path)}).load()("mine")
    assert texts.sentence.tolist() == ["a fine film", "a dull one"]
    assert texts.favourable.tolist() == [True, False]


def test_a_table_that_breaks_its_schema_is_refused():
    typed = clean(fabricate("tiny"), load_schema("tiny", SCHEMAS))
    validator = MatchesSchema(TINY)
    assert validator.validate(typed) is typed
    with pytest.raises(DataError, match="label neither"):
        validator.validate(typed.assign(label=0))
