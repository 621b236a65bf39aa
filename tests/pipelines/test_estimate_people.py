"""Estimating the people as a user does: two tables, one command, and a run on what it found."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pandas as pd
import pytest
import yaml

from countermove.data.cleaning import people_records
from countermove.data.schema import load_schema
from countermove.data.synthetic import fabricate
from countermove.learning.people_estimation import Noise, simulate_deployment
from countermove.people import ActionSet, QuadraticCost
from countermove.response import BestResponse
from countermove.scores.storage import load_model

COMMAND = ("--pipeline=estimate_people", "--env=test")
MOVED = ("income", "savings")


def deploy(project, scale: float = 2.0, people: int = 2000) -> None:
    """Write tables of people who answer the published rule with income and savings alone."""
    *_, folder = sorted((project.path / "data/06_models/tiny/recourse").glob("*/recourse"))
    model = load_model(folder)
    schema = load_schema("tiny", project.path / "conf/base/schemas")
    raw, names = fabricate("tiny", people, seed=7), list(schema.feature_names)
    X = model.standardiser.transform(people_records(raw, schema, "tiny", True)[names].to_numpy())
    allowed = ActionSet.from_schema(schema, model.standardiser)
    actions = ActionSet(
        min_value=allowed.min_value,
        max_value=allowed.max_value,
        only_increase=allowed.only_increase,
        immutable=[j for j, name in enumerate(names) if name not in MOVED],
    )
    answer = BestResponse(QuadraticCost(scale), actions)
    seen = simulate_deployment(model.rule, X, answer, Noise(non_movers=0.15))
    after = raw.drop(columns="repaid")  # outcomes are not known yet
    for name in MOVED:
        column = model.standardiser.inverse(seen)[:, names.index(name)]
        after[name] = np.where(seen[:, names.index(name)] == X[:, names.index(name)],
                               raw[name], column)  # fmt: skip
    raw.to_csv(project.path / "data/01_raw/tiny_before.csv", index=False)
    after.iloc[::-1].to_csv(project.path / "data/01_raw/tiny_after.csv", index=False)


@pytest.fixture(scope="module")
def deployed(finished, tmp_path_factory):
    """A finished project of its own, with people before and after, and the estimate."""
    path = tmp_path_factory.mktemp("deployed") / "project"
    shutil.copytree(finished.path, path)
    project = type(finished)(path)
    deploy(project)
    outcome = project.run(*COMMAND)
    assert outcome.returncode == 0, outcome.stderr
    said = " ".join((outcome.stdout + outcome.stderr).split())
    assert "never move" in said  # the verdict, in the terminal
    return project


def reported(project, name: str) -> str:
    return (project.path / "data/08_reporting/tiny" / name).read_text()


def statements(certificate: dict) -> list[str]:
    return [one["statement"] for one in certificate["assumptions"]]


@pytest.mark.slow
def test_estimate_finds_what_people_pay_and_leaves_the_promised_files(deployed):
    facts = json.loads(reported(deployed, "people_estimate.json"))
    assert facts["response"] == "best"
    assert facts["identified"]
    prices = {weight["name"]: weight for weight in facts["weights"]}
    for name in MOVED:
        assert prices[name]["low"] <= 2.0 <= prices[name]["high"]
        assert prices[name]["identified"]
    assert not prices["education"]["identified"]
    interval = facts["non_movers"]["interval"]
    assert interval["low"] < 0.15 < interval["high"]
    said = yaml.safe_load(reported(deployed, "people_estimate.yml"))["run"]["params"]["serm"]
    assert said["cost"]["weights"][0] == pytest.approx(2.0, rel=0.02)
    assert said["response"]["kind"] == "population"
    assert said["response"]["never"] == pytest.approx(0.15, abs=0.05)
    assert "plotly" in reported(deployed, "people_estimate.html")
    for text in (facts["verdict"], reported(deployed, "people_estimate.html")):
        assert "a move of one standard deviation costs between" in text
    assert (deployed.path / "data/08_reporting/tiny/people_estimate_figure.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind"),
    [("people_estimate.yml", "population"), ("people_estimate_robust.yml", "robust")],
)
def test_the_next_run_trains_on_the_estimate_as_it_is(deployed, name, kind):
    outcome = deployed.run("--env=test", f"--config=data/08_reporting/tiny/{name}")
    assert outcome.returncode == 0, outcome.stderr
    metrics = json.loads(reported(deployed, "metrics.json"))
    assert metrics["response"]["kind"] == kind
    assert metrics["response"]["cost"]["kind"] == "weighted_quadratic"
    certificates = json.loads(reported(deployed, "certificates.json"))
    for name in ("recourse_miss_rate_after_response", "refusal_rate_after_response"):
        (one,) = [found for found in certificates if found["name"] == name]
        assert one["level"] == pytest.approx(0.95)
        (said,) = [what for what in statements(one) if "confidence set" in what]
        assert "0.025; that is part of the level" in said
    assert len(metrics["response"]["kinds" if kind == "population" else "members"]) == (
        1 if kind == "population" else 2
    )


@pytest.mark.slow
def test_the_estimate_feeds_retraining(deployed):
    """The settings of the estimate, under another heading, are those of a retraining."""
    said = yaml.safe_load(reported(deployed, "people_estimate.yml"))["run"]["params"]
    settings = deployed.path / "retrain_on_estimate.yml"
    settings.write_text(yaml.safe_dump({"run": {"pipelines": "retrain", "params": said}}))
    outcome = deployed.run("--env=test", f"--config={settings.name}")
    assert outcome.returncode in (0, 3), outcome.stderr
    assert "Traceback" not in outcome.stderr


@pytest.mark.slow
def test_tables_that_do_not_match_get_one_clear_message(deployed):
    path = deployed.path / "data/01_raw/tiny_after.csv"
    whole = path.read_text()
    try:
        path.write_text(whole.replace("p0005,", "stranger,"))
        outcome = deployed.run(*COMMAND)
        path.unlink()
        missing = deployed.run(*COMMAND)
    finally:
        path.write_text(whole)
    assert outcome.returncode == missing.returncode == 1
    assert "1 only before: 'p0005'; 1 only after: 'stranger'" in outcome.stderr
    assert "tiny_after.csv" in missing.stderr
    assert "Traceback" not in outcome.stderr + missing.stderr


@pytest.mark.slow
def test_what_is_not_identifiable_stops_the_next_run(deployed):
    path = deployed.path / "data/01_raw/tiny_after.csv"
    whole = path.read_text()
    try:
        shutil.copy(deployed.path / "data/01_raw/tiny_before.csv", path)
        assert deployed.run(*COMMAND).returncode == 0
    finally:
        path.write_text(whole)
    assert "nobody moved" in reported(deployed, "people_estimate.yml")
    refused = deployed.run("--env=test", "--config=data/08_reporting/tiny/people_estimate.yml")
    assert refused.returncode == 1
    assert "not_identified" in refused.stderr


def test_records_need_no_outcome_but_every_feature(project):
    schema = load_schema("tiny", project.path / "conf/base/schemas")
    raw = fabricate("tiny", 40)
    read = people_records(raw.drop(columns=["repaid", "group"]), schema, "tiny_after", True)
    assert list(read.columns) == ["row_id", *schema.feature_names]
    assert "row_id" not in people_records(raw, schema, "tiny_after", False)
    from countermove.errors import DataError

    with pytest.raises(DataError, match="'tiny_after' lacks the columns 'income'"):
        people_records(raw.drop(columns="income"), schema, "tiny_after", True)
    broken = raw.astype({"income": object})
    broken.loc[3, "income"] = "plenty"
    with pytest.raises(DataError, match="not a number") as caught:
        people_records(broken, schema, "tiny_after", True)
    assert caught.value.rows == (3,)
    with pytest.raises(DataError, match="duplicated ids"):
        people_records(pd.concat([raw, raw[:1]]), schema, "tiny_after", True)
