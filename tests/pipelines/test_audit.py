"""`kedro run --pipeline=audit` on somebody else's model, as its owner would run it."""

from __future__ import annotations

import json

import lightgbm
import numpy as np
import pandas as pd
import pytest

from countermove.data.schema import LABEL

from ..conftest import copy_project

COLUMNS = ["income", "savings", "open_loans", "years_at_job", "owns_home", "education"]
LEVELS = {"school": 0, "college": 1, "university": 2}
REPORTS, NUMBERS = "data/08_reporting/tiny/audit", "data/07_model_output/tiny/audit"


def matrix(typed: pd.DataFrame) -> pd.DataFrame:
    coded = typed.assign(education=typed["education"].astype(str).map(LEVELS))
    return coded[COLUMNS].astype(float)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return copy_project(tmp_path_factory.mktemp("audited"))


@pytest.fixture(scope="module")
def audited(project):
    """The files of an audit, the audited model, and the run."""
    path = project.path
    done = project.run("--pipeline=ingest", "--env=test")
    assert done.returncode == 0, done.stderr
    train = pd.read_parquet(path / "data/03_primary/tiny/train.parquet")
    model = lightgbm.LGBMClassifier(n_estimators=15, num_leaves=6, min_child_samples=5, verbose=-1)
    model.fit(matrix(train), train[LABEL] > 0)
    model.booster_.save_model(path / "model.txt")
    done = project.run("--pipeline=audit", "--env=test", "--params", "audit.model=model.txt")
    assert done.returncode == 0, done.stderr
    return path, model, done


def told(path, name):
    return json.loads((path / REPORTS / f"{name}.json").read_text())


@pytest.mark.slow
def test_it_measures_the_model_itself(audited):
    path, model, _ = audited
    test = pd.read_parquet(path / "data/03_primary/tiny/test.parquet")
    right = (model.predict(matrix(test)) == (test[LABEL] > 0)).mean()
    metrics = told(path, "metrics")
    assert metrics["accuracy"]["nobody_moves"]["blind"] == pytest.approx(right)
    assert metrics["adopted"]["file"] == "model.txt"
    assert metrics["adopted"]["read_as"] == "trees"
    decided = pd.read_parquet(path / NUMBERS / "decisions.parquet").set_index("row_id")
    chance = pd.Series(model.predict_proba(matrix(test))[:, 1], test["row_id"])
    np.testing.assert_allclose(decided["probability"].loc[chance.index], chance, rtol=0, atol=1e-6)


@pytest.mark.slow
def test_advice_is_approved_by_the_model_itself(audited):
    path, model, _ = audited
    threshold = told(path, "metrics")["threshold"]
    test = pd.read_parquet(path / "data/03_primary/tiny/test.parquet").set_index("row_id")
    advice = pd.read_parquet(path / NUMBERS / "advice.parquet").set_index("row_id")
    found = advice[advice["status"] == "FOUND"]
    assert len(found)
    moved = matrix(test.loc[found.index])
    for column in set(COLUMNS) - {"years_at_job"}:
        moved[column] += found[f"change:{column}"].astype(float)
    assert (model.predict_proba(moved)[:, 1] >= threshold - 1e-9).all()
    assert "change:years_at_job" not in advice  # nobody can change it
    assert found["words"].str.len().gt(0).all()


@pytest.mark.slow
def test_it_says_what_another_threshold_and_training_would_bring(audited):
    path, *_ = audited
    rules = told(path, "comparison")["rules"]
    assert list(rules) == ["as it is", "best threshold after response", "strategic training"]
    for rule in rules.values():
        assert rule["gain"]["low"] <= rule["gain"]["value"] <= rule["gain"]["high"]
        gained = rule["after_response"] - rules["as it is"]["after_response"]
        assert rule["gain"]["value"] == pytest.approx(gained)


@pytest.mark.slow
def test_its_page_is_about_one_model_and_leaves_the_chain_alone(audited):
    path, _, done = audited
    page = (path / REPORTS / "report.html").read_text()
    assert "model at the promised threshold" in page
    assert "strategic rule" not in page
    assert "blind rule" not in page
    assert "model at the promised threshold" in done.stderr
    assert not (path / "data/08_reporting/tiny/metrics.json").exists()
    assert not (path / "data/06_models/tiny").exists()


@pytest.mark.slow
def test_bad_models_end_in_one_sentence_and_leave_nothing(audited, project):
    path, *_ = audited
    before = (path / REPORTS / "metrics.json").read_bytes()
    (path / "pickled.pkl").write_bytes(b"\x80\x04.")
    named = (path / "model.txt").read_text()
    (path / "renamed.txt").write_text(named.replace("income", "pay"))
    (path / "three.txt").write_text(named.replace("num_class=1", "num_class=3"))
    (path / "number.txt").write_text(named.replace("objective=binary", "objective=regression"))
    for given, words in {
        "": "which model?",
        "audit.model=absent.txt": "there is no model file absent.txt",
        "audit.model=pickled.pkl": "is a pickle",
        "audit.model=renamed.txt": "it lacks 'pay'. Name the model's columns",
        "audit.model=three.txt": "tells 3 classes apart",
        "audit.model=number.txt": "gives no probability of a class",
        "audit.model=model.txt,audit.favourable=0": "wrong way round",
    }.items():
        said = ["--params", given] if given else []
        done = project.run("--pipeline=audit", "--env=test", *said)
        assert done.returncode != 0
        assert words in done.stderr
    assert (path / REPORTS / "metrics.json").read_bytes() == before
