"""The chain trains, calibrates and reports every kind of score."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import yaml

from countermove.data.synthetic import fabricate

SERIES = {"entity": "firm", "time": "year", "steps": 3, "shorter": "repeat_first"}


def put_firms(project, series) -> None:
    """Write a table of firms over years, and its schema."""
    rng = np.random.default_rng(0)
    rows = []
    for firm in range(600):
        debts = rng.normal(size=rng.integers(2, 6))
        calm = rng.normal(size=len(debts))
        good = int(-debts[-1] + np.tanh(2.0 * calm[-2]) > 0.0)
        rows += [
            {"firm": f"f{firm}", "year": 2000 + i, "debt": debts[i], "calm": calm[i], "ok": good}
            for i in range(len(debts))
        ]
    pd.DataFrame(rows).to_csv(project.path / "data/01_raw/firms.csv", index=False)
    numeric = {"kind": "numeric", "change": "both"}
    schema = {
        "label": {"column": "ok", "favourable": 1},
        "features": {"debt": numeric, "calm": numeric},
    }
    if series is None:
        schema["ignore"] = ["firm", "year"]
    else:
        schema["series"] = series
    (project.path / "conf/base/schemas/firms.yml").write_text(yaml.safe_dump(schema))


def run(project, *more: str):
    return project.run("--pipeline=serm", f"--params={','.join(('dataset=firms', *more))}")


@pytest.mark.slow
def test_a_series_is_judged_by_a_recurrent_score(project):
    put_firms(project, SERIES)
    outcome = run(project, "serm.score.kind=recurrent", "serm.training.max_epochs=20")
    assert outcome.returncode == 0, outcome.stderr
    metrics = json.loads((project.path / "data/08_reporting/firms/metrics.json").read_text())
    assert metrics["accuracy"]["nobody_moves"]["blind"] > 0.8
    assert metrics["accuracy"]["uncalibrated"]["strategic"] > 0.8
    stored = next((project.path / "data/06_models/firms/strategic").glob("*/*/model.json"))
    score = json.loads(stored.read_text())["score"]
    assert score["kind"] == "recurrent"
    assert score["arguments"]["steps"] == [[4, 5], [2, 3], [0, 1]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("series", "words"), [(None, "has no series"), (SERIES | {"steps": 1}, "no history to read")]
)
def test_a_recurrent_score_without_history_is_refused(project, series, words):
    put_firms(project, series)
    outcome = run(project, "serm.score.kind=recurrent")
    assert outcome.returncode != 0
    assert words in " ".join((outcome.stdout + outcome.stderr).split())


@pytest.mark.slow
@pytest.mark.parametrize(
    "score",
    [
        "serm.score.kind=mlp,serm.response.kind=ascent,serm.training.selection=none",
        "serm.score.kind=partly_linear",
    ],
)
def test_the_whole_chain_walks_with_a_network(project, score):
    outcome = project.run("--pipeline=serm", "--env=test", f"--params={score}")
    assert outcome.returncode == 0, outcome.stderr
    metrics = json.loads((project.path / "data/08_reporting/tiny/metrics.json").read_text())
    assert 0.5 < metrics["accuracy"]["nobody_moves"]["blind"] <= 1.0
    climbing = "ascent_0.5" in metrics["accuracy"]["sensitivity"]
    assert climbing == ("mlp" in score)
    assert (metrics["social"]["burden"] is None) == climbing
    assert ("ascent" in metrics) == climbing
    assert (set(metrics["not_evaluated"]) >= {"best", "published", "burden"}) == climbing
    page = (project.path / "data/08_reporting/tiny/report.html").read_text()
    assert ("Not evaluated: best response" in page) == climbing
    if climbing:
        assert metrics["ascent"]["converged"] > 0.95
        assert 0.0 <= metrics["ascent"]["gap"] < 0.1


@pytest.mark.slow
def test_trees_walk_through_the_chain_retraining_and_scoring(project):
    trees = "--params=serm.score.kind=trees,serm.training.selection=none"
    outcome = project.run("--pipeline=serm", "--env=test", trees)
    assert outcome.returncode == 0, outcome.stderr
    folder = project.path / "data/06_models/tiny/strategic"
    stored = json.loads(next(folder.glob("*/*/model.json")).read_text())
    assert stored["score"]["kind"] == "index_trees"
    metrics = json.loads((project.path / "data/08_reporting/tiny/metrics.json").read_text())
    assert metrics["accuracy"]["after_response"]["strategic"] > 0.5
    assert metrics["accuracy"]["unproven"]["blind"] == 0.0
    assert (project.path / "data/08_reporting/tiny/report.html").exists()
    advice = pd.read_parquet(project.path / "data/07_model_output/tiny/advice.parquet")
    assert (advice["status"] == "FOUND").any()
    project.bring_batch("m1", rows=200)
    outcome = project.retrain(trees)
    assert outcome.returncode == 0, outcome.stderr
    assert (project.path / "data/06_models/tiny/champion.json").exists()
    people = project.path / "data/01_raw/applicants/tiny"
    people.mkdir(parents=True)
    fabricate("tiny", 40, seed=7).drop(columns="repaid").to_csv(people / "b1.csv", index=False)
    outcome = project.run("--pipeline=score", "--env=test", "--params=score.batch=b1")
    assert outcome.returncode == 0, outcome.stderr


@pytest.mark.slow
def test_moves_in_a_representation_are_refused_with_the_reason(project):
    settings = "--params=serm.score.kind=representation"
    outcome = project.run("--pipeline=serm", "--env=test", settings)
    assert outcome.returncode != 0
    assert "nobody's features" in " ".join((outcome.stdout + outcome.stderr).split())


@pytest.mark.slow
def test_people_without_a_closed_form_are_refused_by_name(project):
    outcome = project.run("--pipeline=serm", "--env=test", "--params=serm.score.kind=mlp")
    assert outcome.returncode != 0
    said = " ".join((outcome.stdout + outcome.stderr).split())
    assert "kind: ascent" in said
