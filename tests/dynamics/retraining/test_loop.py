"""Retraining settles where theory and arithmetic say, and says so when it does not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from countermove.dynamics import (
    LevelKPopulation,
    LogisticLearner,
    RespondingPopulation,
    RidgeLearner,
    retrain_until_stable,
)
from countermove.dynamics.retraining.populations import PerformativePopulation
from countermove.errors import DivergedError, NotConvergedError, ParameterError, UnknownNameError
from countermove.people import QuadraticCost
from countermove.response import BestResponse, NoResponse

LEARNER = LogisticLearner(penalty=0.05, penalise_intercept=True)


@pytest.mark.parametrize("strength", [0.01, 1.0, 100.0, 1000.0])
def test_everybody_moving_alike_settles_in_one_round(people, gaining, strength):
    """The intercept absorbs the move: b* = b0 - eps |w_S|^2 and nothing else changes."""
    learner = LogisticLearner(penalty=0.01)
    run = retrain_until_stable(
        learner, RespondingPopulation(people, gaining(strength)), rounds=4, tolerance=0.0
    )
    start = run.thetas[0]
    moved = strength * (start[0] ** 2 + start[2] ** 2)
    assert np.allclose(run.theta[:-1], start[:-1], atol=1e-11)
    assert run.theta[-1] == pytest.approx(start[-1] - moved, rel=1e-9)
    assert run.gaps[0] == pytest.approx(moved, rel=1e-9)
    assert (run.gaps[1:] < 1e-11 * (1.0 + moved)).all()


@pytest.mark.parametrize("learner", [LEARNER, RidgeLearner(penalty=0.5)], ids=["logistic", "ridge"])
def test_the_last_model_is_the_learners_answer_to_it(people, gaining, learner):
    who = people.X[:, 1] < 0.0
    population = RespondingPopulation(people, gaining(0.2), who)
    run = retrain_until_stable(learner, population, tolerance=1e-12, rounds=200)
    assert run.stable
    again = learner.fit(population.answer(run.theta, learner))
    assert np.linalg.norm(again - run.theta) < 1e-10
    assert run.refit_gap < 1e-11
    assert run.risks[-1] == pytest.approx(
        learner.risk(run.theta, population.answer(run.theta, learner))
    )
    assert len(run.risks) == len(run.thetas) == len(run.gaps) + 1


def test_the_promise_is_kept_where_its_condition_holds(people, gaining):
    """Theorem 3.5 of Perdomo et al.: every distance to the stable model falls at the rate."""
    learner = LogisticLearner(penalty=2.0, penalise_intercept=True)
    population = LevelKPopulation(people, gaining(0.3), {1: 0.5, 2: 0.5}, who=people.X[:, 1] < 0.0)
    run = retrain_until_stable(
        learner, population, np.array([1.0, 1.0, 1.0, 1.0]), tolerance=1e-13, rounds=100
    )
    promise = run.promise
    assert promise.holds
    assert promise.sensitivity == pytest.approx(0.3 * (people.X[:, 1] < 0.0).mean(), rel=1e-6)
    single = promise.sensitivity * promise.smoothness / 2.0
    assert promise.rate == pytest.approx(0.5 * single + 0.5 * single**2)
    apart = np.linalg.norm(run.thetas - run.theta, axis=1)
    known = apart[:-1] > 1e-10
    assert (apart[1:][known] <= promise.rate * apart[:-1][known]).all()
    assert "promises a rate" in run.words


def test_a_learner_that_is_not_strongly_convex_is_said_not_refused(people, gaining):
    run = retrain_until_stable(
        LogisticLearner(penalty=0.1), RespondingPopulation(people, gaining(0.5))
    )
    assert run.stable
    assert run.promise.rate == np.inf
    assert not run.promise.holds
    assert "does not make its risk strongly convex" in run.words
    assert run.promise.curvature > 0.0


def test_a_condition_that_fails_is_said(people, gaining):
    run = retrain_until_stable(LEARNER, RespondingPopulation(people, gaining(5.0)))
    assert not run.promise.holds
    assert "sufficient, not necessary" in run.words


def test_people_who_stay_need_one_round_and_the_promise_is_zero(people):
    run = retrain_until_stable(LEARNER, RespondingPopulation(people, NoResponse()))
    assert run.stable
    assert run.gaps.tolist() == pytest.approx([0.0], abs=1e-14)
    assert run.promise.rate == 0.0
    assert run.promise.holds


class Runaway(PerformativePopulation):
    """People who stretch away from the model, further each time."""

    def __init__(self, base):
        self.base = base

    def answer(self, theta, learner):
        return self.base.moved(y=self.base.y + 3.0 * (learner.design(self.base.X) @ theta))


def test_divergence_is_stopped_said_and_the_trajectory_kept(people):
    learner, population = RidgeLearner(), Runaway(people)
    with pytest.raises(DivergedError, match=r"diverged after \d+ rounds") as caught:
        retrain_until_stable(learner, population, runaway=1e4, rounds=500)
    run = caught.value.trajectory
    assert isinstance(caught.value, NotConvergedError)
    assert run.status == "diverged"
    assert 3 < len(run.gaps) < 50
    assert np.isfinite(run.thetas).all()
    assert run.ratios[-1] == pytest.approx(3.0, rel=1e-6)
    assert np.isnan(run.risks[-1])
    reported = retrain_until_stable(
        learner, population, runaway=1e4, rounds=500, on_divergence="report"
    )
    assert np.array_equal(reported.thetas, run.thetas)
    assert reported.promise is None


class Separating(Runaway):
    """People whose labels become separable after the second model."""

    def answer(self, theta, learner):
        if not theta[0] > 0.0:
            return self.base.moved(y=1.0 - self.base.y)
        return self.base.moved(y=(self.base.X[:, 0] > 0.0).astype(float))


def test_a_fit_that_fails_keeps_what_came_before(people):
    learner, start = LogisticLearner(max_steps=30), np.array([-1.0, 0.0, 0.0, 0.0])
    flipped = people.moved(y=1.0 - people.y)
    run = retrain_until_stable(learner, Separating(flipped), start, on_divergence="report")
    assert run.status == "failed"
    assert "penalty" in run.reason
    assert np.array_equal(run.thetas[0], start)
    assert len(run.thetas) == 2
    with pytest.raises(DivergedError, match="a fit failed after 1 rounds"):
        retrain_until_stable(learner, Separating(flipped), start)


def test_rounds_that_run_out_are_reported(people, gaining):
    population = RespondingPopulation(people, gaining(2.0), people.X[:, 1] < 0.0)
    run = retrain_until_stable(LEARNER, population, rounds=2, theory=False)
    assert run.status == "moving"
    assert not run.stable
    assert run.words.startswith("not stable after 2 rounds")


def test_the_trajectory_is_a_table_and_a_file(people, gaining, tmp_path):
    run = retrain_until_stable(LEARNER, RespondingPopulation(people, gaining(1.0)))
    run.save(tmp_path / "run" / "models.csv", names=["a", "b", "c", "bias"])
    read = pd.read_csv(tmp_path / "run" / "models.csv")
    assert list(read) == ["round", "gap", "risk", "a", "b", "c", "bias"]
    assert np.allclose(read[["a", "b", "c", "bias"]], run.thetas)
    assert np.allclose(read["gap"][:-1], run.gaps)
    with pytest.raises(ParameterError, match="2 names for 4 parameters"):
        run.table(["a", "b"])


def test_people_who_want_the_decision_can_be_retrained_against(people):
    population = RespondingPopulation(people, BestResponse(QuadraticCost(4.0)))
    run = retrain_until_stable(LEARNER, population, rounds=30, on_divergence="report")
    assert run.gaps[-1] < run.gaps[0]
    assert run.promise.sensitivity > 0.0


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"rounds": 0}, ParameterError, "rounds >= 1"),
        ({"tolerance": -1.0}, ParameterError, "tolerance >= 0"),
        ({"runaway": 0.0}, ParameterError, "runaway > 0"),
        ({"on_divergence": "ignore"}, ParameterError, "'raise' or 'report'"),
        ({"method": "risk_minimization"}, UnknownNameError, "did you mean 'risk_minimisation'"),
    ],
)
def test_settings_that_make_no_sense(people, settings, error, message):
    with pytest.raises(error, match=message):
        retrain_until_stable(LEARNER, RespondingPopulation(people, NoResponse()), **settings)
