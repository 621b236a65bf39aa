"""Structural models, and the four cases of Figure 4 in both readings."""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from countermove.errors import ParameterError
from countermove.experiments.transfer.dag_cases import (
    Shift,
    StructuralModel,
    TargetCase,
    dag_case,
    truncated_normal,
)

CHAIN = {
    "x3": {"causes": {"x1^2": -1.0, "x2": 0.5}, "normal": 0.0},
    "x1": {"uniform": [-1.0, 1.0]},
    "x2": {"causes": {"x1": 2.0}, "normal": 0.3},
}


def test_causes_come_before_effects_whatever_the_order_written():
    model = StructuralModel.from_mapping(CHAIN)
    names = list(model.equations)
    assert names.index("x1") < names.index("x2") < names.index("x3")


def test_variables_follow_from_their_causes():
    model = StructuralModel.from_mapping(CHAIN)
    people, noise = model.draw(5_000, np.random.default_rng(0))
    assert people["x2"] == pytest.approx(2.0 * people["x1"] + noise["x2"])
    assert people["x3"] == pytest.approx(-(people["x1"] ** 2) + 0.5 * people["x2"])
    assert np.std(noise["x2"]) == pytest.approx(0.3, rel=0.05)


@pytest.mark.parametrize(
    ("reading", "steps"), [("paper", (-0.5, 0.0)), ("released", (-0.25, 0.25))]
)
def test_a_decision_moves_one_variable_and_what_follows_from_it(reading, steps):
    model = StructuralModel.from_mapping(CHAIN)
    people, noise = model.draw(1_000, np.random.default_rng(0))
    decision = np.where(people["x1"] > 0, 1.0, -1.0)
    after = model.answered(people, decision, Shift("x1", 0.25, reading), noise)
    refused, accepted = decision < 0, decision > 0
    moved = after["x1"] - people["x1"]
    assert moved[refused] == pytest.approx(steps[0])
    assert moved[accepted] == pytest.approx(steps[1])
    # The noise was kept, so the effect is exactly twice the cause.
    assert after["x2"] - people["x2"] == pytest.approx(2.0 * moved)


@pytest.mark.parametrize(
    ("mapping", "says"),
    [
        ({"a": {"causes": {"b": 1.0}}, "b": {"causes": {"a": 1.0}}}, "circle"),
        ({"a": {"causes": {"a": 1.0}}}, "circle"),
        ({"a": {"causes": {"bb": 1.0}}, "b": {"normal": 1.0}}, "did you mean 'b'"),
        ({"a": {"cause": {}}}, "did you mean 'causes'"),
        ({"a": {"uniform": [1.0, 0.0]}}, "low < high"),
        ({"a": {"normal": -1.0}}, "cannot be negative"),
        ({"a": {"normal": 1.0}, "b": {"causes": {"a^x": 1.0}}}, "whole power"),
    ],
)
def test_models_that_make_no_sense_are_refused(mapping, says):
    with pytest.raises(ParameterError, match=says):
        StructuralModel.from_mapping(mapping)


def test_an_unknown_variable_cannot_shift():
    model = StructuralModel.from_mapping(CHAIN)
    people, noise = model.draw(10, np.random.default_rng(0))
    with pytest.raises(ParameterError, match="no variable 'x9'"):
        model.answered(people, np.ones(10), Shift("x9", 0.1), noise)


N = 60_000


def test_a_quarter_of_the_people_leave_the_support():
    """Reference figures: 24.6 % at c = .25, 44.9 % at c = .45, so w(x) is undefined."""
    for name, share in (("CS1", 0.25), ("CS2", 0.45)):
        case = dag_case(name, "released")
        X, y = case.source(N, np.random.default_rng(0))
        after, _ = case.induced(X, y, np.where(X[:, 0] > 0, 1.0, -1.0), np.random.default_rng(1))
        assert np.mean(np.abs(after[:, 0]) > 1.0) == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize(("reading", "curve"), [("paper", -1.0), ("released", -0.8)])
def test_the_readings_differ_in_the_third_variable(reading, curve):
    X, _ = dag_case("CS1", reading).source(N, np.random.default_rng(0))
    slope = np.sum(X[:, 2] * X[:, 0] ** 2) / np.sum(X[:, 0] ** 4)
    assert slope == pytest.approx(curve, abs=0.01)


def test_the_label_follows_the_features_in_a_covariate_shift():
    case = dag_case("CS2")
    X, y = case.source(1_000, np.random.default_rng(0))
    after, label = case.induced(X, y, -np.ones(1_000), np.random.default_rng(1))
    for features, labels in ((X, y), (after, label)):
        assert np.array_equal(labels > 0, features[:, 1] > 0)


def class_means(X: np.ndarray, y: np.ndarray) -> list[float]:
    return [float(X[y == label, 0].mean()) for label in (-1.0, 1.0)]


@pytest.mark.parametrize("name", ["TS1", "TS2"])
def test_target_shift_keeps_the_features_of_a_class(name):
    case = dag_case(name)
    X, y = case.source(N, np.random.default_rng(0))
    refused = -np.ones(N)
    after, label = case.induced(X, y, refused, np.random.default_rng(1))
    assert class_means(after, label) == pytest.approx(class_means(X, y), abs=0.01)
    # Of label +1 a fifth changes, of label -1 fifteen in a hundred.
    assert np.mean(label > 0) == pytest.approx(0.5 * 0.8 + 0.5 * 0.15, abs=0.01)


def test_the_released_target_shift_does_not():
    """X1 is handed out by row number, with the counts of the classes swapped."""
    case = dag_case("TS1", "released")
    assert isinstance(case, TargetCase)
    X, y = case.source(N, np.random.default_rng(0))
    after, label = replace(case, matched=False).induced(X, y, -np.ones(N), np.random.default_rng(1))
    moved = np.subtract(class_means(after, label), class_means(X, y))
    assert np.abs(moved).max() > 0.05


def test_truncated_draws_stay_within_and_have_the_right_mean():
    mean, spread = 0.9, 0.25
    draws = truncated_normal(np.full(N, mean), spread, np.random.default_rng(0))
    assert 0.0 <= draws.min() <= draws.max() <= 1.0
    low, high = NormalDist().pdf(-mean / spread), NormalDist().pdf((1.0 - mean) / spread)
    mass = NormalDist(mean, spread).cdf(1.0) - NormalDist(mean, spread).cdf(0.0)
    assert draws.mean() == pytest.approx(mean + spread * (low - high) / mass, abs=0.003)


def test_unknown_cases_and_readings_are_refused():
    with pytest.raises(ParameterError, match="known: CS1, CS2, TS1, TS2"):
        dag_case("CS3")
    with pytest.raises(ParameterError, match="reading"):
        dag_case("CS1", "ours")
