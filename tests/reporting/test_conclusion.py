"""A rule is published only if little depends on who people are; the conclusion says why not."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml
from tests.conftest import copy_project

from countermove.reporting.conclusion import conclude, opening

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "before_you_know.md"
PROMISE = {"applicable": True, "led_by": "promise", "words": "all have recourse"}
ALIKE = [{"claim": "Four-fifths rule, by sex", "state": "holds", "words": "ratio 0.97"}]


def regret(gain=0.2, low=0.1, largest=0.004, high=0.008, least=0.004):
    """Return what two rules regret, with the numbers that decide."""

    def rule(value, top):
        return {
            "least": "nobody moves",
            "least_gain": {"value": gain, "low": low},
            "worst": "0.25 times the price",
            "largest_regret": {"value": value, "high": top},
        }

    rules = {"strategic": rule(largest, high), "least_regret": rule(least, least)}
    return {"rules": rules, "tolerated": 0.01}


@pytest.mark.parametrize(
    ("found", "lines", "promise", "decision", "words"),
    [
        (regret(), ALIKE, PROMISE, "publish", "0.4 points (up to 0.8 points)"),
        (regret(high=0.02), ALIKE, PROMISE, "pilot", "up to 2.0 points"),
        (regret(), ALIKE, PROMISE | {"led_by": "loss"}, "pilot", "ess is promised than was asked"),
        (regret(low=-0.01), ALIKE, PROMISE, "do_not_publish", "if nobody moves"),
        (
            regret(),
            [ALIKE[0] | {"state": "does not hold", "words": "ratio 0.61"}],
            PROMISE,
            "do_not_publish",
            "ratio 0.61",
        ),
        (regret(), [ALIKE[0] | {"state": "not shown"}], PROMISE, "publish", "0.4 points"),
        (
            regret(largest=0.2, high=0.3, least=0.05),
            ALIKE,
            PROMISE,
            "pilot",
            "serm.training.selection=least_regret) leaves 5.0 points",
        ),
    ],
)
def test_the_decision_follows_from_its_criteria(found, lines, promise, decision, words):
    concluded = conclude(found, lines, promise, adopted=False)
    assert concluded["decision"] == decision
    assert words in concluded["words"]
    assert [reason["met"] is False for reason in concluded["reasons"]].count(True) == (
        0 if decision == "publish" else 1
    )


def test_somebodys_model_is_compared():
    assert conclude(regret(), ALIKE, PROMISE, adopted=True)["decision"] == "compare"


def test_the_first_sentence_is_the_decision():
    said = {"conclusion": conclude(regret(), ALIKE, PROMISE, adopted=False), "headline": "It is."}
    assert opening(said).startswith("Publish the rule. ")
    assert opening(said | {"conclusion": None}) == "It is."


def test_a_run_concludes_and_nothing_assumed_is_green(finished):
    """The rule of the fabricated table was trained for one response that nobody has tested."""
    reports = finished.path / "data" / "08_reporting" / "tiny"
    summary = json.loads((reports / "summary.json").read_text())
    assert summary["people"]["state"] == "unknown"
    assert summary["people"]["set"][:2] == ["nobody moves", "0.25 times the price"]
    assert summary["regret"] == json.loads((reports / "regret.json").read_text())["rules"]
    states = {line["claim"]: line["state"] for line in summary["verdict"]}
    assert states["Certified error after response"] == "holds if people respond as assumed"
    page = (reports / "report.html").read_text()
    first = page.index(summary["conclusion"]["words"].split(". ")[0])
    assert first < page.index("How often it is right")
    assert "What not knowing people costs" in page


@pytest.fixture(scope="module")
def loans(tmp_path_factory):
    """A project with 5,000 loans whose telling columns can be moved; two thirds repay."""
    import numpy as np

    project = copy_project(tmp_path_factory.mktemp("loans"))
    rng = np.random.default_rng(7)
    n = 5_000
    age, savings = rng.integers(20, 70, n), rng.normal(0.0, 1.0, n)
    income, balance = rng.normal(0.0, 1.0, n), rng.normal(0.0, 1.0, n)
    index = 0.9 + 0.02 * (age - 45) + 1.2 * savings + 0.8 * income - 0.6 * balance
    repaid = rng.random(n) < 1.0 / (1.0 + np.exp(-index))
    table = pd.DataFrame(
        {"age": age, "savings": savings, "income": income, "balance": balance, "repaid": repaid}
    )
    table["repaid"] = table["repaid"].map({True: "yes", False: "no"})
    table.to_csv(project.path / "data" / "01_raw" / "loans.csv", index=False)
    numeric = {"kind": "numeric", "change": "both", "min": -8, "max": 8}
    features = {"age": {"kind": "integer", "change": "immutable", "min": 18, "max": 99}}
    features |= {"savings": numeric, "income": numeric, "balance": numeric}
    schema = {"label": {"column": "repaid", "favourable": "yes"}, "features": features}
    (project.path / "conf/base/schemas/loans.yml").write_text(yaml.safe_dump(schema))
    return project


def outcome_of(project, *params):
    settings = ",".join(["dataset=loans", *params])
    outcome = project.run("--pipeline=serm", f"--params={settings}")
    assert outcome.returncode == 0, outcome.stderr
    reports = project.path / "data" / "08_reporting" / "loans"
    return json.loads((reports / "summary.json").read_text())


@pytest.mark.slow
def test_the_rule_of_least_regret_is_published_where_that_is_asked_for(loans):
    payoff = "serm.objective.kind=payoff,serm.objective.unfavourable=-3.0"
    strategic = outcome_of(loans, payoff)
    standing = strategic["accuracy"]["nobody_moves"]
    assert standing["strategic"]["value"] < standing["blind"]["value"] - 0.1
    assert strategic["conclusion"]["decision"] != "publish"
    assert not any(
        line["state"] == "holds" and "response" in line["claim"] for line in strategic["verdict"]
    )
    least = outcome_of(loans, payoff, "serm.training.selection=least_regret")
    assert "least regret" in least["headline"]
    regrets = [
        found["regret"]["strategic"]["largest_regret"]["value"] for found in (strategic, least)
    ]
    blind = least["regret"]["blind"]["largest_regret"]["value"]
    assert regrets[1] < regrets[0]
    assert regrets[1] < 0.5 * blind


@pytest.mark.slow
def test_the_guide_does_what_it_shows(project):
    """Every command of the guide, and what it prints, in the order of the page."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    blocks = re.findall(r"```console\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    assert len(blocks) == 2
    for command, shown in re.findall(r"\$ (.*)\n([^$]*)", "".join(blocks)):
        environment = os.environ | {"PATH": path, "OMP_NUM_THREADS": "1", "DO_NOT_TRACK": "1"}
        ran = subprocess.run(
            ["bash", "-c", command],
            cwd=project.path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        assert shown.strip() in ran.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("params", "words"),
    [
        ("serm.people.known=assumed", "known: assumed together with assumed_by: NAME"),
        ("serm.people.known=estimated", "known is estimated, but serm.confidence_set is not set"),
        ("serm.people.prices=[]", "prices"),
        (
            "serm.objective.kind=payoff,serm.objective.unfavourable=1.0",
            "approving everybody is always best; expected unfavourable < 0",
        ),
    ],
)
def test_settings_that_make_no_sense_end_in_a_sentence(loans, params, words):
    outcome = loans.run("--pipeline=serm", f"--params=dataset=loans,{params}")
    assert outcome.returncode == 1
    assert words in outcome.stderr
    assert "Traceback" not in outcome.stderr
