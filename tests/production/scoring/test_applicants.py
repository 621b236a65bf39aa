"""Applicants are read as the training rows were, without an outcome."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from countermove.data.cleaning import clean
from countermove.data.partitions import raw_partitions
from countermove.data.recipes import RECIPES, outcome_columns
from countermove.data.rows import feature_matrix
from countermove.data.schema import Schema, load_schema
from countermove.data.sources import read_embedded
from countermove.errors import DataError
from countermove.production.scoring.applicants import AdmitTask, content_digest, cut, usable

SCHEMAS = Path(__file__).parents[3] / "conf" / "base" / "schemas"


@pytest.mark.parametrize("name", ["credit", "german", "iris"])
def test_without_their_outcome_people_are_read_as_in_training(name):
    schema, raw = load_schema(name, SCHEMAS), read_embedded(name)
    outcome = list(outcome_columns(schema))
    expected = feature_matrix(clean(raw, schema), schema)[:50]
    unlabelled = pa.Table.from_pandas(raw.head(50).drop(columns=outcome))
    admitted = AdmitTask(schema)(unlabelled, 0).to_pandas()
    found = admitted[list(schema.feature_names)]
    pd.testing.assert_frame_equal(found, pd.DataFrame(expected, columns=schema.feature_names))


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_says_which_of_its_columns_hold_the_outcome(name):
    recipe = RECIPES[name]
    assert set(recipe.outcome) <= set(recipe.columns)
    assert recipe.outcome


@pytest.mark.parametrize("rule", [{"favourable": 1.0}, {"at_least": 3.5}, {"at_most": 2}])
def test_any_rule_of_a_label_has_a_value_that_may_stand_for_it(rule):
    described = {"label": {"column": "y", **rule}, "features": {"x": {"kind": "numeric"}}}
    schema = Schema.from_mapping("table", described)
    admitted = usable(AdmitTask(schema)(pa.table({"x": [1.5, 2.5]}), 10))
    assert admitted.to_pydict() == {"row_id": ["r10", "r11"], "x": [1.5, 2.5]}


def test_people_a_recipe_leaves_out_are_named():
    schema = load_schema("compas", SCHEMAS)
    person = dict.fromkeys(RECIPES["compas"].columns, "1") | {
        "sex": "Male", "race": "Other", "c_charge_degree": "F", "score_text": "Low",
        "c_jail_in": "2013-01-01 00:00:00", "c_jail_out": "2013-01-03 00:00:00",
    }  # fmt: skip
    late = person | {"id": "2", "days_b_screening_arrest": "31"}
    batch = pa.Table.from_pylist([person, late])
    read = AdmitTask(schema)(batch, 0)
    assert "somebody whom the rule was made for" in read["quarantine"].to_pylist()[1]
    assert read["row_id"].to_pylist()[1] == "2"
    assert usable(read).num_rows == 1


def test_a_series_is_refused():
    with pytest.raises(DataError, match="one row per person"):
        AdmitTask(load_schema("distress", SCHEMAS))


def test_large_files_are_cut_and_small_ones_are_not(tmp_path):
    people = pd.DataFrame({"a": range(10)})
    people.to_parquet(tmp_path / "coarse.parquet", index=False)
    people.to_parquet(tmp_path / "fine.parquet", index=False, row_group_size=4)
    people.to_csv(tmp_path / "text.csv", index=False)
    fine = raw_partitions("fine", tmp_path, 4)
    schema = load_schema("tiny", SCHEMAS)
    assert cut(fine, schema, tmp_path / "cut") == (fine, [])
    for name in ("coarse", "text"):
        pieces, _ = cut(raw_partitions(name, tmp_path, 4), schema, tmp_path / f"cut-{name}")
        assert [len(pd.read_parquet(path)) for path in pieces.files] == [4, 4, 2]
        assert pieces.read()["a"].astype(int).tolist() == people["a"].tolist()


def test_a_digest_tells_order_and_content_apart_and_is_that_of_a_lone_file(tmp_path):
    for name, text in (("one.csv", "a\n1\n"), ("two/a.csv", "a\n1\n"), ("two/b.csv", "a\n2\n")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    alone = content_digest(raw_partitions("one", tmp_path, 5))
    assert alone == hashlib.sha256(b"a\n1\n").hexdigest()
    several = raw_partitions("two", tmp_path, 5)
    first = content_digest(several)
    (tmp_path / "two" / "a.csv").rename(tmp_path / "two" / "c.csv")
    assert content_digest(raw_partitions("two", tmp_path, 5)) not in (first, alone)


def test_columns_that_only_split_the_training_rows_are_not_read():
    described = {
        "label": {"column": "y", "favourable": 1},
        "features": {"x": {"kind": "numeric"}, "age": {"kind": "integer"}},
    }
    schema = Schema.from_mapping("table", described | {"group_by": "house", "time": "day"})
    for extra in ({}, {"house": ["", "b"], "day": ["soon", "later"]}):
        admitted = AdmitTask(schema)(pa.table({"x": [1.5, 2.5], "age": [30, 40], **extra}), 0)
        assert usable(admitted).column_names == ["row_id", "x", "age"]
        assert usable(admitted).num_rows == 2
    known = Schema.from_mapping("table", described | {"group_by": "age"})
    assert AdmitTask(known)(pa.table({"x": [1.5], "age": [30]}), 0).num_rows == 1


def test_nobody_is_scored_as_lacking_a_date_that_is_there():
    """Up to an unreadable moment nothing can be counted: the person is set aside, by that cell."""
    reading = {"from": "hired", "date": "iso", "as": "days", "until": "asked"}
    tenure = {"kind": "numeric", "read": reading, "missing": "median"}
    described = {"label": {"column": "y", "favourable": 1}, "features": {"tenure": tenure}}
    schema = Schema.from_mapping("table", described | {"time": "asked"})
    hired = ["2020-01-01", "2020-01-01", "2020-01-01", ""]
    asked = ["2024-01-01", "soon", "", "2024-01-01"]
    admitted = AdmitTask(schema)(pa.table({"hired": hired, "asked": asked}), 0)
    assert usable(admitted)["row_id"].to_pylist() == ["r0", "r3"]
    wrong = [cells and json.loads(cells) for cells in admitted["quarantine"].to_pylist()]
    assert wrong[1:3] == [[["asked", "soon", "a date"]], [["asked", "", "a date"]]]


def test_a_changed_recipe_begins_a_batch_again():
    """How a file writes its numbers is no part of a model, but of what was read from the file."""
    plain = load_schema("tiny", SCHEMAS)
    content = plain.to_mapping()
    content["features"]["income"]["read"] = {"decimal": ","}
    commas = Schema.from_mapping("tiny", content)
    assert commas.digest() == plain.digest()
    assert AdmitTask(commas).fingerprint() != AdmitTask(plain).fingerprint()
