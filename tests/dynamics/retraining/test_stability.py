"""Rates: the linearisation is a derivative, the constants are those of the theory."""

from __future__ import annotations

import numpy as np
import pytest

from countermove.dynamics import (
    LogisticLearner,
    RespondingPopulation,
    RidgeLearner,
    linearise,
    retrain_until_stable,
    settle,
)
from countermove.dynamics.retraining.populations import PerformativePopulation
from countermove.dynamics.retraining.stability import measured, promise
from countermove.errors import NotConvergedError

LEARNER = LogisticLearner(penalty=0.05, penalise_intercept=True)


@pytest.mark.parametrize("learner", [LEARNER, RidgeLearner(penalty=0.5)], ids=["logistic", "ridge"])
def test_the_linearisation_is_the_derivative_of_retraining(people, gaining, learner):
    population = RespondingPopulation(people, gaining(0.2), people.X[:, 1] < 0.0)
    theta = retrain_until_stable(
        learner, population, tolerance=1e-13, rounds=300, theory=False
    ).theta

    def retrained(model):
        return learner.fit(population.answer(model, learner), start=theta)

    columns = [
        (retrained(theta + e) - retrained(theta - e)) / 2e-4 for e in 1e-4 * np.eye(len(theta))
    ]
    found = linearise(learner, population, theta)
    assert np.allclose(found.matrix, np.array(columns).T, atol=1e-6)
    assert found.radius <= found.norm + 1e-12


def test_the_measured_rate_is_the_spectral_radius(people, gaining):
    population = RespondingPopulation(people, gaining(1.0), people.X[:, 1] < 0.0)
    run = retrain_until_stable(LEARNER, population, tolerance=1e-12, rounds=300, theory=False)
    assert run.measured.rate == pytest.approx(
        linearise(LEARNER, population, run.theta).radius, rel=1e-2
    )


def test_a_stable_model_is_found_also_where_retraining_leaves_it(people, gaining):
    learner = LogisticLearner(penalty=0.002, penalise_intercept=True)
    population = RespondingPopulation(people, gaining(40.0), people.X[:, 1] < 0.0)
    cycling = retrain_until_stable(learner, population, rounds=100, theory=False)
    assert not cycling.stable
    theta = settle(learner, population, cycling.thetas[-2:].mean(axis=0))
    assert np.linalg.norm(learner.fit(population.answer(theta, learner)) - theta) < 1e-9
    assert linearise(learner, population, theta).radius > 1.0
    with pytest.raises(NotConvergedError, match="no stable model found in 1 steps"):
        settle(learner, population, cycling.theta, max_steps=1)


def test_constants_of_a_setting_known_by_hand(people, gaining):
    """People move by eps w on free columns; a ridge gradient is 2(s - y)(x, 1)."""
    learner, theta = RidgeLearner(penalty=3.0, penalise_intercept=True), np.array([1.0, 0, 0, 0.5])
    population = RespondingPopulation(people, gaining(0.4, immutable=(1, 2)))
    found = promise(learner, population, np.array([theta]))
    assert found.sensitivity == pytest.approx(0.4, rel=1e-8)
    moved = population.answer(theta, learner)
    slopes = []
    for x, y in zip(moved.X, moved.y, strict=True):
        rows = np.append(x, 1.0)
        change = 2.0 * (rows @ theta - y) * np.eye(4)[0] + 2.0 * theta[0] * rows
        slopes.append(np.linalg.norm(change))
    assert found.smoothness == pytest.approx(max(slopes), rel=1e-8)
    assert found.strong_convexity == 3.0
    assert found.rate == pytest.approx(0.4 * max(slopes) / 3.0, rel=1e-8)


class Following(PerformativePopulation):
    """People whose labels follow the model."""

    def __init__(self, base):
        self.base = base

    def answer(self, theta, learner):
        return self.base.moved(y=self.base.y + 0.3 * (learner.design(self.base.X) @ theta))


def test_labels_that_follow_the_model_count(people):
    """The label moves by 0.3 (x, 1) per unit of model, a ridge gradient by 2 (x, 1) per label."""
    learner, theta = RidgeLearner(penalty=3.0, penalise_intercept=True), np.zeros(4)
    found = promise(learner, Following(people), np.array([theta]))
    lengths = np.linalg.norm(learner.design(people.X), axis=1)
    assert found.sensitivity == pytest.approx(0.3 * lengths.mean(), rel=1e-8)
    assert found.smoothness == pytest.approx(2.0 * lengths.max(), rel=1e-8)


def test_rounding_is_no_rate():
    steps = np.array([1.0, 0.1, 0.01, 1e-14, 3e-15])
    thetas = np.concatenate([[0.0], np.cumsum(steps * np.array([1, -1, 1, 1, 1]))])[:, None]
    found = measured(thetas)
    assert found.rate == pytest.approx(0.1)
    assert found.signed == pytest.approx(-0.1)
    assert measured(thetas[:2]).rate is None
    assert measured(thetas[:2]).signed is None
