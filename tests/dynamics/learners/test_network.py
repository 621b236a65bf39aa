"""Torch modules and our own trainer as learners."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from countermove.dynamics import (
    Collective,
    LevelKPopulation,
    RespondingPopulation,
    TrainedLearner,
    linearise,
    retrain_until_stable,
)
from countermove.dynamics.collective.balls import Ball
from countermove.dynamics.collective.bilevel import Bilevel
from countermove.dynamics.collective.moves import Moves
from countermove.dynamics.collective.utilities import PenalisedLossUtility, TargetPredictionUtility
from countermove.dynamics.crowd import Crowd, mixture
from countermove.dynamics.learners import LogisticLearner, RidgeLearner
from countermove.dynamics.learners.network import TorchLearner
from countermove.dynamics.learners.newton import least_squares, solve_by_products
from countermove.errors import DataError, NotConvergedError, ParameterError, SolverError
from countermove.learning.classifier import StrategicClassifier
from countermove.people import QuadraticCost
from countermove.response import AscentResponse
from countermove.scores import LinearScore, MLPScore


def crowd_of(n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X @ rng.normal(size=d) + rng.logistic(size=n) > 0.3).astype(float)
    weight = rng.uniform(0.5, 1.5, n)
    return Crowd(X, y, weight / weight.sum())


PAIRS = [
    (TorchLearner(LinearScore(3), penalty=0.1), LogisticLearner(0.1, penalise_intercept=True)),
    (
        TorchLearner(LinearScore(3), lambda s, y: (s - y) ** 2, penalty=0.1),
        RidgeLearner(0.1, penalise_intercept=True),
    ),
]


@pytest.mark.parametrize(("module", "exact"), PAIRS, ids=["logistic", "ridge"])
def test_a_linear_module_agrees_with_the_exact_learner(module, exact):
    """Everything a Learner offers, to 1e-6."""
    crowd = crowd_of()
    theta = module.fit(crowd)
    assert np.allclose(theta, exact.fit(crowd), atol=1e-6)
    v = np.array([0.3, -1.0, 0.5, 0.7])
    for name in ("losses", "row_gradients", "gradient", "risk"):
        found, wanted = (getattr(each, name)(theta, crowd) for each in (module, exact))
        assert np.allclose(found, wanted, atol=1e-10)
    assert np.allclose(module.solve(theta, crowd, v), exact.solve(theta, crowd, v), atol=1e-8)
    pulls = zip(module.pull(theta, crowd, v), exact.pull(theta, crowd, v), strict=True)
    assert all(np.allclose(found, wanted, atol=1e-10) for found, wanted in pulls)
    slopes = zip(module.loss_slopes(theta, crowd), exact.loss_slopes(theta, crowd), strict=True)
    assert all(np.allclose(found, wanted, atol=1e-10) for found, wanted in slopes)
    assert np.allclose(module.score(theta).weight.detach().numpy(), theta[:3])


def test_the_engine_finds_the_same_strategy_with_either():
    space = Moves(crowd_of(), np.arange(20), columns=(0, 1), ball=Ball(0.7))
    found = [
        Bilevel(space, TargetPredictionUtility(1.0), learner).maximise() for learner in PAIRS[0]
    ]
    assert np.allclose(found[0].eta, found[1].eta, atol=1e-4)
    assert found[0].value == pytest.approx(found[1].value, abs=1e-8)


def test_a_network_is_differentiated_through_its_fit():
    crowd = crowd_of(30)
    learner = TorchLearner(MLPScore(3, hidden=(4,), dropout=0.0), penalty=0.05)
    space = Moves(crowd, np.arange(5), columns=(0, 2), labels=True, cost_rate=0.1, label_cost=0.1)
    problem = Bilevel(space, PenalisedLossUtility(penalty=0.1), learner)
    eta = np.full(space.shape, 0.05)
    here = problem.at(eta)
    gradient, step = problem.gradient(here), 1e-5
    for index in np.ndindex(eta.shape):
        change = np.zeros_like(eta)
        change[index] = step
        ends = [problem.at(eta + sign * change, here.theta).value for sign in (1, -1)]
        assert gradient[index] == pytest.approx(
            (ends[0] - ends[1]) / (2 * step), abs=1e-5 * np.abs(gradient).max()
        )


def test_a_singular_hessian_is_refused_and_a_penalty_offered():
    crowd = crowd_of()
    twice = Crowd(np.column_stack([crowd.X, crowd.X[:, 0]]), crowd.y)
    learner = TorchLearner(LinearScore(4), penalty=0.0)
    flat = np.array([1.0, 0.0, 0.0, -1.0, 0.0])
    with pytest.raises(SolverError, match="larger penalty"):
        learner.solve(np.zeros(5), twice, flat)


@pytest.mark.parametrize("solve", ["products", "matrix"])
def test_implicit_gradients_are_those_of_least_squares(solve):
    """H may be indefinite; of a singular one only what lies outside its flat directions."""

    def found(matrix, v):
        if solve == "matrix":
            return least_squares(matrix, v)
        return solve_by_products(lambda u: matrix @ u, v)

    turned, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))
    indefinite = turned @ np.diag([-2.0, 1.0, 10.0, 1e3]) @ turned.T
    v = np.array([1.0, -2.0, 0.5, 3.0])
    assert np.allclose(found(indefinite, v), np.linalg.solve(indefinite, v), rtol=1e-8)
    singular = turned @ np.diag([0.0, 1.0, 10.0, 1e3]) @ turned.T
    inside = singular @ v
    wanted = np.linalg.lstsq(singular, inside, rcond=1e-10)[0]
    assert np.allclose(found(singular, inside), wanted, atol=1e-6)
    with pytest.raises(SolverError, match="larger penalty"):
        found(singular, turned[:, 0])


def test_a_plain_sequential_is_a_learner_people_respond_to():
    """Floats of 32 bits and scores of shape (n, 1) as torch makes them."""
    torch.manual_seed(0)
    plain = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    learner, crowd = TorchLearner(plain, penalty=0.05), crowd_of()
    theta = learner.fit(crowd)
    assert np.abs(learner.gradient(theta, crowd)).max() <= 1e-9
    with torch.no_grad():
        scores = learner.score(theta)(torch.from_numpy(crowd.X)).numpy()
    losses = np.log1p(np.exp(scores)) - crowd.y * scores
    assert np.allclose(learner.losses(theta, crowd), losses)
    people = RespondingPopulation(crowd, AscentResponse(QuadraticCost(2.0)))
    moved = people.answer(theta, learner)
    with torch.no_grad():
        after = learner.score(theta)(torch.from_numpy(moved.X)).numpy()
    assert (after >= scores - 1e-6).all()
    assert (after > scores + 0.1).any()


def test_a_linear_sequential_agrees_with_the_exact_learner():
    learner = TorchLearner(torch.nn.Sequential(torch.nn.Linear(3, 1)), penalty=0.1)
    exact, crowd = LogisticLearner(0.1, penalise_intercept=True), crowd_of()
    assert np.allclose(learner.fit(crowd), exact.fit(crowd), atol=1e-6)


@pytest.mark.slow
def test_24_of_24_small_networks_fit():
    """Three of 24 once raised on an indefinite Hessian on the way."""
    for seed in range(24):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, 8))
        y = (X @ rng.normal(size=8) + X[:, 0] * X[:, 1] + rng.logistic(size=300) > 0.0) * 1.0
        start = torch.Generator().manual_seed(seed)
        module = MLPScore(8, hidden=(8,), dropout=0.0, generator=start)
        learner, crowd = TorchLearner(module, penalty=(1e-2, 1e-3, 1e-4)[seed % 3]), Crowd(X, y)
        theta = learner.fit(crowd)
        assert np.abs(learner.gradient(theta, crowd)).max() <= learner.tolerance
        assert np.linalg.eigvalsh(learner.hessian(theta, crowd))[0] > -1e-8


@pytest.mark.slow
def test_a_collective_before_a_network_of_1000_people_ends():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 8))
    y = (X @ rng.normal(size=8) + X[:, 0] * X[:, 1] + rng.logistic(size=1000) > 0.0) * 1.0
    learner = TorchLearner(MLPScore(8, hidden=(8,), dropout=0.0))
    made = Collective(
        Crowd(X, y), TargetPredictionUtility(1.0), learner, columns=(0, 1), ball=Ball(1.0),
        participants=np.arange(200),
    )  # fmt: skip
    found = made.optimal_strategy(tolerance=1e-2, max_steps=30, strict=False)
    assert found.value > found.values[0] + 0.2


def test_a_fit_that_does_not_converge_is_reported():
    learner = TorchLearner(MLPScore(3, hidden=(4,), dropout=0.0), max_steps=1, tolerance=1e-15)
    with pytest.raises(NotConvergedError, match="gradient is still"):
        learner.fit(crowd_of())


def test_modules_that_make_no_sense():
    with pytest.raises(ParameterError, match="none at all"):
        TorchLearner(torch.nn.Tanh())
    wide = TorchLearner(torch.nn.Linear(3, 2))
    with pytest.raises(DataError, match="expected"):
        wide.fit(crowd_of())
    with pytest.raises(DataError, match="the module needs 4"):
        PAIRS[0][0].losses(np.zeros(7), crowd_of())


@pytest.fixture
def learner():
    return TrainedLearner(StrategicClassifier(response="none"))


def test_a_classifier_is_retrained_round_after_round(people, gaining, learner):
    people = people.of_rows(np.arange(60))
    population = LevelKPopulation.drawn(
        people, gaining(0.5), {1: 0.5, 2: 0.5}, np.random.default_rng(0)
    )
    run = retrain_until_stable(learner, population, rounds=2, tolerance=0.0)
    trained = StrategicClassifier(response="none")
    trained.fit(people.X, people.y.astype(int))
    first = np.append(trained.coef_, trained.intercept_)
    assert np.allclose(np.sort(run.thetas[0]), np.sort(first))
    assert len(run.gaps) == 2
    assert run.gaps[0] > 0.0
    assert run.promise.rate is None
    assert "only fits" in run.words


def test_the_score_and_the_losses_are_the_classifiers(people, learner):
    theta = learner.fit(people)
    weight = learner.score(theta).weight.detach().numpy()
    bias = float(learner.score(theta).bias.detach())
    scores = people.X @ weight + bias
    expected = np.log1p(np.exp(-(2.0 * people.y - 1.0) * scores))
    assert np.allclose(learner.losses(theta, people), expected)
    assert learner.risk(theta, people) == pytest.approx(expected.mean())


def test_what_it_cannot_do_is_said(people, gaining, learner):
    with pytest.raises(ParameterError, match="after the first fit"):
        learner.score(np.zeros(4))
    theta = learner.fit(people)
    population = RespondingPopulation(people, gaining(1.0))
    with pytest.raises(ParameterError, match="only fits"):
        retrain_until_stable(learner, population, theta, method="gradient_descent")
    with pytest.raises(ParameterError, match="only fits"):
        retrain_until_stable(learner, population, theta, method="proximal")
    with pytest.raises(ParameterError, match="linearised"):
        linearise(learner, population, theta)
    with pytest.raises(DataError, match=r"LevelKPopulation\.drawn"):
        learner.fit(mixture([people, people], [0.9, 0.1]))
    with pytest.raises(DataError, match="labels 0 and 1"):
        learner.fit(people.moved(y=0.0 * people.y))
