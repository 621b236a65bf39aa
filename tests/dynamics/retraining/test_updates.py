"""Every way to the next model ends where it should."""

from __future__ import annotations

import numpy as np
import pytest

from countermove.dynamics import LogisticLearner, RespondingPopulation, retrain_until_stable
from countermove.dynamics.retraining.updates import (
    DeployedModel,
    DerivativeFree,
    GradientDescent,
    PerformativeDescent,
    ProximalRiskMinimisation,
    named_update,
    performative_gradient,
    performative_risk,
)
from countermove.errors import ParameterError

LEARNER = LogisticLearner(penalty=0.05, penalise_intercept=True)


@pytest.fixture
def population(people, gaining):
    return RespondingPopulation(people, gaining(1.0), people.X[:, 1] < 0.0)


def retrained(population, method, rounds=400, tolerance=1e-9):
    return retrain_until_stable(
        LEARNER, population, method=method, rounds=rounds, tolerance=tolerance
    )


@pytest.mark.parametrize(
    "method", [GradientDescent(1.0), ProximalRiskMinimisation(0.1)], ids=["descent", "proximal"]
)
def test_stability_seekers_find_the_same_stable_model(population, method):
    expected = retrained(population, "risk_minimisation", tolerance=1e-12)
    found = retrained(population, method)
    assert found.stable
    assert found.refit_gap < 1e-6
    assert np.allclose(found.theta, expected.theta, atol=1e-6)


def test_staying_near_the_last_model_settles_what_overshoots(people, gaining):
    """Risk minimisation cycles at this strength; the proximal update comes to rest."""
    learner = LogisticLearner(penalty=0.002, penalise_intercept=True)
    population = RespondingPopulation(people, gaining(40.0), people.X[:, 1] < 0.0)
    plain = retrain_until_stable(learner, population, rounds=100, theory=False)
    assert not plain.stable
    calm = retrain_until_stable(
        learner, population, method=ProximalRiskMinimisation(0.5), rounds=500, theory=False
    )
    assert calm.stable


def test_the_proximal_model_is_stationary(population, people):
    theta, crowd = LEARNER.fit(people), people.moved(people.X + 1.0)
    update = ProximalRiskMinimisation(0.7)
    following = update.next(DeployedModel(LEARNER, population, theta, crowd))
    slope = LEARNER.gradient(following, crowd) + 2.0 * 0.7 * (following - theta)
    assert np.abs(slope).max() < 1e-11


def test_the_gradient_after_response_is_that_of_the_risk_after_response(population, people):
    theta, step = LEARNER.fit(people), 1e-4
    found = [
        (
            performative_risk(theta + e, LEARNER, population)
            - performative_risk(theta - e, LEARNER, population)
        )
        / (2.0 * step)
        for e in step * np.eye(len(theta))
    ]
    assert np.allclose(performative_gradient(theta, LEARNER, population), found, atol=1e-6)


def test_counting_on_the_answer_beats_the_stable_model(population):
    stable = retrained(population, "risk_minimisation", tolerance=1e-12)
    best = retrained(population, PerformativeDescent(1.0), rounds=300, tolerance=1e-7)
    assert best.stable
    assert best.risks[-1] < stable.risks[-1] - 1e-5
    slope = performative_gradient(best.theta, LEARNER, population)
    assert np.abs(slope).max() < 1e-6
    assert best.refit_gap > 1e-3


def test_derivative_free_descent_lowers_the_risk_after_response(population):
    start = retrained(population, "risk_minimisation", rounds=1)
    method = DerivativeFree(step=0.3, probe=0.05, directions=10, seed=1)
    tried = retrained(population, method, rounds=40, tolerance=0.0)
    best = retrained(population, PerformativeDescent(1.0), rounds=100, tolerance=1e-5)
    lowered, possible = start.risks[0] - tried.risks[-1], start.risks[0] - best.risks[-1]
    assert lowered > 0.9 * possible > 0.0
    again = retrained(population, method, rounds=2, tolerance=0.0)
    assert np.array_equal(again.thetas, tried.thetas[:3])


def test_updates_by_name_and_settings_that_make_no_sense():
    for name in ("risk_minimisation", "gradient_descent", "proximal", "performative_descent",
                 "derivative_free"):  # fmt: skip
        assert named_update(name).name == name
    for make in (
        lambda: GradientDescent(0.0),
        lambda: ProximalRiskMinimisation(-1.0),
        lambda: PerformativeDescent(difference=np.nan),
        lambda: DerivativeFree(probe=2.0),
        lambda: DerivativeFree(directions=0),
    ):
        with pytest.raises(ParameterError):
            make()
