"""Social good as a user asks for it on the command line: real processes, real files."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from tests.conftest import set_experiment


def social(project) -> dict:
    path = project.path / "data" / "08_reporting" / "tiny" / "metrics.json"
    return json.loads(path.read_text())["social"]


def test_every_model_and_group_is_measured(finished):
    found = social(finished)
    assert set(found["by_model"]) == {"blind", "strategic", "calibrated"}
    assert {name: found[name] for name in ("utility", "burden", "recourse")} == {
        name: found["by_model"]["calibrated"][name] for name in ("utility", "burden", "recourse")
    }
    groups = found["by_group"]["group"]
    whole = found["by_model"]["blind"]
    assert sum(entry["blind"]["people"] for entry in groups.values()) == whole["people"]
    assert sum(entry["blind"]["cut_off"] for entry in groups.values()) == whole["cut_off"]
    page = (finished.path / "data" / "08_reporting" / "tiny" / "report.html").read_text()
    assert "Who moves and who pays" in page
    assert all(f"group = {value}" in page for value in groups)


@pytest.mark.slow
def test_one_point_by_parameters_also_under_the_test_environment(project, finished):
    said = "serm.regulariser.kind=burden,serm.regulariser.strength=0.3"
    outcome = project.run("--pipeline=serm", "--env=test", f"--params={said}")
    assert outcome.returncode == 0, outcome.stderr
    model = next((project.path / "data/06_models/tiny/strategic").rglob("model.json"))
    kept = json.loads(model.read_text())["about"]["regulariser"]
    assert kept == {"kind": "burden", "strength": 0.3, "unscaled": False}
    plain, kinder = (social(p)["by_model"]["strategic"]["burden"] for p in (finished, project))
    assert kinder < plain


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["utility", "recourse", "l2", "none"])
def test_every_kind_can_be_named(project, kind):
    strength = "" if kind == "none" else ",serm.regulariser.strength=0.05"
    said = f"serm.regulariser.kind={kind}{strength}"
    outcome = project.run("--pipeline=serm", "--env=test", f"--params={said}")
    assert outcome.returncode == 0, outcome.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("kind=burdn", ("burdn", "did you mean 'burden'", "did you mean 'burden'?")),
        ("kind=burden,serm.regulariser.strength=-1", ("strength", "greater than or equal to 0")),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(project, said, words):
    outcome = project.run("--pipeline=serm", "--env=test", f"--params=serm.regulariser.{said}")
    assert outcome.returncode != 0
    for word in words:
        assert word in outcome.stderr + outcome.stdout


@pytest.mark.slow
def test_the_trade_off_pipeline_leaves_tables_figure_and_page(project):
    set_experiment(project, kind="tradeoff", datasets=["tiny"], curves=[{"strengths": [0.02, 0.2]}])
    outcome = project.run("--pipeline=paper", "--env=test")
    assert outcome.returncode == 0, outcome.stderr
    folder = project.path / "data" / "08_reporting" / "tradeoff"
    points = pd.read_csv(folder / "points.csv")
    assert points["strength"].tolist() == [0.0, 0.02, 0.2]
    assert pd.read_csv(folder / "choices.csv")["split"].astype(str).tolist() == ["0", "all"]
    for name in ("tradeoff.json", "tradeoff.html"):
        assert (folder / name).stat().st_size > 0
