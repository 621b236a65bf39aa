"""Class means: an exact learner whose derivatives are derivatives."""

import numpy as np
import pytest
import torch

from countermove.dynamics.collective.utilities import CentroidGoals, ScoreGoals, goals_of
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners import LogisticLearner
from countermove.dynamics.learners.centroids import CentroidLearner
from countermove.errors import DataError, NotEnoughRowsError, ParameterError, SolverError

STEP = 1e-6


def crowd_of(n=30, d=3, seed=0):
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0.5, 1.5, n)
    return Crowd(rng.normal(size=(n, d)), rng.permutation(n) % 3 + 1.0, weight / weight.sum())


LEARNER = CentroidLearner((3.0, 1.0, 2.0))


def test_the_fit_is_the_weighted_class_means_and_stationary():
    crowd = crowd_of()
    means = LEARNER.centroids(LEARNER.fit(crowd))
    own = crowd.y == 3.0
    assert np.allclose(means[0], np.average(crowd.X[own], axis=0, weights=crowd.mass[own]))
    assert np.abs(LEARNER.gradient(means.ravel(), crowd)).max() < 1e-15


def test_derivatives_agree_with_differences():
    crowd, rng = crowd_of(n=9), np.random.default_rng(1)
    theta, v = rng.normal(size=9), rng.normal(size=9)
    units = np.eye(9) * STEP
    slope = [(LEARNER.risk(theta + e, crowd) - LEARNER.risk(theta - e, crowd)) for e in units]
    gradient = LEARNER.gradient(theta, crowd)
    assert np.allclose(gradient, np.array(slope) / (2 * STEP), atol=1e-8)
    assert np.allclose(crowd.mean(LEARNER.row_gradients(theta, crowd)), gradient)
    moved = LEARNER.gradient(theta + STEP * LEARNER.solve(theta, crowd, v), crowd)
    assert np.allclose((moved - gradient) / STEP, v, atol=1e-6)
    by_x, by_y = LEARNER.pull(theta, crowd, v)
    X = crowd.X.copy()
    X[4, 2] += STEP
    there = v @ LEARNER.gradient(theta, crowd.moved(X))
    assert by_x[4, 2] == pytest.approx((there - v @ gradient) / STEP, abs=1e-6)
    assert not by_y.any()


@pytest.mark.parametrize("goals", [CentroidGoals(LEARNER), CentroidGoals(LEARNER, 3.0, 0.2)])
def test_slopes_of_goals_agree_with_differences(goals):
    rng = np.random.default_rng(2)
    theta, X, goal = rng.normal(size=9), rng.normal(size=(4, 3)), np.array([1.0, 2.0, 3.0, 3.0])
    by_theta, by_x = goals.slopes(theta, X, goal)
    for j in range(9):
        e = STEP * np.eye(9)[j]
        found = (goals.losses(theta + e, X, goal) - goals.losses(theta - e, X, goal)) / (2 * STEP)
        assert np.allclose(by_theta[:, j], found, atol=1e-7)
    for j in range(3):
        e = STEP * np.eye(3)[j]
        found = (goals.losses(theta, X + e, goal) - goals.losses(theta, X - e, goal)) / (2 * STEP)
        assert np.allclose(by_x[:, j], found, atol=1e-7)


def test_goals_decide_as_the_score_does():
    crowd = crowd_of()
    theta = LEARNER.fit(crowd)
    goals = goals_of(LEARNER)
    p = np.exp(-goals.losses(theta, crowd.X, np.full(crowd.n, 2.0)))
    with torch.no_grad():
        score = LEARNER.score(theta)(torch.from_numpy(crowd.X)).numpy()
    assert np.allclose(p, 1 / (1 + np.exp(-score)))
    assert (goals.decide(theta, crowd.X)[p > 0.5] == 2.0).all()
    linear = LogisticLearner(penalty=0.1)
    assert isinstance(goals_of(linear), ScoreGoals)


def test_nonsense_is_refused():
    with pytest.raises(ParameterError, match="two different"):
        CentroidLearner((1.0, 1.0))
    with pytest.raises(ParameterError, match="favourable"):
        CentroidLearner((0.0, 1.0), favourable=2.0)
    crowd = crowd_of()
    with pytest.raises(DataError, match="classes") as error:
        LEARNER.fit(crowd.moved(y=np.where(np.arange(crowd.n) == 5, 7.0, crowd.y)))
    assert error.value.rows == (5,)
    lonely = crowd.moved(y=np.ones(crowd.n))
    with pytest.raises(NotEnoughRowsError, match="3"):
        LEARNER.fit(lonely)
    with pytest.raises(SolverError, match="singular"):
        LEARNER.solve(np.zeros(9), lonely, np.ones(9))
    with pytest.raises(ParameterError, match="unknown goal class 9"):
        goals_of(LEARNER).check(np.array([9.0]))
