"""A messy extract gives what its hand-made table gives, with no edit outside its schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from tests.data.messy import EXTRACTS, Extract

from countermove import StrategicClassifier
from countermove.data.cleaning import clean, clean_rows
from countermove.data.drafting import draft_file
from countermove.data.files import RawTable, read_table
from countermove.data.reading import folded
from countermove.data.report import SplitPlan, report_on
from countermove.data.rows import feature_matrix, fit_standardiser, rows_of, standardised_table
from countermove.data.schema import LABEL, ROW_ID, Schema
from countermove.data.splits import split_table

SHARES = {"train": 0.6, "calibration": 0.2, "test": 0.2}


def confirmed(extract: Extract, path: Path, name: str) -> Schema:
    """Return the drafted schema with its owner's answers."""
    draft = draft_file(path, name, extract.label, extract.favourable)
    content: dict[str, Any] = yaml.safe_load(draft.text)
    extract.answer(content)
    return Schema.from_mapping(name, content)


def plain(schema: Schema) -> Schema:
    """Return the schema of the hand-made table: the same, but for how cells are read."""
    content = schema.to_mapping()
    for key in ("file", "read", "ignore"):
        content.pop(key, None)
    content["label"].pop("read", None)
    for entry in content["features"].values():
        entry.pop("read", None)
    return Schema.from_mapping(schema.name, content)


@pytest.fixture(params=EXTRACTS)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Extract, RawTable, Schema]:
    extract = EXTRACTS[request.param]()
    path = extract.write(tmp_path, request.param)
    schema = confirmed(extract, path, request.param)
    return extract, read_table(path, schema.file), schema


def by_hand(extract: Extract, schema: Schema) -> pd.DataFrame:
    """Return the hand-made table, its words in the spelling of the draft."""
    table = extract.by_hand.copy()
    spelled = {f.name: f.categories for f in schema.features if f.categories}
    spelled[schema.label.column] = (str(schema.label.favourable), str(schema.label.unfavourable))
    for column, words in spelled.items():
        known = {folded(word): word for word in words}
        table[column] = [known[folded(cell)] for cell in table[column]]
    return table


def test_its_draft_passes_the_check(case: tuple[Extract, RawTable, Schema]) -> None:
    extract, raw, schema = case
    assert len(raw.broken) == extract.broken > 0
    report = report_on(raw.frame, schema, SplitPlan(SHARES))
    assert report.sound, report.text()


def test_its_rows_are_those_made_by_hand(case: tuple[Extract, RawTable, Schema]) -> None:
    extract, raw, schema = case
    read = clean_rows(raw, schema).table
    made = clean(by_hand(extract, schema), plain(schema))
    assert read[ROW_ID].tolist() == made[ROW_ID].tolist()
    pd.testing.assert_frame_equal(read[made.columns], made, rtol=1e-12)
    assert read[LABEL].nunique() == 2


@pytest.mark.slow
def test_its_rule_is_the_one_made_by_hand(case: tuple[Extract, RawTable, Schema]) -> None:
    extract, raw, schema = case
    rules = []
    for table, described in ((raw, schema), (by_hand(extract, schema), plain(schema))):
        typed = clean_rows(table, described).table
        train = split_table(typed, described, SHARES, seed=0)["train"]
        units = fit_standardiser(train, described, divide_by_root_d=False)
        rows = rows_of(standardised_table(train, described, units), described)
        rule = StrategicClassifier(loss="logistic", random_state=0).fit(rows.X, rows.y)
        rules.append(rule.decision_function(units.transform(feature_matrix(typed, described))))
    np.testing.assert_allclose(*rules, rtol=1e-8, atol=1e-8)
