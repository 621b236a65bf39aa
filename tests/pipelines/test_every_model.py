"""Each kind of model people have, from `adopt` to advice, a promise and the report."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import lightgbm
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from countermove import adopt, load, save
from countermove.data.schema import LABEL
from countermove.data.synthetic import fabricate
from countermove.people import ActionSet
from countermove.recourse import calibrate_pare, recommend

from ..conftest import copy_project
from .test_audit import NUMBERS, REPORTS, matrix

STORED = Path(__file__).parents[1] / "scores" / "adopted" / "files"
FILES = {
    "lightgbm": "model.txt",
    "xgboost": "tiny_xgboost.json",
    "histograms": "histograms",
    "forest": "forest",
    "logistic pipeline": "logistic",
}


def write(kind, folder, rows, y):
    """Write the model's file as its library does, and what others are by `save`."""
    path = folder / FILES[kind]
    if kind == "xgboost":  # fitted on other people of the same columns
        shutil.copy(STORED / path.name, path)
        return
    if kind == "lightgbm":
        made = lightgbm.LGBMClassifier(n_estimators=15, num_leaves=6, verbose=-1).fit(rows, y)
        made.booster_.save_model(path)
        return
    model = {
        "histograms": HistGradientBoostingClassifier(max_iter=12, max_leaf_nodes=6, random_state=0),
        "logistic pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
        "forest": RandomForestClassifier(12, max_depth=4, random_state=0),
    }[kind]
    save(adopt(model.fit(rows, y), rows), path)


def people(n, seed):
    table = fabricate("tiny", n, seed=seed)
    return matrix(table), (table["repaid"] == "yes").to_numpy().astype(int)


@pytest.mark.parametrize("kind", list(FILES))
def test_a_models_file_gives_advice_and_a_promise(kind, tmp_path):
    rows, y = people(300, 1)
    write(kind, tmp_path, rows, y)
    path = tmp_path / FILES[kind]
    model = load(path) if path.is_dir() else adopt(path, rows)
    assert model.exactness == ("affine" if kind == "logistic pipeline" else "trees")
    moves = ActionSet(
        **model.allowed(
            immutable=["years_at_job"],
            only_increase=["income", "owns_home", "education"],
            only_decrease=["open_loans"],
            integer=["open_loans", "owns_home", "education"],
            bounds={"open_loans": (0, 6), "owns_home": (0, 1), "education": (0, 2)},
        )
    )
    fresh = people(60, 2)[0]
    advice = recommend(model, fresh, actions=moves)
    found = advice.status == "FOUND"
    assert found.sum() > 5
    assert advice.proven_cheapest[found].all()
    moved = advice.x_new(fresh.to_numpy())[found]
    assert (model.predict_proba(moved)[:, 1] >= 0.5 - 1e-9).all()
    promise = calibrate_pare(model, people(120, 3)[0], actions=moves, miss_rate=0.1)
    assert 0.0 < promise.threshold < 1.0
    assert promise.certificate.value == 0.1


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    project = copy_project(tmp_path_factory.mktemp("every_model"))
    done = project.run("--pipeline=ingest", "--env=test")
    assert done.returncode == 0, done.stderr
    return project


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in FILES if kind != "lightgbm"])
def test_and_a_report_by_the_command(kind, project):
    train = pd.read_parquet(project.path / "data/03_primary/tiny/train.parquet")
    write(kind, project.path, matrix(train), (train[LABEL] > 0).to_numpy().astype(int))
    done = project.run("--pipeline=audit", "--env=test", "--params", f"audit.model={FILES[kind]}")
    assert done.returncode == 0, done.stderr
    reports = project.path / REPORTS
    metrics = json.loads((reports / "metrics.json").read_text())
    assert metrics["adopted"]["file"] == FILES[kind]
    assert metrics["adopted"]["read_as"] == ("affine" if kind == "logistic pipeline" else "trees")
    page = (reports / "report.html").read_text()
    assert "model at the promised threshold" in page
    advice = pd.read_parquet(project.path / NUMBERS / "advice.parquet")
    assert (advice["status"] == "FOUND").any()
    assert json.loads((reports / "certificates.json").read_text())
