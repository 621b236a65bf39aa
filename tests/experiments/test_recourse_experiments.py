"""Experiments on recourse: disjoint parts, honest thresholds, every cell measured."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from tests.conftest import set_experiment

from countermove.data.cleaning import clean
from countermove.data.schema import load_schema
from countermove.data.sources import read_raw
from countermove.errors import NotEnoughRowsError, ParameterError
from countermove.experiments import Measured, Sources
from countermove.experiments.recourse.grid import (
    RecourseExperiment,
    TableCase,
    make_parts,
    paper_actions,
)
from countermove.experiments.recourse.thresholds import (
    Fixed,
    HighestF1,
    NearestPrecision,
    Promise,
    ThresholdRows,
)

SMALL = {"hidden": (8,), "max_epochs": 2, "patience": 2, "batch_size": 32, "learning_rate": 0.002}


@pytest.fixture(scope="module")
def tables(request, tmp_path_factory):
    schemas = request.config.rootpath / "conf" / "base" / "schemas"
    folder = tmp_path_factory.mktemp("raw")

    def table(name: str):
        schema = load_schema(name, schemas)
        return clean(read_raw(name, folder, schema), schema), schema

    return table


PLAN = RecourseExperiment(cases={})


def german(**changes) -> TableCase:
    said = {"train": 400, "selection": 200, "calibration": 200, "test": 150}
    return TableCase(**said | changes, actions={"credit_amount": "both", "age_years": "up"})


@pytest.fixture(scope="module")
def outcome(tables) -> Measured:
    causes = {"duration_months": {"causes": ["credit_amount"]}}
    experiment = RecourseExperiment(
        cases={"german-recourse": german(group="sex", reference="male", causal=causes)},
        splits=(0, 1),
        weights=(0.8,),
        rules=(HighestF1(), Promise(), Fixed(0.9)),
        methods=("linear_program", "gradient", "causal", "exhaustive"),
        audited="gradient",
        margins=(0.05,),
        examples=2,
        training=SMALL,
    )
    return experiment.measure(Sources(tables), 0)


@pytest.fixture(scope="module")
def cells(outcome) -> pd.DataFrame:
    return outcome.cells


def test_one_row_per_split_and_rule(cells):
    found = list(cells[["split", "rule"]].itertuples(index=False, name=None))
    rules = ["highest_f1", "promise_0.05_0.05", "fixed_0.9"]
    assert found == [(split, rule) for split in (0, 1) for rule in rules]


def test_recourse_all_counts_the_approved(cells):
    for method in ("linear_program", "gradient", "causal", "exhaustive"):
        refused = cells["refused"] / cells["n"]
        neg = cells[f"recourse_neg_{method}"].fillna(0.0)
        assert np.allclose(cells[f"recourse_all_{method}"], 1.0 - refused * (1.0 - neg))


def test_a_rule_that_refuses_many_is_audited(cells):
    strict = cells[cells["rule"] == "fixed_0.9"]
    assert strict["refused"].gt(0).all()
    assert strict["robust_decisions_gaussian"].between(0.0, 1.0).all()
    assert np.allclose(
        strict["disparity_gradient"],
        strict["recourse_all_gradient_reference"] - strict["recourse_all_gradient_others"],
    )


def test_a_margin_and_the_furthest_action_cost_more_than_the_cheapest(cells):
    some = cells.dropna(subset=["cost_gradient"])
    assert len(some)
    ways = ("gradient", "margin_0.05", "furthest")
    cheapest, margin, furthest = (some[f"cost_{way}"] for way in ways)
    assert (cheapest <= margin + 1e-12).all()
    assert (margin < furthest).all()
    assert (some["robust_actions_gradient"] <= some["robust_actions_furthest"]).all()


def test_examples_are_in_original_units(outcome, tables):
    examples = outcome.beside
    assert examples.groupby(["split", "rule"])["person"].nunique().max() == 2
    assert set(examples["feature"]) <= {"credit_amount", "age_years"}
    assert np.allclose(examples["after"] - examples["before"], examples["change"])
    typed, _ = tables("german-recourse")
    for feature, part in examples.groupby("feature"):
        assert part["before"].round().astype(int).isin(typed[feature].astype(int)).all()
    assert (examples["change"][examples["feature"] == "age_years"] > 0.0).all()


def test_the_page_holds_means_and_examples(outcome):
    means = PLAN.means(outcome.cells)
    figure = replace(PLAN, axis="recourse_weight").figure(
        Measured(outcome.cells), outcome.cells, "a <title>"
    )
    page = PLAN.page(outcome, means, figure)
    assert "a &lt;title&gt;" in page
    assert "recourse neg linear program" in page
    assert "Examples of advice" in page
    none = Measured(outcome.cells, outcome.beside.iloc[:0])
    assert "Examples of advice" not in PLAN.page(none, means, figure)


def test_means_are_over_splits(cells):
    means = PLAN.means(cells)
    assert means["splits"].tolist() == [2, 2, 2]
    first = cells[cells["rule"] == "highest_f1"]["f1"].mean()
    assert means.loc[means["rule"] == "highest_f1", "f1"].item() == pytest.approx(first)


def test_every_line_is_drawn_by_itself_with_its_errors(cells):
    both = pd.concat([cells, cells.assign(recourse_weight=0.0, f1=cells["f1"] / 2)])
    rules = replace(PLAN, axis="recourse_weight").figure(Measured(both), both, "t")
    assert len(rules.data) == 3 * 6
    # Against the threshold rules are points: the lines are the two weights.
    curves = replace(PLAN, axis="threshold").figure(Measured(both), both, "t")
    assert len(curves.data) == 2 * 6
    f1 = [trace for trace in curves.data if trace.name.startswith("F1")]
    assert [trace.name for trace in f1] == ["F1, λ = 0.8", "F1, λ = 0.0"]
    assert np.allclose(np.array(f1[0].y), 2.0 * np.array(f1[1].y))
    fixed = cells[cells["rule"] == "fixed_0.9"]["f1"]
    assert f1[0].y[-1] == pytest.approx(fixed.mean())
    assert f1[0].error_y.array[-1] == pytest.approx(fixed.sem())


def test_the_same_experiment_gives_the_same_cells(tables, cells):
    again = RecourseExperiment(
        cases={"german-recourse": german()}, splits=(1,), weights=(0.8,), training=SMALL
    )
    found = again.cells(Sources(tables), 0)
    before = cells[(cells["split"] == 1) & (cells["rule"] == "highest_f1")]
    assert found["f1"].item() == before["f1"].item()
    assert found["threshold"].item() == before["threshold"].item()


def test_the_parts_are_disjoint_and_as_large_as_said(tables):
    typed, schema = tables("german-recourse")
    marked = typed.assign(credit_amount=np.arange(len(typed)), duration_months=1 + typed.index % 9)
    parts = make_parts(german(train=300), (marked, schema), seed=0)
    column = schema.feature_names.index("credit_amount")
    rows = [
        np.round(parts.standardiser.inverse(part.X)[:, column]).astype(int)
        for part in (parts.train, parts.selection, parts.calibration, parts.test)
    ]
    assert [len(part) for part in rows] == [300, 200, 200, 150]
    assert len(np.unique(np.concatenate(rows))) == 850
    assert np.abs(parts.train.X.mean(axis=0)).max() < 1e-12


def test_the_paper_box_moves_the_named_features_only():
    actions = paper_actions({"a": "up", "c": "both", "d": "down"}, 0.75, ("a", "b", "c", "d"))
    assert actions.lower.tolist() == [0.0, 0.0, -0.75, -0.75]
    assert actions.upper.tolist() == [0.75, 0.0, 0.75, 0.0]
    with pytest.raises(ParameterError, match="no feature 'ages'"):
        paper_actions({"ages": "up"}, 0.75, ("age",))


def test_parts_larger_than_the_table_are_refused(tables):
    with pytest.raises(NotEnoughRowsError, match="1,550 rows of 1,000"):
        make_parts(german(train=1000), tables("german-recourse"), seed=0)


def test_no_table_at_all_is_an_error(tables):
    adult = TableCase(10, 10, 10, 10, actions={"age": "up"})
    experiment = RecourseExperiment(cases={"adult": adult}, skip_missing=True)
    with pytest.raises(ParameterError, match="none of the tables"):
        experiment.measure(Sources(tables), 0)


def seen() -> ThresholdRows:
    draws = np.random.default_rng(0)
    favourable = draws.random(400) < 0.4
    scores = draws.normal(np.where(favourable, 1.0, -1.0), 1.0)
    return ThresholdRows(scores, favourable, draws.normal(0.0, 1.0, 400))


def f1_at(cut: float, people: ThresholdRows) -> float:
    approved = people.scores >= cut
    hits = (approved & people.favourable).sum()
    return 2.0 * hits / (approved.sum() + people.favourable.sum())


def test_a_promise_is_kept_at_the_best_allowed_threshold():
    people = seen()
    chosen = Promise(0.05, 0.05).threshold(people)
    # 12 of 400: the largest count whose binomial tail is within .05 at a miss rate of .05.
    bound = np.sort(people.reach)[12]
    assert chosen <= expit(bound)
    grid = np.append(people.scores[people.scores <= bound], bound)
    best = max(f1_at(cut, people) for cut in grid)
    assert f1_at(np.log(chosen / (1.0 - chosen)) - 1e-9, people) == pytest.approx(best, abs=1e-3)


def test_more_may_be_missed_more_is_refused():
    assert Promise(0.25, 0.25).threshold(seen()) > Promise(0.05, 0.05).threshold(seen())


def test_precision_is_met_as_nearly_as_people_allow():
    people = seen()
    chosen = NearestPrecision(0.65).threshold(people)
    approved = expit(people.scores) >= chosen
    assert people.favourable[approved].mean() == pytest.approx(0.65, abs=0.01)


@pytest.mark.slow
def test_the_pipeline_leaves_cells_means_figure_and_page(project):
    sizes = {"train": 100, "selection": 40, "calibration": 60, "test": 40}
    set_experiment(
        project,
        kind="recourse",
        cases={"tiny": sizes | {"actions": {"income": "up"}}},
        splits=[0],
        rules=[{"kind": "highest_f1"}, {"kind": "promise"}],
        training={"hidden": [8], "max_epochs": 2, "batch_size": 32},
    )
    outcome = project.run("--pipeline=paper", "--env=test")
    assert outcome.returncode == 0, outcome.stderr
    folder = project.path / "data" / "08_reporting" / "recourse"
    assert set(pd.read_csv(folder / "cells.csv")["rule"]) == {"highest_f1", "promise_0.05_0.05"}
    assert len(pd.read_csv(folder / "means.csv")) == 4
    assert json.loads((folder / "figure.json").read_text())["data"]
    assert "<html" in (folder / "page.html").read_text()
