from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from countermove.data.cleaning import clean
from countermove.data.files import FileFormat
from countermove.data.schema import Schema, load_schema
from countermove.data.synthetic import fabricate
from countermove.errors import BlockedError
from countermove.production.retraining.batches import gather, with_labels
from countermove.production.retraining.labelled_batch import LabelledBatch, read_folder

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


def flipped(labels):
    return np.where(labels == "yes", "no", "yes")


def corrected(name="b", last=105):
    """Return a batch of people of batch a as they were, with another label."""
    other = batch(name, 100, last)
    return LabelledBatch(name, other.raw.assign(repaid=flipped(other.raw["repaid"])))


def file_of(name, first, last, labels=flipped):
    raw = RAW[first:last].reset_index(drop=True)
    return LabelledBatch(name, raw[["person"]].assign(repaid=labels(raw["repaid"])))


@pytest.mark.parametrize("again", [corrected(), file_of("b", 100, 105)], ids=["rows", "file"])
def test_a_corrected_label_replaces_the_earlier_one_and_both_are_on_record(base, schema, again):
    found = gather([batch("a"), again], ("a",), base, schema)
    plain = gather([batch("a")], (), base, schema).rows.set_index("row_id")
    rows, who = found.rows.set_index("row_id"), list(RAW["person"][100:105])
    assert len(rows) == 50
    assert (rows.loc[who, "label"] == -plain.loc[who, "label"]).all()
    assert rows.drop(index=who)["label"].equals(plain.drop(index=who)["label"])
    # It is a new label of somebody who came in May, so it is as old as they are.
    assert set(rows.loc[who, "batch"]) == {"b"}
    assert set(rows.loc[who, "first_seen"]) == {"a"}
    assert set(rows.loc[who, "first_labelled"]) == {"a"}
    assert found.corrections["row_id"].tolist() == who
    assert found.corrections["label_before"].tolist() == plain.loc[who, "label"].tolist()
    assert found.corrections["label"].tolist() == rows.loc[who, "label"].tolist()
    up = int((rows.loc[who, "label"] > 0).sum())
    counts = {"to_favourable": up, "to_unfavourable": 5 - up}
    assert found.facts["b"]["corrected"] == {"a": counts}
    assert (found.facts["a"]["used"], found.facts["b"]["used"]) == (45, 5)
    assert found.facts["b"]["sha256"] == again.sha256
    assert not len(found.quarantine)


def test_without_the_correcting_batch_the_earlier_label_counts_again(base, schema):
    plain = gather([batch("a")], (), base, schema)
    assert plain.corrections.empty
    twice = gather(
        [batch("a"), corrected(), file_of("c", 100, 105, labels=np.asarray)], (), base, schema
    )
    rows = twice.rows.set_index("row_id")["label"]
    assert rows[plain.rows["row_id"]].tolist() == plain.rows["label"].tolist()
    assert twice.corrections["batch_before"].tolist() == ["a"] * 5 + ["b"] * 5


def test_a_file_of_ids_and_labels_brings_late_labels(base, schema):
    early = batch("a")
    early.raw.loc[:9, "repaid"] = None
    found = gather([early, file_of("b", 100, 110, labels=np.asarray)], (), base, schema)
    assert found.facts["b"]["used"] == 10
    assert found.facts["b"]["corrected"] == {}
    assert found.waiting.empty
    assert set(found.rows["first_seen"]) == {"a"}


def test_ids_that_nobody_knows_are_set_aside_and_many_block(base, schema):
    stranger = file_of("b", 100, 140)
    stranger.raw.loc[3, "person"] = "nobody"
    found = gather([batch("a"), stranger], (), base, schema)
    (line,) = found.quarantine.to_dict("records")
    assert (line["row"], line["row_id"]) == (3, "nobody")
    assert found.facts["b"]["used"] == 39
    with pytest.raises(BlockedError, match="expected somebody of an earlier batch"):
        gather([batch("a"), file_of("b", 0, 10)], (), base, schema)


def test_people_of_the_base_table_and_other_values_are_no_corrections(base, schema):
    of_base = LabelledBatch("b", RAW[90:110].reset_index(drop=True))
    of_base.raw.loc[:0, "repaid"] = flipped(of_base.raw["repaid"][:1])
    found = gather([of_base], (), base, schema)
    assert found.quarantine["row"].tolist() == [0]
    assert found.facts["b"]["repeated"] == 9
    richer = corrected()
    richer.raw["income"] += 1.0
    with pytest.raises(BlockedError, match="the values it had in a"):
        gather([batch("a"), richer], (), base, schema)


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


def test_broken_lines_of_a_batch_are_listed_and_counted(base, schema, tmp_path):
    lines = batch("a").raw.to_csv(index=False).splitlines()
    lines[6] = ",".join(lines[6].split(",")[:2])
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    found = gather(read_folder(tmp_path, FileFormat()), (), base, schema)
    assert found.facts["a"]["set_aside"] == 1
    assert found.facts["a"]["rows"] == 50
    (line,) = found.quarantine["found"]
    assert line.startswith("line 7: 2 cells")
