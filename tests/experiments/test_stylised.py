"""The pictures of Figure 3: every rule is there, and the pipeline leaves its files."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from tests.conftest import set_experiment

from countermove.errors import UnknownNameError
from countermove.experiments import Sources
from countermove.experiments.serm.stylised import Stylised

TRAINED = {"naive", "oracle", "serm"}
RULES = {"benchmark"} | TRAINED | {f"{rule}, settled" for rule in TRAINED}


@pytest.mark.slow
def test_the_pipeline_leaves_table_picture_and_page(project):
    set_experiment(project, kind="stylised", picture="unknown", repetitions=1, rows=100)
    outcome = project.run("--pipeline=paper", "--env=test")
    assert outcome.returncode == 0, outcome.stderr
    folder = project.path / "data" / "08_reporting" / "stylised"
    cells = pd.read_csv(folder / "cells.csv")
    assert set(cells["rule"]) == RULES
    assert set(cells["people"]) == {"published", "smooth", "best"}
    picture = json.loads((folder / "picture.json").read_text())
    assert set(picture["rules"]) == TRAINED
    assert "<html" in (folder / "figure.html").read_text()
    means = pd.read_csv(folder / "means.csv")
    assert len(means) == len(cells.groupby(["people", "rule"]))


def test_an_unknown_experiment_is_refused():
    with pytest.raises(UnknownNameError, match="manifold"):
        Stylised("manifolds")


@pytest.mark.slow
@pytest.mark.parametrize("experiment", ["flexible", "manifold"])
def test_the_other_pictures_are_drawn_with_what_they_are_about(experiment):
    made = Stylised(experiment, repetitions=1, rows=150)
    found = made.measure(Sources(tables=None), seed=0)
    figure = made.figure(found, found.cells, "t")
    assert len(figure.layout.annotations) > 0
    assert found.cells["accuracy"].between(0.0, 1.0).all()
    drawn = {trace.name for trace in figure.data}
    assert {"favourable", "unfavourable", "strategic", "naive"} <= drawn


def test_every_rule_is_measured_for_every_kind_of_people():
    made = Stylised("unknown", repetitions=1, rows=60)
    found = made.measure(Sources(tables=None), seed=0)
    assert set(found.cells["rule"]) == RULES
    assert set(found.cells["people"]) == {"published", "smooth", "best"}
    figure = made.figure(found, found.cells, "t")
    rings = [trace.name for trace in figure.data if "reach" in trace.name]
    assert len(rings) == 4
