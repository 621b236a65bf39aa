"""Somebody else's model in production: adopted as the champion, challenged, scored with."""

from __future__ import annotations

import json

import lightgbm
import numpy as np
import pandas as pd
import pytest

from countermove import adopt, save
from countermove.data.schema import LABEL
from countermove.data.synthetic import fabricate

from ..conftest import copy_project
from .test_audit import COLUMNS, matrix

TINY = "data/06_models/tiny"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project whose team has a boosted model of its own, and no champion yet."""
    project = copy_project(tmp_path_factory.mktemp("adopted"))
    done = project.run("--pipeline=ingest", "--env=test")
    assert done.returncode == 0, done.stderr
    return project


@pytest.fixture(scope="module")
def model(project):
    train = pd.read_parquet(project.path / "data/03_primary/tiny/train.parquet")
    model = lightgbm.LGBMClassifier(n_estimators=15, num_leaves=6, min_child_samples=5, verbose=-1)
    model.fit(matrix(train), train[LABEL] > 0)
    model.booster_.save_model(project.path / "model.txt")
    save(adopt(model, matrix(train)), project.path / "saved")
    return model


def adopted(project, *params):
    given = ",".join(params)
    return project.run("--pipeline=adopt", "--env=test", "--params", given)


def decision(project):
    return json.loads((project.path / "data/08_reporting/tiny/decision.json").read_text())


def champion(project):
    return json.loads((project.path / TINY / "champion.json").read_text())["version"]


@pytest.fixture(scope="module")
def deployed(project, model):
    """The model as the champion of a registry that was empty."""
    done = adopted(project, "audit.model=model.txt", "audit.threshold=0.6")
    assert done.returncode == 0, done.stderr
    return decision(project)


@pytest.mark.slow
def test_the_first_champion_is_taken_as_it_stands(project, deployed):
    assert (deployed["kind"], deployed["outcome"]) == ("adoption", "promoted")
    assert deployed["champion_before"] is None
    assert champion(project) == deployed["version"]
    stored = json.loads(
        (project.path / TINY / "versions" / deployed["version"] / "version.json").read_text()
    )
    assert stored["threshold"] == 0.6
    assert stored["certificate"]["value"] is not None
    assert "threshold of 0.6" in stored["certificate"]["words"]
    listed = project.kedro("countermove", "history", "--env=test")
    assert f"* {deployed['version']}  adoption    promoted" in listed.stdout


@pytest.mark.slow
def test_applicants_are_scored_by_the_model_itself(project, deployed, model):
    people = fabricate("tiny", 40, seed=9).drop(columns="repaid")
    folder = project.path / "data/01_raw/applicants/tiny"
    folder.mkdir(parents=True)
    people.to_csv(folder / "january.csv", index=False)
    done = project.run("--pipeline=score", "--env=test", "--params", "score.batch=january")
    assert done.returncode == 0, done.stderr
    folder = project.path / "data/07_model_output/tiny/scored/january"
    scored = pd.read_parquet(folder / "part-00000.parquet").set_index("row_id")
    read = people.set_index("person").loc[scored.index]
    chance = model.predict_proba(matrix(read))[:, 1]
    np.testing.assert_allclose(scored["probability"], chance, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(scored["decision"] > 0, chance >= 0.6)
    found = scored["status"] == "FOUND"
    assert found.any()
    moved = matrix(read)[found]
    for column in set(COLUMNS) - {"years_at_job"}:
        moved[column] += scored.loc[found, f"change:{column}"].astype(float)
    assert (model.predict_proba(moved)[:, 1] >= 0.6 - 1e-9).all()
    assert scored.loc[found, "words"].str.len().gt(0).all()


@pytest.mark.slow
def test_challengers_are_compared_with_it_and_rollback_returns_to_it(project, deployed):
    done = project.retrain()  # no batch: nothing was ever trained
    assert done.returncode in (0, 3), done.stderr
    first = decision(project)
    assert first["champion_before"] == deployed["version"]
    assert {"challenger", "champion"} == set(first["facts"]["judgement"]["accuracy"])
    assert "no new batch" in project.retrain().stderr  # now something was
    project.bring_batch("2026-01", rows=60)
    names = (
        "improvement", "flip_rate", "recourse_certificate", "group_disparity", "open_advice",
        "minimum_accuracy", "transfer_bound",
    )  # fmt: skip
    done = project.retrain("--params", ",".join(f"retrain.gates.{name}=null" for name in names))
    assert done.returncode == 0, done.stderr
    second = decision(project)
    assert second["facts"]["batches"]["2026-01"]["rule"] == first["champion_after"]
    said = project.kedro(
        "countermove", "diff", deployed["version"], second["version"], "--env=test"
    )
    assert "before: adopted from the LightGBM text file model.txt" in said.stdout, said.stderr
    back = project.kedro("countermove", "rollback", deployed["version"], "--env=test")
    assert back.returncode == 0, back.stderr
    assert champion(project) == deployed["version"]


@pytest.mark.slow
def test_with_a_champion_it_is_a_challenger_like_any_other(project, deployed):
    before = champion(project)
    done = adopted(project, "audit.model=saved")
    assert done.returncode == 3, done.stderr
    again = decision(project)
    assert (again["kind"], again["outcome"]) == ("adoption", "kept")
    assert any(reason.startswith("improvement") for reason in again["reasons"])
    assert champion(project) == before


@pytest.mark.slow
def test_what_cannot_be_adopted_leaves_the_champion(project, deployed):
    before = champion(project)
    for given, words in {
        "audit.model=absent.txt": "there is no model file absent.txt",
        "audit.model=model.txt,audit.favourable=0": "wrong way round",
        "audit.model=saved,audit.favourable=0": "leave audit.columns and audit.favourable empty",
        "audit.model=model.txt,serm.response.kind=smooth": "set serm.response.kind=best",
    }.items():
        done = adopted(project, given)
        assert done.returncode == 1
        assert words in done.stderr
    assert champion(project) == before
