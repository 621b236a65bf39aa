"""Experiments on recourse together: parameters, people, curves, pictures, pages, the pipeline."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from pydantic import ValidationError

from countermove.data.cleaning import clean
from countermove.data.schema import load_schema
from countermove.data.sources import read_raw
from countermove.errors import NotEnoughRowsError, ParameterError, UnknownNameError
from countermove.experiments import Measured
from countermove.experiments.collective.figures import centroids_figure
from countermove.experiments.collective.people import CLASS, SubjectPreparation, random_participants
from countermove.experiments.collective.recourse import Answers
from countermove.params import CollectiveParameters

ROOT = Path(__file__).parents[2]
SCHEMAS = ROOT / "conf" / "base" / "schemas"
PAPER = sorted((ROOT / "conf" / "paper").glob("collective_*.yml"))
SMALL = {
    "dataset": "iris",
    "label": "species",
    "features": ["sepal_length", "sepal_width"],
    "subjects": 30,
    "query": {"goal": "setosa", "start": "versicolor"},
    "budgets": [0.0, 0.2, 0.4],
    "absolute": True,
    "budget_of_answers": 2,
    "participation": [0.5, 1.0],
    "draws": 2,
    "retrainings": 5,
}


def tables(name):
    schema = load_schema(name, SCHEMAS)
    return clean(read_raw(name, Path("nowhere"), schema), schema), schema


def said(**changes) -> CollectiveParameters:
    return CollectiveParameters.model_validate(SMALL | changes)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"learner": {"kind": "logistic", "penalty": 0.1}, "label": None,
         "query": {"goal": "1", "start": "-1"}, "budgets": [0.0, 0.1], "norm": "inf"},
    ],
    ids=["centroid", "logistic"],
)  # fmt: skip
def test_from_a_table_to_a_page(changes, tmp_path):
    parameters = said(**changes)
    people = parameters.prepare().people(tables, 0)
    assert len(people) == 30
    experiment = parameters.build()
    measured = experiment.measure(people, 0)
    curves, picture = measured.cells, measured.beside.picture
    picture.to_csv(tmp_path / "picture.csv", index=False)
    picture = pd.read_csv(tmp_path / "picture.csv", dtype={CLASS: str})  # as the next node has it
    facts = json.loads(json.dumps(measured.beside.facts, allow_nan=False))
    assert (curves["collective_loss"] <= curves["individual_loss"] + 1e-9).all()
    assert facts["least_budget"]["collective"] <= facts["least_budget"]["individual"] * 1.002
    assert facts["audit"]["certificate"]["level"] == 0.95
    moving = centroids_figure(picture, facts)
    assert len(moving.frames) == len(moving.layout.sliders[0].steps) == len(curves)
    found = Measured(curves, Answers(facts, picture))
    page = experiment.page(found, curves, experiment.figure(found, curves, ""))
    assert "Recourse together" in page
    assert "the platform&#39;s audit" in page


def test_the_picture_moves_the_means_and_not_the_query():
    people = said().prepare().people(tables, 0)
    picture = said().build().measure(people, 0).beside.picture
    query = picture[picture["who"] == "query"]
    assert query[["x", "y"]].nunique().tolist() == [1, 1]
    means = picture[(picture["who"] == "centroid") & (picture[CLASS] == "setosa")]
    away = np.hypot(means["x"] - query["x"].iloc[0], means["y"] - query["y"].iloc[0])
    assert np.diff(away) == pytest.approx([-0.2, -0.2])


def test_subjects_are_drawn_evenly_and_repeatably():
    one, other = (said(subjects=20).prepare().people(tables, 3) for _ in range(2))
    pd.testing.assert_frame_equal(one, other)
    assert sorted(one[CLASS].value_counts()) == [6, 7, 7]


def test_codes_stand_for_features():
    codes = {"dimension": 2, "hidden": [4], "epochs": 1}
    people = said(features=None, codes=codes).prepare().people(tables, 0)
    assert list(people.columns) == ["code_0", "code_1", CLASS]


def test_standardised_features():
    people = said(standardise=True, subjects=None).prepare().people(tables, 0)
    assert np.allclose(people.drop(columns=CLASS).mean(), 0.0, atol=1e-9)


@pytest.mark.parametrize(
    ("preparation", "says"),
    [
        (SubjectPreparation("iris", "colour"), "no column 'colour'"),
        (SubjectPreparation("iris", "species", ["petal"]), "no feature 'petal'; did you mean"),
    ],
)
def test_names_that_are_not_there(preparation, says):
    with pytest.raises(UnknownNameError, match=says):
        preparation.people(tables, 0)


def test_what_cannot_be_asked():
    people = said().prepare().people(tables, 0)
    with pytest.raises(UnknownNameError, match="did you mean 'setosa'"):
        said(query={"goal": "setoza", "start": "virginica"}).build().cells(people, 0)
    with pytest.raises(ParameterError, match="distinguishes two classes"):
        said(learner={"kind": "logistic"}).build().cells(people, 0)
    with pytest.raises(NotEnoughRowsError, match="1000 people were asked for"):
        said(subjects=1000).prepare().people(tables, 0)


@pytest.mark.parametrize(
    "changes",
    [
        {"budgets": [0.0, -1.0]},
        {"budgets": [0.0]},
        {"norm": 3},
        {"participation": [0.0]},
        {"learner": {"kind": "forest"}},
        {"query": {"share": 1.0}},
        {"name": "../elsewhere"},
        {"budgetz": [1.0]},
    ],
)
def test_nonsense_is_refused_before_anything_runs(changes):
    with pytest.raises(ValidationError):
        said(**changes)


def test_numbers_of_a_command_line_are_names_and_norms():
    parameters = said(query={"goal": 1, "start": 2}, norm=float("inf"))
    assert (parameters.query.goal, parameters.query.start) == ("1", "2")
    assert parameters.build().norm == np.inf


@pytest.mark.parametrize("path", PAPER, ids=lambda path: path.stem)
def test_configurations_of_the_paper_are_what_they_are_called(path):
    run = yaml.safe_load(path.read_text())["run"]
    assert run["pipelines"] == "collective"
    parameters = CollectiveParameters.model_validate(run["params"]["collective"])
    assert parameters.name == path.stem
    parameters.build()


def test_every_figure_of_the_paper_has_a_configuration():
    assert {path.stem for path in PAPER} == {
        "collective_digits",
        "collective_figure_1",
        "collective_figure_2_iris",
        "collective_figure_2_mnist",
    }


@pytest.mark.slow
def test_the_pipeline_runs_as_a_user_runs_it(project):
    outcome = project.run("--pipeline=collective", "--env=test")
    assert outcome.returncode == 0, outcome.stderr
    folder = project.path / "data" / "08_reporting" / "tiny"
    assert {path.name for path in folder.iterdir()} == {
        "collective.json",
        "collective_curves.csv",
        "collective_picture.csv",
        "collective_losses.json",
        "collective_centroids.json",
        "collective.html",
    }
    facts = json.loads((folder / "collective.json").read_text())
    assert facts["people"] == 200
    assert set(facts["classes"]) == {"favourable", "unfavourable"}
    page = (folder / "collective.html").read_text()
    assert "a rule of tiny is not known yet" in page
    elsewhere = project.run("--config", "conf/paper/collective_figure_1.yml")
    assert elsewhere.returncode == 0, elsewhere.stderr
    stated = project.path / "data" / "08_reporting" / "collective_figure_1" / "collective.json"
    assert json.loads(stated.read_text())["people"] == 20


def test_participants_are_drawn_once_each():
    rng = np.random.default_rng(0)
    rows = random_participants(150, 0.3, rng)
    assert len(set(rows.tolist())) == len(rows) == 45
    with pytest.raises(NotEnoughRowsError, match="nobody"):
        random_participants(150, 0.001, rng)
