from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from countermove.data.cleaning import clean
from countermove.data.schema import Schema, load_schema
from countermove.data.synthetic import fabricate
from countermove.errors import BlockedError
from countermove.production.retraining.batches import LabelledBatch, gather

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
    found = gather([batch("a"), batch("b", 140, 180)], {}, base, schema)
    assert found.new == ["a", "b"]
    assert len(found.rows) == 80
    assert found.rows["row_id"].is_unique
    assert found.facts["b"]["repeated"] == 10
    assert found.facts["b"]["used"] == 30


def test_known_batches_are_not_new(base, schema):
    first = batch("a")
    found = gather([first, batch("b", 150, 180)], {"a": first.sha256}, base, schema)
    assert found.new == ["b"]


def test_rows_without_a_label_wait_until_it_comes(base, schema):
    early = batch("a")
    early.raw.loc[:9, "repaid"] = None
    late = LabelledBatch("b", RAW[100:110].reset_index(drop=True))
    found = gather([early, late], {}, base, schema)
    assert found.facts["a"]["waiting_for_label"] == 10
    assert found.facts["a"]["used"] == 40
    assert found.facts["b"]["used"] == 10
    assert found.facts["b"]["repeated"] == 0


def test_an_empty_batch_blocks(base, schema):
    with pytest.raises(BlockedError, match="batch 'a' is empty"):
        gather([LabelledBatch("a", RAW[:0])], {}, base, schema)


def test_a_batch_of_waiting_rows_only_blocks(base, schema):
    raw = RAW[100:120].assign(repaid=None).reset_index(drop=True)
    with pytest.raises(BlockedError, match="20 wait for their label"):
        gather([LabelledBatch("a", raw)], {}, base, schema)


def test_a_batch_that_breaks_the_schema_blocks_and_names_its_rows(base, schema):
    broken = batch("a")
    broken.raw["income"] = broken.raw["income"].astype(object)
    broken.raw.loc[3, "income"] = "many"
    with pytest.raises(BlockedError, match=r"batch 'a': .*income.*'many'") as caught:
        gather([broken], {}, base, schema)
    assert caught.value.rows == (3,)


def test_rows_are_named_as_they_stand_in_the_file(base, schema):
    broken = batch("a")
    broken.raw["income"] = broken.raw["income"].astype(object)
    broken.raw.loc[7, "income"] = "many"
    broken.raw.loc[0, "repaid"] = None
    with pytest.raises(BlockedError) as caught:
        gather([broken], {}, base, schema)
    assert caught.value.rows == (7,)


def test_a_person_with_another_label_blocks(base, schema):
    other = batch("b", 100, 105)
    other.raw["repaid"] = np.where(other.raw["repaid"] == "yes", "no", "yes")
    with pytest.raises(BlockedError, match="other values or another label") as caught:
        gather([batch("a"), other], {}, base, schema)
    assert caught.value.rows == tuple(range(5))


def test_a_person_of_the_base_table_counts_there(base, schema):
    found = gather([batch("a", 90, 120)], {}, base, schema)
    assert found.facts["a"]["repeated"] == 10


def test_the_same_batch_under_another_name_blocks(base, schema):
    with pytest.raises(BlockedError, match="is batch 'a' again"):
        gather([batch("a"), batch("b")], {}, base, schema)


def test_a_batch_that_changed_after_its_use_blocks(base, schema):
    with pytest.raises(BlockedError, match="has changed since"):
        gather([batch("a")], {"a": batch("a", 100, 149).sha256}, base, schema)


def test_a_cleaned_batch_needs_no_recipe():
    from tests.conftest import ROOT

    from countermove.data.sources import read_embedded

    schema = load_schema("credit", ROOT / "conf" / "base" / "schemas")
    raw = read_embedded("credit")[:300]
    typed = clean(raw, schema, part_from=0)
    cleaned = typed.rename(columns={"row_id": "ID", "label": "NoDefaultNextMonth"})
    cleaned["NoDefaultNextMonth"] = (cleaned["NoDefaultNextMonth"] > 0).astype(int)
    found = gather([LabelledBatch("a", cleaned)], {}, typed[:0], schema)
    assert len(found.rows) == 300
