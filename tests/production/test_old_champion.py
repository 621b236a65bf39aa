"""A champion stored by the release before format 2 (its threshold folded into the intercept).

`FIXTURE` is a registry as that release wrote it, with a threshold of 0.6, and its decisions about
eighty applicants. `RETRAINED` is one in which it retrained on a batch (kept), with the batch, the
next batch and the decision it then made about a challenger.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from countermove.production.history import DecisionHistory
from countermove.production.registry import Registry
from countermove.production.retraining.promotion import difference, promote_or_keep, roll_back
from countermove.scores.base import values

from .tiny_champion import SCHEMA, Office

FIXTURE = Path(__file__).parent / "fixtures" / "old_champion"
RETRAINED = Path(__file__).parent / "fixtures" / "old_registry"
VERSION = "000001-20261116T193845Z"


@pytest.fixture
def office(tmp_path):
    made = Office(tmp_path)
    shutil.copytree(FIXTURE, made.registry)
    shutil.copy(FIXTURE / "applicants.csv", made.batches / "b1.csv")
    return made


@pytest.fixture
def registry(office):
    return Registry(str(office.registry), SCHEMA)


def test_it_loads_verified_with_score_and_threshold_apart(registry):
    champion = registry.champion()
    assert champion.version == VERSION
    assert champion.model.threshold == 0.6
    X = np.random.default_rng(0).normal(size=(50, champion.model.score.n_features))
    shift = values(champion.model.score, X) - values(champion.model.rule, X)
    np.testing.assert_allclose(shift, np.log(0.6 / 0.4), atol=1e-12)


def test_it_decides_about_applicants_as_it_did(office):
    told, recorded = office.score("b1").people().read(), pd.read_csv(FIXTURE / "told.csv")
    same = ["row_id", "decision", "status"]
    pd.testing.assert_frame_equal(told[same], recorded[same], check_dtype=False)
    np.testing.assert_allclose(told["probability"], recorded["probability"], atol=1e-12)


def test_it_is_superseded_compared_and_taken_back(registry, tmp_path):
    history = DecisionHistory(f"sqlite:///{tmp_path}/h.db", "tiny")
    history.add_decisions(registry.decisions())
    old = registry.champion()
    model = replace(old.model, threshold=0.7)
    new = promote_or_keep(registry, history, model, old.facts | {"threshold": 0.7}, [], {})
    assert (new.champion_before, registry.pointer().version) == (VERSION, new.version)
    assert registry.champion().model.threshold == 0.7
    said = " ".join(difference(registry.load(VERSION), registry.champion()))
    assert "The probability asked for goes from 0.600 to 0.700." in said
    assert "turns by 0.0 degrees" in said
    assert roll_back(registry, history).champion_after == VERSION
    assert registry.champion().model.threshold == 0.6
    assert history.decisions()["outcome"].tolist() == ["promoted", "promoted", "rolled_back"]


@pytest.mark.slow
def test_a_retraining_starts_from_it(project):
    folder = project.path / "data" / "06_models" / "tiny"
    shutil.copytree(FIXTURE, folder)
    project.bring_batch("2026-08")
    done = project.retrain("--params=recourse.threshold=0.6")
    assert done.returncode in (0, 3), done.stderr
    assert "stored without its people" in " ".join(done.stderr.split())
    decision = json.loads((project.path / "data/08_reporting/tiny/decision.json").read_text())
    assert decision["champion_before"] == VERSION
    assert decision["outcome"] in ("promoted", "kept")
    listed = project.kedro("countermove", "history", "--env=test")
    assert VERSION in listed.stdout


def compared(decision):
    """Return what must not depend on the release: all but names, times and sentences."""
    if isinstance(decision, dict):
        left_out = {"version", "at", "seal", "words", "reason", "reasons"}
        return {key: compared(value) for key, value in decision.items() if key not in left_out}
    if isinstance(decision, float):
        return round(decision, 9)
    return [compared(value) for value in decision] if isinstance(decision, list) else decision


def of_the_champion(decision):
    """Leave out what is about the challenger: it is trained to the optimum now, another rule."""
    if isinstance(decision, dict):
        return {k: of_the_champion(v) for k, v in decision.items() if k not in ABOUT_CHALLENGERS}
    return [of_the_champion(v) for v in decision] if isinstance(decision, list) else decision


ABOUT_CHALLENGERS = {"challenger", "forecast", "gates"}


@pytest.mark.slow
def test_the_next_retraining_decides_what_the_old_release_decided(project):
    """Same batches, registry and policy: the same outcome, gates, champion's figures and drift."""
    shutil.copytree(RETRAINED / "models", project.path / "data" / "06_models" / "tiny")
    for batch in ("2026-08", "2026-09"):
        shutil.copy(RETRAINED / "batches" / f"{batch}.csv", project.batches)
    done = project.retrain("--params=retrain.policy.kind=first_holdout")
    expected = json.loads((RETRAINED / "decided.json").read_text())
    assert done.returncode == {"promoted": 0, "kept": 3}[expected["outcome"]], done.stderr
    decisions = project.path / "data" / "06_models" / "tiny" / "decisions"
    found = json.loads(max(decisions.glob("*.json")).read_text())
    # What has been added since: days, dates, the policy, rows set aside, corrections, what was
    # scored, a gate about open advice.
    assert [batch.pop("corrected") for batch in found["facts"]["batches"].values()] == [{}, {}]
    assert found["facts"].pop("scored")["challengers"] == []
    assert [batch.pop("day") for batch in found["facts"]["batches"].values()] == [
        20_666.0,
        20_697.0,
    ]
    dates = [batch.pop("date") for batch in found["facts"]["batches"].values()]
    assert dates == ["2026-08-01", "2026-09-01"]
    assert found["facts"].pop("policy")["kind"] == "first_holdout"
    assert [batch.pop("set_aside") for batch in found["facts"]["batches"].values()] == [0, 0]
    assert found["facts"]["judgement"].pop("open_advice") == {"open": 0, "judged": 0, "broken": 0}
    assert found["facts"]["gates"].pop()["passed"] is None
    gates = [[(gate["name"], gate["passed"]) for gate in one["facts"]["gates"]]
             for one in (found, expected)]  # fmt: skip
    assert gates[0] == gates[1]
    assert of_the_champion(compared(found)) == of_the_champion(compared(expected))
