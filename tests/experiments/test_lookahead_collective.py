"""Experiments on collectives: every kind runs, sums up, is drawn; what they say holds small too."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from pydantic import ValidationError

from countermove.dynamics.crowd import Crowd
from countermove.errors import ParameterError
from countermove.experiments import Measured
from countermove.experiments.lookahead.columns import CoordinationExperiment, SizeExperiment
from countermove.experiments.lookahead.people import (
    LookaheadTable,
    lookahead_facts,
    moved_in_code,
    narrowed,
    with_constant,
)
from countermove.experiments.lookahead.published import contracted_wrongly, utility_and_slope
from countermove.experiments.lookahead.scaling import ScalingExperiment, crossing
from countermove.params import LookaheadParameters

ROOT = Path(__file__).parents[2]
PAPER = sorted((ROOT / "conf" / "paper").glob("lookahead_figure_[234]*.yml"))
NAMES = ("unused", "income", "age", "noise")
SMALL = {
    "figure_2": {"penalties": [0.1, 0.5], "max_steps": 8, "columns": ["income"]},
    "figure_3": {"participation": [0.6], "seeds": [0, 1], "max_steps": 8, "columns": ["income"]},
    "figure_4": {"participation": [0.2, 0.5, 0.9], "strengths": [0.5], "trials": 2},
}


@pytest.fixture(scope="module")
def people() -> LookaheadTable:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = (rng.random(200) < 1.0 / (1.0 + np.exp(-X @ [0.2, 1.0, -0.7, 0.4]))).astype(float)
    return LookaheadTable(Crowd(X, y), NAMES, ("income", "noise"))


def said(kind: str, **changes) -> LookaheadParameters:
    experiment = {"kind": kind, "dropped": ["unused"], **SMALL[kind], **changes}
    return LookaheadParameters.model_validate({"dataset": "town", "experiment": experiment})


@pytest.mark.parametrize("kind", SMALL)
@pytest.mark.parametrize("published", [False, True])
def test_every_kind_is_measured_summed_up_and_drawn(kind, published, people, tmp_path):
    experiment = said(kind, published=published).build()
    experiment.cells(people, 0).to_csv(tmp_path / "cells.csv", index=False)
    read = pd.read_csv(tmp_path / "cells.csv")  # as the next node meets it
    means = experiment.means(read)
    assert 0 < len(means) <= len(read)
    found = Measured(read)
    page = experiment.page(found, means, experiment.figure(found, means, "small_run"))
    assert "Small run" in page
    assert str(means.columns[0]) in page
    facts = lookahead_facts(people, means, said(kind).model_dump(mode="json"), 0)
    assert len(json.loads(json.dumps(facts, allow_nan=False))["results"]) == len(means)


@pytest.mark.parametrize("path", PAPER, ids=lambda path: path.stem)
def test_configurations_of_the_paper_are_what_they_are_called(path):
    run = yaml.safe_load(path.read_text())["run"]
    assert run["pipelines"] == "lookahead"
    parameters = LookaheadParameters.model_validate(run["params"]["lookahead"])
    assert parameters.name == path.stem
    parameters.build()


def test_there_is_no_benefit_against_the_learner_and_a_bounded_one_beyond(people):
    """Proposition 4 at penalty 0; above it the benefit stays below what no strategy attains."""
    cells = CoordinationExperiment(penalties=(0.0, 1.0), dropped=("unused",)).cells(people, 0)
    none, some = (part for _, part in cells.groupby("penalty"))
    assert np.allclose(none["benefit"], 0.0, atol=1e-8)
    assert (some["benefit"] > 0.0).all()
    assert (some["benefit"] < some["benefit_supremum"]).all()
    assert np.allclose(some["benefit_copy_100"], some["benefit_supremum"], rtol=1e-3)
    assert (some["alignment"] < 0.0).all()


def test_everybody_together_makes_a_column_useless(people):
    """Figure 3's limit: the loss without the column less the loss."""
    experiment = SizeExperiment(
        columns=("noise",), participation=(1.0,), dropped=("unused",), tolerance=1e-7, max_steps=200
    )
    cells = experiment.cells(people, 0)
    assert np.allclose(cells["gain"], cells["gain_of_all"], atol=1e-9)
    assert cells["settled"].all()


