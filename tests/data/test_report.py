"""The report on a table lists every problem at once, then what is doubtful, then what is there."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from countermove.data.report import SplitPlan, report_on, table_sheet
from countermove.data.schema import Schema
from countermove.data.synthetic import fabricate

PLAN = SplitPlan({"train": 0.5, "validation": 0.15, "calibration": 0.15, "test": 0.2})


@pytest.fixture
def loans(schemas: Any) -> Schema:
    from countermove.data.schema import load_schema

    return load_schema("tiny", schemas)


def test_a_sound_table_is_summed_up(loans: Schema) -> None:
    table = fabricate("tiny")
    report = report_on(table, loans, PLAN)
    assert report.sound
    good = int((table["repaid"] == "yes").sum())
    assert report.summary[0] == f"240 rows, {good} of them favourable ({good / 240:.1%})"
    lines = {line.split()[0]: line for line in report.summary}
    assert "may rise, not below 0, not above 200" in lines["income"]
    assert "thousand EUR a year" in lines["income"]
    assert "in steps of 1" in lines["open_loans"]
    assert lines["years_at_job"].endswith("nobody")
    assert lines["group"].endswith("for audits")
    assert report.text().endswith("tiny: sound")


def test_what_can_be_supplied_is_said(loans: Schema) -> None:
    entries = loans.to_mapping()
    entries["features"]["income"] |= {"missing": "median", "supply": 0.4}
    town = {"kind": "onehot", "categories": ["x", "y"], "missing": "own level", "supply": True}
    entries["features"]["town"] = town
    table = fabricate("tiny").assign(town=np.resize(["x", "y", None], 240))
    table.loc[::9, "income"] = np.nan
    report = report_on(table, Schema.from_mapping("tiny", entries), PLAN)
    assert report.sound, report.text()
    lines = {line.split()[0]: line for line in report.summary}
    assert lines["income"].endswith("not above 200, an empty cell can be supplied at 0.4")
    assert lines["town"].endswith("supplied, in words only: nobody enters a category")


def test_every_problem_comes_at_once(loans: Schema) -> None:
    table = fabricate("tiny").astype({"income": object}).rename(columns={"savings": "svaings"})
    table.loc[3, "income"] = "plenty"
    table.loc[4, "education"] = "wizardry"
    report = report_on(table, loans, PLAN)
    assert not report.sound
    text = report.text()
    for fact in ("'savings'; did you mean 'svaings'", "'plenty'", "1 row(s): 3", "'wizardry'"):
        assert fact in text
    assert "not usable yet" in text


def test_too_few_rows_for_a_split_are_a_problem(loans: Schema) -> None:
    report = report_on(fabricate("tiny").groupby("repaid").head(3), loans, PLAN)
    assert not report.sound
    assert "too few rows for the split" in report.text()


def test_a_column_without_spread_in_training_is_a_problem(loans: Schema) -> None:
    table = fabricate("tiny")
    table["owns_home"] = 0
    table.loc[0, "owns_home"] = 1
    outcomes = {report_on(table, loans, SplitPlan(PLAN.fractions, seed)).sound for seed in range(8)}
    assert outcomes == {True, False}


def warnings(table: pd.DataFrame, schema: Schema, needed: int = 0) -> str:
    report = report_on(table, schema, SplitPlan(PLAN.fractions, calibration_needed=needed))
    assert report.sound, report.text()
    assert f"with {len(report.warnings)} warning(s)" in report.text()
    return "\n".join(report.warnings)


def test_few_calibration_rows_are_reported(loans: Schema) -> None:
    text = warnings(fabricate("tiny"), loans, needed=59)
    assert "calibration rows cannot carry the promise of recourse; it needs 59" in text
    enough = SplitPlan(PLAN.fractions, calibration_needed=20)
    assert not report_on(fabricate("tiny"), loans, enough).warnings


def test_a_table_nobody_can_act_on_is_reported(loans: Schema) -> None:
    content = loans.to_mapping()
    for entry in content["features"].values():
        entry["change"] = "immutable"
    assert "nobody can change anything" in warnings(
        fabricate("tiny"), Schema.from_mapping("tiny", content)
    )


def test_nearly_constant_columns_and_rare_outcomes_are_reported(loans: Schema) -> None:
    table = fabricate("tiny", n=2000)
    table["repaid"] = np.where(np.arange(2000) % 40 == 0, "no", "yes")
    table["owns_home"] = (np.arange(2000) % 200 == 0).astype(int)
    text = warnings(table, loans)
    assert "column 'owns_home' is nearly constant: all but 10 row(s) hold 0" in text
    assert "the rarer outcome is that of 2.5% of the rows" in text


def test_leaks_and_duplicates_are_reported(loans: Schema) -> None:
    table = fabricate("tiny")
    table["savings"] = np.where(table["repaid"] == "yes", 50.0, 10.0) + np.arange(240) / 100
    assert "column 'savings' separates the outcomes" in warnings(table, loans)
    twins = pd.concat([fabricate("tiny")] * 2, ignore_index=True)
    twins["person"] = [f"q{row}" for row in range(480)]
    twins.loc[3, "repaid"] = "no" if twins.loc[3, "repaid"] == "yes" else "yes"
    text = warnings(twins, loans)
    assert "480 rows have the same features as another row" in text
    assert "2 of them with differing outcomes" in text
    assert "name the person's column under `group_by:`" in text


SCHEMA = Schema.from_mapping(
    "tiny",
    {
        "label": {"column": "good", "favourable": 1},
        "features": {
            "income": {"kind": "numeric", "change": "up", "unit": "EUR"},
            "school": {"kind": "ordered", "change": "up", "categories": ["none", "some"]},
        },
        "sensitive": ["sex"],
        "source": "file",
        "description": "made up",
    },
)
TABLE = pd.DataFrame(
    {
        "row_id": list("abcd"),
        "label": [1, -1, 1, 1],
        "income": [1.0, 2.0, 4.0, 9.0],
        "school": ["none", "some", "none", "none"],
        "sex": list("fmfm"),
    }
)


def test_columns_say_who_may_change_them_and_what_they_hold():
    sheet = table_sheet(TABLE, SCHEMA)
    assert (sheet["rows"], sheet["favourable_share"]) == (4, 0.75)
    income, school = sheet["columns"]
    assert (income["lowest"], income["median"], income["highest"]) == (1.0, 3.0, 9.0)
    assert (income["change"], income["unit"]) == ("up", "EUR")
    assert school["values"] == {"none": 3, "some": 1}
    assert sheet["sensitive"] == ["sex"]
    json.dumps(sheet, allow_nan=False)


@pytest.mark.parametrize(("rows", "share", "known"), [(240, 104, True), (240, 120, False)])
def test_terms_are_those_of_the_table_on_record_alone(rows, share, known):
    """The fabricated table has 240 rows, 104 of them favourable; a user's may bear its name."""
    labels = [1] * share + [-1] * (rows - share)
    table = pd.concat([TABLE] * (rows // 4), ignore_index=True).assign(label=labels)
    assert (table_sheet(table, SCHEMA)["terms"] is not None) == known
