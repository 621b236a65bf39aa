"""The engine's gradient is a gradient, and what it finds is a best strategy."""

import numpy as np
import pytest

from countermove.dynamics.collective.balls import Ball
from countermove.dynamics.collective.bilevel import Bilevel
from countermove.dynamics.collective.moves import Moves
from countermove.dynamics.collective.spaces import Mixing
from countermove.dynamics.collective.utilities import (
    LossUtility,
    PenalisedLossUtility,
    TargetModelUtility,
    TargetPredictionUtility,
)
from countermove.dynamics.crowd import Crowd, mixture
from countermove.dynamics.learners import LogisticLearner, RidgeLearner
from countermove.errors import (
    NotConvergedError,
    NotEnoughRowsError,
    ParameterError,
    SolverError,
)
from countermove.people import ActionSet

STEP = 1e-5


def crowd_of(n=40, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X @ rng.normal(size=d) + rng.logistic(size=n) > 0.3).astype(float)
    weight = rng.uniform(0.5, 1.5, n)
    return Crowd(X, y, weight / weight.sum())


BOX = ActionSet(lower=[-2.0] * 3, upper=[2.0] * 3)
# An unpenalised intercept would undo a uniform move of everybody: nothing to differentiate.
LEARNERS = [
    LogisticLearner(penalty=0.1, penalise_intercept=True),
    RidgeLearner(penalty=0.1, penalise_intercept=True),
]
UTILITIES = [
    LossUtility(),
    LossUtility(-2.0),
    PenalisedLossUtility(penalty=0.7),
    TargetModelUtility(np.array([0.3, -1.0, 0.5, 0.2])),
    TargetPredictionUtility(0.8),
]
MOVES = {
    "per person": {"columns": (0, 2), "actions": BOX},
    "uniform": {"columns": (0, 2), "uniform": True, "ball": Ball(3.0)},
    "labels": {"columns": (), "labels": True, "label_range": (0.0, 1.0)},
    "both, costed": {"labels": True, "cost_rate": 0.3, "label_cost": 0.4},
    "uniform, both": {
        "labels": True,
        "uniform": True,
        "cost_rate": [0.1, 0.2, 0.3],
        "label_cost": 0.5,
    },
}


def by_differences(problem, eta):
    found = np.zeros_like(eta)
    for index in np.ndindex(eta.shape):
        step = np.zeros_like(eta)
        step[index] = STEP
        found[index] = (problem.at(eta + step).value - problem.at(eta - step).value) / (2 * STEP)
    return found


@pytest.mark.parametrize(
    "learner",
    LEARNERS,
    ids=lambda learner: learner.name,
)
@pytest.mark.parametrize("utility", UTILITIES, ids=lambda utility: utility.name)
@pytest.mark.parametrize("moves", MOVES)
@pytest.mark.parametrize("members", [None, np.arange(3, 6)], ids=["all", "some"])
def test_the_gradient_agrees_with_differences(learner, utility, moves, members):
    """Reference: relative error of at most 1e-5, with weights and partial participation."""
    crowd = crowd_of(10)
    space = Moves(crowd.moved(y=0.4 + 0.2 * crowd.y), members, **MOVES[moves])
    problem = Bilevel(space, utility, learner)
    rng = np.random.default_rng(1)
    eta = space.project(0.1 * rng.normal(size=space.shape))
    found, wanted = problem.gradient(problem.at(eta)), by_differences(problem, eta)
    assert np.abs(wanted).max() > 1e-6
    assert np.abs(found - wanted).max() <= 1e-5 * np.abs(wanted).max()


def test_the_gradient_of_a_mixture_agrees_with_differences_along_the_simplex():
    base, other, third = (crowd_of(seed=seed) for seed in (0, 1, 2))
    space = Mixing((base, other, third), rest=base, participation=0.4)
    problem = Bilevel(space, PenalisedLossUtility(penalty=0.5), LogisticLearner(penalty=0.1))
    eta = np.array([0.5, 0.2, 0.3])
    gradient = problem.gradient(problem.at(eta))
    for step in (np.array([1, -1, 0]), np.array([0, 1, -1])):
        ends = [problem.at(eta + sign * STEP * step).value for sign in (1, -1)]
        assert gradient @ step == pytest.approx((ends[0] - ends[1]) / (2 * STEP), rel=1e-5)


@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
def test_the_strategy_found_is_allowed_stationary_and_no_worse_than_random_ones(p):
    crowd = crowd_of()
    space = Moves(crowd, np.arange(10), columns=(0, 1), ball=Ball(1.0, p))
    target = TargetModelUtility(np.array([0.0, 1.0, 0.0, 0.0]))
    problem = Bilevel(space, target, LogisticLearner(penalty=0.1))
    found = problem.maximise()
    assert found.converged
    assert found.residual <= 1e-6
    assert (space.ball.size(found.eta) <= 1.0 + 1e-12).all()
    assert np.all(np.diff(np.maximum.accumulate(found.values)) >= 0.0)
    rng = np.random.default_rng(3)
    assert all(problem.at(space.drawn(rng)).value < found.value for _ in range(20))


