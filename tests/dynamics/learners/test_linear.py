"""Learners fit exactly, and their derivatives are derivatives."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners import LogisticLearner, RidgeLearner
from countermove.errors import DataError, NotConvergedError, ParameterError, SolverError

STEP = 1e-6


def crowd_of(n=200, d=3, seed=0, weighted=True):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X @ rng.normal(size=d) + rng.logistic(size=n) > 0.3).astype(float)
    weight = rng.uniform(0.5, 1.5, n)
    return Crowd(X, y, weight / weight.sum() if weighted else None)


LEARNERS = [
    LogisticLearner(penalty=0.1),
    LogisticLearner(penalty=0.1, penalise_intercept=True),
    LogisticLearner(penalty=0.05, intercept=False),
    RidgeLearner(penalty=0.2),
    RidgeLearner(intercept=False),
]


def test_the_logistic_fit_is_the_one_scikit_learn_approaches():
    crowd = crowd_of(weighted=False)
    reference = LogisticRegression(C=1.0, tol=1e-12, max_iter=10_000).fit(crowd.X, crowd.y)
    theta = LogisticLearner(penalty=1.0 / crowd.n).fit(crowd)
    assert np.allclose(theta[:-1], reference.coef_[0], atol=1e-6)
    assert theta[-1] == pytest.approx(reference.intercept_[0], abs=1e-6)


def test_the_ridge_fit_is_the_closed_form():
    crowd = crowd_of()
    reference = Ridge(alpha=0.1).fit(crowd.X, crowd.y, sample_weight=crowd.mass)
    theta = RidgeLearner(penalty=0.2).fit(crowd)
    assert np.allclose(theta, [*reference.coef_, reference.intercept_], atol=1e-10)


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_a_fit_is_stationary_from_any_start(learner):
    crowd = crowd_of()
    theta = learner.fit(crowd)
    assert np.abs(learner.gradient(theta, crowd)).max() <= learner.tolerance
    assert np.allclose(learner.fit(crowd, start=theta + 2.0), theta, atol=1e-8)


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_derivatives_agree_with_differences(learner):
    crowd = crowd_of(n=20)
    rng = np.random.default_rng(1)
    p = crowd.d + learner.intercept
    theta, v = rng.normal(size=p), rng.normal(size=p)

    def risk(step):
        return learner.risk(theta + step, crowd)

    found = [(risk(STEP * e) - risk(-STEP * e)) / (2 * STEP) for e in np.eye(p)]
    assert np.allclose(learner.gradient(theta, crowd), found, atol=1e-8)
    columns = [
        (learner.gradient(theta + STEP * e, crowd) - learner.gradient(theta - STEP * e, crowd))
        / (2 * STEP)
        for e in np.eye(p)
    ]
    assert np.allclose(learner.hessian(theta, crowd), np.array(columns), atol=1e-8)
    assert np.allclose(
        learner.hessian(theta, crowd) @ learner.solve(theta, crowd, v), v, atol=1e-10
    )


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_the_mixed_derivative_is_contracted_over_the_parameters(learner):
    crowd = crowd_of(n=6)
    rng = np.random.default_rng(2)
    p = crowd.d + learner.intercept
    theta, v = rng.normal(size=p), rng.normal(size=p)
    by_x, by_y = learner.pull(theta, crowd, v)
    own_x, own_y = learner.loss_slopes(theta, crowd)
    for i in range(crowd.n):
        for j in range(crowd.d):
            up, down = crowd.X.copy(), crowd.X.copy()
            up[i, j] += STEP
            down[i, j] -= STEP
            change = v @ (
                learner.gradient(theta, crowd.moved(up))
                - learner.gradient(theta, crowd.moved(down))
            )
            assert by_x[i, j] == pytest.approx(change / (2 * STEP), abs=1e-8)
            own = learner.losses(theta, crowd.moved(up)) - learner.losses(theta, crowd.moved(down))
            assert own_x[i, j] == pytest.approx(own[i] / (2 * STEP), abs=1e-8)
        up, down = crowd.y.copy(), crowd.y.copy()
        up[i] += STEP
        down[i] -= STEP
        change = v @ (
            learner.gradient(theta, crowd.moved(y=up))
            - learner.gradient(theta, crowd.moved(y=down))
        )
        assert by_y[i] == pytest.approx(change / (2 * STEP), abs=1e-8)
        own = learner.losses(theta, crowd.moved(y=up)) - learner.losses(theta, crowd.moved(y=down))
        assert own_y[i] == pytest.approx(own[i] / (2 * STEP), abs=1e-8)


def test_row_gradients_average_to_the_gradient_without_its_penalty():
    learner, crowd = LogisticLearner(penalty=0.3, penalise_intercept=True), crowd_of()
    theta = np.array([0.4, -1.0, 2.0, 0.1])
    mean = crowd.mean(learner.row_gradients(theta, crowd))
    assert np.allclose(learner.gradient(theta, crowd), mean + 0.3 * theta)


def test_the_published_score_decides_as_the_learner():
    learner, crowd = LogisticLearner(penalty=0.01), crowd_of()
    theta = learner.fit(crowd)
    score = learner.score(theta)
    assert np.allclose(score.weight.detach().numpy(), theta[:-1])
    assert float(score.bias.detach()) == theta[-1]


def test_strong_convexity_is_only_what_the_penalty_promises():
    assert LogisticLearner(penalty=0.3).strong_convexity == 0.0
    assert LogisticLearner(penalty=0.3, penalise_intercept=True).strong_convexity == 0.3
    assert LogisticLearner(penalty=0.3, intercept=False).strong_convexity == 0.3


def test_a_singular_hessian_is_refused_and_the_penalty_offered():
    crowd = crowd_of()
    twice = Crowd(np.column_stack([crowd.X, crowd.X[:, 0]]), crowd.y, crowd.mass)
    with pytest.raises(SolverError, match=r"singular .* penalty > 0"):
        LogisticLearner().fit(twice)
    theta = LogisticLearner(penalty=1e-3).fit(twice)
    assert theta[0] == pytest.approx(theta[3], abs=1e-8)


def test_separable_classes_have_no_minimiser():
    X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    crowd = Crowd(X, (X[:, 0] > 0).astype(float))
    with pytest.raises((NotConvergedError, SolverError), match="penalty"):
        LogisticLearner(max_steps=30).fit(crowd)
    assert LogisticLearner(penalty=0.1).fit(crowd)[0] > 0.0


def test_labels_and_settings_a_learner_cannot_read():
    with pytest.raises(DataError, match=r"labels in \[0, 1\]; not so in rows 1"):
        LogisticLearner().fit(Crowd(np.eye(2), np.array([0.0, -1.0])))
    with pytest.raises(ParameterError, match="penalty"):
        LogisticLearner(penalty=-1.0)
    with pytest.raises(ParameterError, match="max_steps"):
        RidgeLearner(max_steps=0)
    with pytest.raises(DataError, match="need 3"):
        RidgeLearner().losses(np.zeros(2), Crowd(np.eye(2), np.ones(2)))
