"""The look-ahead pipeline as a user runs it."""

from __future__ import annotations

import json

import pandas as pd
import pytest

pytestmark = pytest.mark.slow


def test_the_pipeline_runs_on_the_table_of_the_run(project):
    outcome = project.run("--pipeline=lookahead", "--env=test")
    assert outcome.returncode == 0, outcome.stderr
    folder = project.path / "data" / "08_reporting"
    for name in ("cells.csv", "means.csv", "figure.json", "page.html"):
        assert (folder / "lookahead" / name).stat().st_size > 0
    facts = json.loads((folder / "tiny" / "lookahead.json").read_text())
    assert facts["dataset"] == "tiny"
    means = pd.read_csv(folder / "lookahead" / "means.csv")
    assert len(facts["results"]) == len(means)


def test_another_table_and_experiment_by_parameter(project):
    chosen = "lookahead.dataset=german,lookahead.experiment.kind=figure_5,lookahead.name=mine"
    outcome = project.run("--pipeline=lookahead", f"--params={chosen}")
    assert outcome.returncode == 0, outcome.stderr
    folder = project.path / "data" / "08_reporting"
    assert json.loads((folder / "german" / "lookahead.json").read_text())["people"] == 1_000
    assert (folder / "mine" / "page.html").exists()


def test_a_table_that_was_not_fetched_is_said(project):
    outcome = project.run("--config", "conf/paper/lookahead_figure_5.yml")
    assert outcome.returncode != 0
    assert "kedro countermove fetch give-me-some-credit" in outcome.stdout + outcome.stderr


def test_shares_that_do_not_add_up_are_said(project):
    path = project.path / "wrong.yml"
    path.write_text(
        "run:\n  pipelines: lookahead\n  params:\n    lookahead:\n      dataset: tiny\n"
        "      experiment: {kind: figure_1, mixtures: [{1: 0.5, 2: 0.4}]}\n"
    )
    outcome = project.run("--config", "wrong.yml")
    assert outcome.returncode != 0
    assert "add up to 1" in outcome.stdout + outcome.stderr
