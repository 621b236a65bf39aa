"""The four cases of Figure 4 in both readings."""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from countermove.errors import ParameterError
from countermove.experiments.transfer.dag_cases import TargetCase, dag_case, truncated_normal

N = 60_000


@pytest.mark.parametrize(
    ("reading", "steps"), [("paper", (-0.5, 0.0)), ("released", (-0.25, 0.25))]
)
def test_a_decision_moves_one_variable_and_what_follows_from_it(reading, steps):
    case = dag_case("CS1", reading)
    X, y = case.source(N, np.random.default_rng(0))
    decision = np.where(X[:, 0] > 0, 1.0, -1.0)
    after, _ = case.induced(X, y, decision, np.random.default_rng(1))
    moved = after[:, 0] - X[:, 0]
    assert moved[decision < 0] == pytest.approx(steps[0])
    assert moved[decision > 0] == pytest.approx(steps[1])
    apart = after[:, 1] - 1.2 * after[:, 0]
    assert np.std(apart) == pytest.approx(0.15, rel=0.02)


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
