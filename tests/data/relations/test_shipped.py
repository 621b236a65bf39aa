"""The relations that the project's own schemas declare are true of their tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from countermove.data.cleaning import clean
from countermove.data.relations import numeric_relations, path_states, relation_report
from countermove.data.rows import coded_features
from countermove.data.schema import load_schema
from countermove.data.sources import read_embedded

DIGESTS = {
    # Of models: relations are no part of what a rule reads.
    "credit": "3f9e173c3d3766f62d52b277ffbb155f629f1e5b2584cedcd09795e28b8c822d",
    "german": "e27a80723dfe853ac009ce426f3b3eb976973012096c8a79a9f4e4a26c61950d",
    "adult": "6523553a8de1aa8e0023458031a92ee864bbaabc74ea41f12d51d45c92722fdf",
}


@pytest.mark.parametrize(("name", "count"), [("credit", 11), ("german", 2)])
def test_no_row_of_an_embedded_table_breaks_a_relation(
    name: str, count: int, schemas: Path
) -> None:
    schema, raw = load_schema(name, schemas), read_embedded(name)
    table = clean(raw, schema)
    report = relation_report(raw, table, schema)
    assert report.problems == report.warnings == ()
    assert report.summary == (f"{count} relation(s) hold in all {len(table)} rows",)
    assert all(relation.because for relation in schema.relations)
    X = coded_features(table, schema)
    assert numeric_relations(schema).holds(X).all()


def test_advice_that_the_field_test_met_is_impossible(schemas: Path) -> None:
    schema = load_schema("credit", schemas)
    table = clean(read_embedded("credit").head(2000), schema)
    relations = numeric_relations(schema)
    X, at = coded_features(table, schema), schema.feature_names.index
    overdue = X[:, at("HistoryOfOverduePayments")] == 1
    cleared = X[overdue].copy()
    cleared[:, at("TotalMonthsOverdue")] = 0  # the months gone, the spells still counted
    assert not relations.holds(cleared).any()
    paid = X.copy()
    paid[:, at("MostRecentPaymentAmount")] = X[:, at("MaxPaymentAmountOverLast6Months")] + 10
    assert not relations.holds(paid).any()


def test_overdue_months_of_credit_leave_the_window_one_by_one(schemas: Path) -> None:
    schema, raw = load_schema("credit", schemas), read_embedded("credit").head(3000)
    table = clean(raw, schema)
    (found,) = path_states(schema, table, raw)
    assert found.states.shape == (3000, 7, 3)
    np.testing.assert_array_equal(
        found.states[:, 0],
        table[["TotalOverdueCounts", "TotalMonthsOverdue", "HistoryOfOverduePayments"]],
    )
    assert not found.states[:, 6].any()
    # After three months on time, the recipe itself makes the same of the rolled months.
    delays = [f"PAY_{month}" for month in (0, 2, 3, 4, 5, 6)]
    months = raw[delays].to_numpy()
    rolled = np.hstack([np.zeros((3000, 3), dtype=int), months[:, :3]])
    later = clean(
        pd.concat([raw.drop(columns=delays), pd.DataFrame(rolled, columns=delays)], axis=1), schema
    )
    np.testing.assert_array_equal(found.states[:, 3], later[list(found.path.columns)])


@pytest.mark.parametrize("name", DIGESTS)
def test_relations_are_no_part_of_what_a_model_reads(name: str, schemas: Path) -> None:
    schema = load_schema(name, schemas)
    assert schema.digest() == DIGESTS[name]
    assert schema.relations_digest()


@pytest.mark.parametrize("name", ["iris", "digits", "tiny", "spam"])
def test_a_schema_without_relations_says_nothing_of_them(name: str, schemas: Path) -> None:
    schema = load_schema(name, schemas)
    assert schema.relations_digest() == ""
    assert not {"relations", "path"} & set(schema.to_mapping())