def test_a_linear_constraint_of_the_actions_holds():
    crowd = crowd_of()
    actions = ActionSet(lower=[-1.0] * 3, upper=[1.0] * 3, A=[[-1.0, -1.0, 0.0]], b=[0.5])
    space = Moves(crowd, actions=actions)
    found = Bilevel(space, TargetPredictionUtility(1.0), LogisticLearner(penalty=0.1)).maximise()
    assert actions.contains(crowd.X, found.eta).all()
    assert found.eta[:, :2].sum(axis=1).max() == pytest.approx(0.5, abs=1e-9)


def test_several_starts_never_do_worse_and_are_repeatable():
    space = Moves(crowd_of(), columns=(1,), actions=BOX)
    problem = Bilevel(space, LossUtility(), LogisticLearner(penalty=0.05))
    one = problem.maximise(strict=False, max_steps=15)
    several = [problem.maximise(starts=3, strict=False, max_steps=15) for _ in range(2)]
    assert several[0].value >= one.value
    assert len(several[0].start_values) == 3
    assert several[0].value == several[1].value


def test_a_search_cut_short_says_so():
    space = Moves(crowd_of(), columns=(1,), actions=BOX)
    problem = Bilevel(space, LossUtility(), LogisticLearner(penalty=0.05))
    with pytest.raises(NotConvergedError, match="strict=False"):
        problem.maximise(max_steps=1)
    assert not problem.maximise(max_steps=1, strict=False).converged


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"columns": (0,)}, ParameterError, "neither bounded nor costly"),
        ({"columns": (0,), "labels": True, "cost_rate": 1.0}, ParameterError, "the label"),
        ({"columns": (7,), "actions": BOX}, ParameterError, "column 7 does not exist"),
        ({"columns": (0, 0), "actions": BOX}, ParameterError, "more than once"),
        ({"columns": ()}, ParameterError, "nothing may move"),
        ({"participants": np.zeros(40, bool), "actions": BOX}, NotEnoughRowsError, "nobody"),
        ({"participants": [40], "actions": BOX}, ParameterError, "40 are not among"),
        ({"participants": [1, 1], "actions": BOX}, ParameterError, "more than once"),
        ({"participants": [0.5], "actions": BOX}, ParameterError, "whole numbers"),
        ({"cost_rate": -1.0}, ParameterError, "not negative"),
        ({"cost_rate": [1.0, 2.0]}, ParameterError, "one per moving feature"),
    ],
)
def test_moves_refuse_what_makes_no_sense(arguments, error, message):
    with pytest.raises(error, match=message):
        Moves(crowd_of(), **arguments)


def test_the_constant_column_is_not_something_people_report():
    crowd = crowd_of()
    constant = Crowd(np.column_stack([crowd.X, np.ones(crowd.n)]), crowd.y)
    with pytest.raises(ParameterError, match="the same for everybody"):
        Moves(constant, columns=(3,), cost_rate=1.0)
    assert Moves(constant, columns=(3,), cost_rate=1.0, allow_constant=True).shape == (40, 1)


def test_a_singular_hessian_is_refused_and_a_penalty_offered():
    crowd = crowd_of()
    twice = Crowd(np.column_stack([crowd.X, crowd.X[:, 0]]), crowd.y)
    space = Moves(twice, columns=(1,), cost_rate=1.0)
    with pytest.raises(SolverError, match="penalty > 0"):
        Bilevel(space, LossUtility(), LogisticLearner()).maximise()


def test_a_learner_that_only_fits_is_refused():
    class OnlyFits(LogisticLearner):
        differentiable = False

    space = Moves(crowd_of(), columns=(1,), cost_rate=1.0)
    with pytest.raises(ParameterError, match="only fits"):
        Bilevel(space, LossUtility(), OnlyFits())


def test_a_mixture_of_a_rest_and_copies_is_partial_participation():
    """Model (3): moving the members' copies leaves the rest where it is."""
    base = crowd_of()
    both = mixture([base, base], [0.3, 0.7])
    space = Moves(both, np.arange(base.n), uniform=True, columns=(0,), ball=Ball(1.0))
    moved = space.crowd_at(np.array([[0.7]]))
    assert np.allclose(moved.X[: base.n, 0], base.X[:, 0] + 0.7)
    assert np.array_equal(moved.X[base.n :], base.X)
    assert np.allclose(space.members_at(np.array([[0.7]])).mass, base.mass)


@pytest.mark.slow
def test_ten_thousand_members_with_twenty_features():
    """Issue figure: under 30 s, memory linear in the participants."""
    import time
    import tracemalloc

    crowd = crowd_of(10_000, 20)
    space = Moves(crowd, ball=Ball(0.5))
    problem = Bilevel(space, TargetPredictionUtility(1.0), LogisticLearner(penalty=1e-3))
    tracemalloc.start()
    begun = time.process_time()
    found = problem.maximise()
    assert time.process_time() - begun < 30.0
    assert tracemalloc.get_traced_memory()[1] < 40 * crowd.X.nbytes
    tracemalloc.stop()
    assert found.converged