def test_small_collectives_gain_more(people):
    cells = SizeExperiment(
        columns=("income",), participation=(0.05, 0.9), seeds=(0, 1), dropped=("unused",)
    ).cells(people, 0)
    few, many = (part["gain"].mean() for _, part in cells.groupby("participation"))
    assert few > 2.0 * many > 0.0


def test_the_slope_of_a_fixed_strategy_is_right_at_every_size(people):
    """Proposition 7, corrected for members of one class."""
    experiment = ScalingExperiment(
        columns=("income", "noise"), strengths=(0.552,), participation=(0.1, 0.25, 0.6)
    )
    means = experiment.means(experiment.cells(people, 0))
    assert means["signs_right"].tolist() == [3]
    assert means["slope_error"].iloc[0] < 1e-4
    assert 0.25 < means["stops_paying_at"].iloc[0] < 0.6


def test_members_have_what_they_want_at_the_size_of_their_target(people):
    experiment = ScalingExperiment(columns=("income",), strengths=(0.552,), participation=(0.3,))
    cells = experiment.cells(people, 0)
    assert cells["utility"].iloc[0] == pytest.approx(0.0, abs=1e-15)


def test_where_growing_stops_paying():
    assert crossing([0.1, 0.3, 0.5], [-1.0, -0.5, 0.5]) == pytest.approx(0.4)
    assert np.isnan(crossing([0.1, 0.3], [1.0, 2.0]))


def test_names_stand_for_their_neighbours_in_the_published_code(people):
    narrow = narrowed(people, ("unused",))
    assert narrow.names == ("income", "age", "noise")
    assert narrow.changeable == ("income", "noise")
    assert [moved_in_code(name, people, narrow) for name in ("income", "age", "noise")] == [
        "age",
        "noise",
        "constant",
    ]
    assert (with_constant(narrow).crowd.X[:, -1] == 1.0).all()


def test_the_published_contraction_is_not_the_gradient(people):
    from countermove.dynamics.learners import LogisticLearner

    learner, crowd = LogisticLearner(intercept=False), people.crowd
    theta = learner.fit(crowd)
    v = learner.solve(theta, crowd, learner.gradient(theta, crowd) - 2.0 * theta)
    right, _ = learner.pull(theta, crowd, v)
    assert np.abs(contracted_wrongly(crowd, theta, 1.0) - right).max() > 0.1 * np.abs(right).max()


def test_the_unrolled_slope_agrees_with_differences(people):
    rows, step = np.arange(5), 1e-6
    _, slope = utility_and_slope(people.crowd, 1, rows)
    for member in rows:
        ends = []
        for sign in (1.0, -1.0):
            X = people.crowd.X.copy()
            X[member, 1] += sign * step
            ends.append(utility_and_slope(people.crowd.moved(X), 1, rows)[0])
        assert slope[member] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"kind": "figure_2", "penalties": [-0.1]}, "penalties"),
        ({"kind": "figure_2", "reach": 0}, "reach"),
        ({"kind": "figure_3", "participation": [1.2]}, "participation"),
        ({"kind": "figure_4", "participation": [0.0]}, "participation"),
    ],
)
def test_settings_that_make_no_sense_are_named(change, where):
    with pytest.raises(ValidationError, match=where):
        LookaheadParameters.model_validate({"dataset": "town", "experiment": change})


@pytest.mark.parametrize("experiment", [CoordinationExperiment, SizeExperiment, ScalingExperiment])
def test_columns_nobody_can_change_are_refused(experiment, people):
    with pytest.raises(ParameterError, match="the learner's constant"):
        experiment(columns=("constant",)).cells(people, 0)
    with pytest.raises(ParameterError, match="no column 'incom'; did you mean 'income'"):
        experiment(columns=("incom",)).cells(people, 0)


def test_experiments_that_make_no_sense():
    with pytest.raises(ParameterError, match="unbounded"):
        CoordinationExperiment(reach=0.0)
    with pytest.raises(ParameterError, match=r"in \(0, 1\]"):
        SizeExperiment(participation=(0.0,))
    with pytest.raises(ParameterError, match=r"in \(0, 1\]"):
        ScalingExperiment(participation=(1.5,))
