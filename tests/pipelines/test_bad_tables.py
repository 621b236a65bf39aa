"""A bad table stops the run with one clear message and leaves earlier results alone."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from countermove.data.synthetic import fabricate

from ..conftest import copy_project


def spoilt(change) -> pd.DataFrame:
    table = fabricate("tiny")
    return change(table)


CASES = {
    "missing column": (lambda t: t.drop(columns="income"), "income"),
    "extra column": (lambda t: t.assign(shoe_size=1), "shoe_size"),
    "unparseable": (lambda t: t.assign(income="plenty"), "plenty"),
    "one label": (lambda t: t.assign(repaid="yes"), "label"),
    "three labels": (lambda t: t.assign(repaid=t["repaid"].where(t.index > 3, "maybe")), "maybe"),
    "constant feature": (lambda t: t.assign(savings=1.0), "savings"),
    "too few rows": (lambda t: t.groupby("repaid").head(2), "rows"),
}

WRONG_ROWS = {
    5: ("savings", "", "a value"),
    6: ("savings", "inf", "a finite number"),
    7: ("income", "plenty", "a number"),
    8: ("open_loans", "-3", "at least 0"),
    9: ("education", "wizardry", "one of "),
    13: ("person", "p0012", "an id that no other row has"),
}


QUICK = "unparseable"
"""The checks themselves are tested one by one in tests/data; here, that a run reports them."""


@pytest.mark.parametrize(
    "case",
    [case if case == QUICK else pytest.param(case, marks=pytest.mark.slow) for case in CASES],
)
def test_bad_table_is_refused_with_a_clear_message(finished, case):
    change, mentioned = CASES[case]
    raw = finished.path / "data" / "01_raw" / "tiny.csv"
    typed = finished.path / "data" / "02_intermediate" / "tiny" / "typed.parquet"
    before = typed.read_bytes()
    spoilt(change).to_csv(raw, index=False)
    try:
        outcome = finished.run("--pipeline=ingest", "--env=test")
    finally:
        raw.unlink()
    assert outcome.returncode == 1
    message = outcome.stderr.split("Error: ")[-1]
    assert mentioned in message
    assert "Traceback" not in outcome.stderr
    assert typed.read_bytes() == before or case == "too few rows"


def describe(project) -> None:
    """Write the schema of a user's own table, ``mine``."""
    schemas = project.path / "conf" / "base" / "schemas"
    text = (schemas / "tiny.yml").read_text().replace("source: fabricated", "source: file")
    (schemas / "mine.yml").write_text(text)


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    """A user's own table with some wrong rows, run with one parameter changed."""
    project = copy_project(tmp_path_factory.mktemp("mine"))
    table = fabricate("tiny").astype(object)
    for row, (column, cell, _) in WRONG_ROWS.items():
        table.loc[row, column] = cell
    table.to_csv(project.path / "data/01_raw/mine.csv", index=False)
    describe(project)
    said = "--params=dataset=mine,serm.cost.scale=50"
    outcome = project.run("--pipeline=serm", "--env=test", said)
    assert outcome.returncode == 0, outcome.stderr
    return project, table, outcome.stderr


def test_a_run_sets_wrong_rows_aside_goes_on_and_says_how_many(mine):
    project, table, stderr = mine
    said = f"7 of {len(table)} rows set aside"
    assert said in stderr
    made = project.path / "data" / "02_intermediate" / "mine"
    listed = pd.read_csv(made / "quarantine.csv", keep_default_na=False)
    assert listed["row"].tolist() == [5, 6, 7, 8, 9, 12, 13]
    for line in listed[listed["row"] != 12].itertuples():
        column, cell, expected = WRONG_ROWS[line.row]
        assert (line.column, line.found) == (column, cell)
        assert line.expected.startswith(expected)
    assert len(pd.read_parquet(made / "typed.parquet")) == len(table) - 7
    assert said in (project.path / "data/08_reporting/mine/report.html").read_text()


def test_one_parameter_changes_the_rest_stay_and_the_outcome_is_told(mine):
    """One CSV and one YAML bring a new dataset; a run of it takes parameters as any other."""
    project, _, stderr = mine
    assert "accuracy on test rows" in stderr
    assert "Deprecat" not in stderr
    metrics = json.loads((project.path / "data/08_reporting/mine/metrics.json").read_text())
    assert metrics["dataset"] == "mine"
    assert metrics["response"]["cost"]["scale"] == 50
    assert metrics["response"]["kind"] == "best"


@pytest.mark.slow
def test_user_table_and_schema_are_enough_with_the_settings_of_base(project):
    fabricate("tiny", n=600, seed=3).to_csv(project.path / "data/01_raw/mine.csv", index=False)
    describe(project)
    outcome = project.run("--pipeline=serm", "--params=dataset=mine")
    assert outcome.returncode == 0, outcome.stderr
    assert (project.path / "data/08_reporting/mine/metrics.json").exists()


@pytest.mark.slow
def test_missing_user_file_says_where_it_is_expected(project):
    describe(project)
    outcome = project.run("--pipeline=ingest", "--params=dataset=mine")
    assert outcome.returncode == 1
    assert "missing file" in outcome.stderr
    assert "01_raw" in outcome.stderr


@pytest.mark.slow
def test_model_of_an_older_schema_is_refused(project):
    assert project.run("--pipeline=serm", "--env=test").returncode == 0
    schema = project.path / "conf" / "base" / "schemas" / "tiny.yml"
    schema.write_text(schema.read_text().replace("change: both", "change: up", 1))
    outcome = project.run("--pipeline=evaluation", "--env=test")
    assert outcome.returncode == 1
    assert "another schema" in outcome.stderr
