"""Collectives through the look-ahead pipeline, as a user runs it."""

from __future__ import annotations

import json

import pandas as pd
import pytest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", ["figure_2", "figure_3", "figure_4"])
def test_a_collective_on_the_table_of_the_run(project, kind):
    path = project.path / "mine.yml"
    path.write_text(
        "run:\n  pipelines: lookahead\n  params:\n    lookahead:\n      dataset: tiny\n"
        f"      name: mine\n      experiment: {{kind: {kind}, columns: [income]}}\n"
    )
    outcome = project.run("--config", "mine.yml")
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    folder = project.path / "data" / "08_reporting"
    facts = json.loads((folder / "tiny" / "lookahead.json").read_text())
    means = pd.read_csv(folder / "mine" / "means.csv")
    assert facts["experiment"]["kind"] == kind
    assert len(facts["results"]) == len(means) > 0
    assert (folder / "mine" / "page.html").stat().st_size > 0


def test_a_column_that_does_not_exist_is_said(project):
    path = project.path / "wrong.yml"
    path.write_text(
        "run:\n  pipelines: lookahead\n  params:\n    lookahead:\n      dataset: tiny\n"
        "      experiment: {kind: figure_3, columns: [incme]}\n"
    )
    outcome = project.run("--config", "wrong.yml")
    assert outcome.returncode != 0
    assert "did you mean 'income'" in outcome.stdout + outcome.stderr
