from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from countermove.data._text_files import BrokenLine
from countermove.data.cleaning import clean
from countermove.data.schema import Schema, load_schema
from countermove.data.synthetic import fabricate
from countermove.errors import BlockedError
from countermove.production.retraining.batches import gather, with_labels
from countermove.production.retraining.labelled_batch import LabelledBatch

RAW = fabricate("tiny")


@pytest.fixture(scope="module")
def schema() -> Schema:
    from tests.conftest import ROOT

    return load_schema("tiny", ROOT / "conf" / "base" / "schemas")


@pytest.fixture(scope="module")
def base(schema: Schema) -> pd.DataFrame:
    return clean(RAW[:100], schema, part_from=0)


def batch(name: str, first: int = 100, last: int = 150) -> LabelledBatch:
    return LabelledBatch(name, RAW[first:last].reset_index(drop=True))


def test_every_labelled_person_counts_once(base, schema):
    found = gather([batch("a"), batch("b", 140, 180)], (), base, schema)
    assert found.new == ["a", "b"]
    assert len(found.rows) == 80
    assert found.rows["row_id"].is_unique
    assert found.facts["b"]["repeated"] == 10
    assert found.facts["b"]["used"] == 30


def test_known_batches_are_not_new(base, schema):
    first = batch("a")
    found = gather([first, batch("b", 150, 180)], {"a"}, base, schema)
    assert found.new == ["b"]


def test_rows_without_a_label_wait_until_it_comes(base, schema):
    early = batch("a")
    early.raw.loc[:9, "repaid"] = None
    late = LabelledBatch("b", RAW[100:110].reset_index(drop=True))
    found = gather([early, late], (), base, schema)
    assert found.facts["a"]["waiting_for_label"] == 10
    assert found.facts["a"]["used"] == 40
    assert found.facts["b"]["used"] == 10
    assert found.facts["b"]["repeated"] == 0


def test_an_empty_batch_blocks(base, schema):
    with pytest.raises(BlockedError, match="batch 'a' is empty"):
        gather([LabelledBatch("a", RAW[:0])], (), base, schema)


def test_a_batch_of_waiting_rows_only_blocks(base, schema):
    raw = RAW[100:120].assign(repaid=None).reset_index(drop=True)
    with pytest.raises(BlockedError, match="20 wait for their label"):
        gather([LabelledBatch("a", raw)], (), base, schema)


def with_words(batch, *rows):
    batch.raw["income"] = batch.raw["income"].astype(object)
    batch.raw.loc[list(rows), "income"] = "many"
    return batch


def test_wrong_rows_are_set_aside_as_they_stand_in_the_file_and_the_others_used(base, schema):
    broken = with_words(batch("a"), 7)
    broken.raw.loc[0, "repaid"] = None
    found = gather([broken, batch("b", 150, 180)], (), base, schema)
    (line,) = found.quarantine.to_dict("records")
    assert (line["batch"], line["row"], line["found"]) == ("a", 7, "many")
    assert line["row_id"] == str(RAW["person"].iloc[107])
    assert found.facts["a"]["set_aside"] == 1
    assert found.facts["a"]["used"] == 48
    assert found.facts["b"]["set_aside"] == 0


def test_too_many_wrong_rows_block_and_are_named(base, schema):
    with pytest.raises(BlockedError, match=r"batch 'a': 3 of 50 rows .*") as caught:
        gather([with_words(batch("a"), 3, 4, 5)], (), base, schema)
    assert "3 × column 'income': expected a number, found 'many'" in str(caught.value)
    assert caught.value.rows == (3, 4, 5)


def test_a_batch_without_a_column_blocks(base, schema):
    lacking = LabelledBatch("a", batch("a").raw.drop(columns="income"))
    with pytest.raises(BlockedError, match="missing columns: 'income'"):
        gather([lacking], (), base, schema)


def test_a_person_with_another_label_is_set_aside_and_many_block(base, schema):
    other = batch("b", 100, 105)
    other.raw["repaid"] = np.where(other.raw["repaid"] == "yes", "no", "yes")
    with pytest.raises(BlockedError, match="the values and the label it had in a") as caught:
        gather([batch("a"), other], (), base, schema)
    assert caught.value.rows == tuple(range(5))
    few = LabelledBatch("b", pd.concat([other.raw[:1], RAW[150:180]], ignore_index=True))
    found = gather([batch("a"), few], (), base, schema)
    assert found.quarantine["row"].tolist() == [0]
    assert found.facts["b"]["used"] == 30


def test_of_a_person_twice_in_a_batch_with_other_values_neither_row_is_used(base, schema):
    twice = batch("a")
    twice.raw.loc[9, "person"] = twice.raw.loc[4, "person"]
    found = gather([twice], (), base, schema)
    assert found.quarantine["row"].tolist() == [4, 9]
    assert found.facts["a"]["used"] == 48


def test_a_person_of_the_base_table_counts_there(base, schema):
    found = gather([batch("a", 90, 120)], (), base, schema)
    assert found.facts["a"]["repeated"] == 10


def test_the_same_batch_under_another_name_blocks(base, schema):
    with pytest.raises(BlockedError, match="is batch 'a' again"):
        gather([batch("a"), batch("b")], (), base, schema)


def test_a_cleaned_batch_needs_no_recipe():
    from tests.conftest import ROOT

    from countermove.data.sources import read_embedded

    schema = load_schema("credit", ROOT / "conf" / "base" / "schemas")
    raw = read_embedded("credit")[:300]
    typed = clean(raw, schema, part_from=0)
    cleaned = typed.rename(columns={"row_id": "ID", "label": "NoDefaultNextMonth"})
    cleaned["NoDefaultNextMonth"] = (cleaned["NoDefaultNextMonth"] > 0).astype(int)
    found = gather([LabelledBatch("a", cleaned)], (), typed[:0], schema)
    assert len(found.rows) == 300


def test_a_label_that_the_base_table_does_not_have_is_set_aside(base, schema):
    odd = batch("a")
    odd.raw.loc[5, "repaid"] = "nope"
    found = gather([odd], (), base, with_labels(schema, ("yes", "no")))
    (line,) = found.quarantine.to_dict("records")
    assert (line["row"], line["column"], line["found"]) == (5, "repaid", "nope")
    assert found.facts["a"]["used"] == 49


def test_broken_lines_of_a_batch_are_listed_and_counted(base, schema):
    found = gather(
        [LabelledBatch("a", batch("a").raw, (BrokenLine(7, "2 cells", "9 cells"),))],
        (), base, schema,
    )  # fmt: skip
    assert found.facts["a"]["set_aside"] == 1
    assert found.facts["a"]["rows"] == 51
    assert found.quarantine["found"].tolist() == ["line 7: 2 cells"]
