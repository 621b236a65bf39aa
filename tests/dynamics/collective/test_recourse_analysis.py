"""How much, how many, who, at whose expense: results that can be checked by hand."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from countermove.dynamics.collective.recourse import individual, together
from countermove.dynamics.collective.recourse_analysis import (
    alternatives,
    break_even,
    least_budgets,
    marginal_values,
    side_effects,
)
from countermove.dynamics.collective.recourse_problem import Reach, recourse_problem
from countermove.dynamics.learners import LogisticLearner
from countermove.errors import DataError, ParameterError
from countermove.people import ActionSet

X, Y = load_iris(return_X_y=True)
MEANS = np.array([X[c == Y].mean(axis=0) for c in range(3)])


def iris(goal, start, rows=slice(None)):
    query = 0.25 * MEANS[goal] + 0.75 * MEANS[start]
    return recourse_problem(X[rows], Y[rows], query, goal)


def test_two_classes_on_a_line_tie():
    """Both flip the label at a quarter of the distance between the means (.802)."""
    found = least_budgets(iris(0, 1, rows=Y < 2), Reach(1.0))
    quarter = 0.25 * np.linalg.norm(MEANS[0] - MEANS[1])
    assert quarter == pytest.approx(0.802, abs=5e-4)
    assert found.individual == pytest.approx(quarter, rel=1e-9)
    assert found.collective == pytest.approx(quarter, rel=1e-9)


def test_least_budgets_are_budgets_that_work_and_hardly_less_does():
    problem = iris(1, 2)
    found = least_budgets(problem, Reach(1.0), tolerance=1e-3)
    assert together(problem, Reach(1.001 * found.collective)).reached.all()
    assert not together(problem, Reach(0.999 * found.collective)).reached.any()
    gaps = np.linalg.norm(problem.query - MEANS, axis=1)
    assert found.collective == pytest.approx((gaps[1] - gaps[2]) / 2, rel=1e-3)
    # Every distance to a cell is reached by the best move of that length and no shorter one.
    assert individual(problem, Reach(1.01 * found.individual)).reached.all()


@pytest.mark.parametrize("participants", [None, Y == 1, Y == 0])
def test_exact_budgets_are_those_of_a_search(participants):
    """With a box that never binds nothing is exact, and the bisection finds the same."""
    problem = iris(1, 2)
    exact = least_budgets(problem, Reach(1.0), participants, 0.7).collective
    wide = ActionSet(lower=np.full(4, -1e3))
    found = least_budgets(problem, Reach(1.0, actions=wide), participants, 0.7).collective
    assert (exact is None) == (participants is not None and participants[0])
    assert found == (None if exact is None else pytest.approx(exact, rel=2e-3))


def test_off_the_line_between_the_means_together_needs_less():
    """Half the difference of the distances, against the distance to the plane between."""
    query = 0.25 * MEANS[0] + 0.75 * MEANS[1] + np.array([0.5, 0.5, 0.0, 0.0])
    two = recourse_problem(X[Y < 2], Y[Y < 2], query, 0)
    found = least_budgets(two, Reach(1.0))
    assert found.collective < 0.99 * found.individual


def test_budgets_that_never_work_are_none():
    problem = iris(0, 1)
    found = least_budgets(problem, Reach(1.0, float("inf"), actions=ActionSet(immutable=range(4))))
    assert found.collective is None
    assert found.individual is None


def test_a_linear_query_s_least_budget_is_its_distance():
    y = (Y == 2).astype(int)
    learner = LogisticLearner(penalty=0.1)
    problem = recourse_problem(X, y, X[70], 1, learner=learner)
    w = learner.slope(problem.theta, 4)
    distance = -learner.scores(problem.theta, X[70:71])[0] / np.linalg.norm(w)
    found = least_budgets(problem, Reach(1.0), tolerance=1e-2)
    assert found.individual == pytest.approx(distance, rel=1.2e-2)
    assert found.collective <= found.individual * 1.011


def test_break_even():
    """setosa from versicolor: 99.8 % must take part; from virginica far fewer."""
    assert break_even(iris(0, 1), Reach(0.5)) == pytest.approx(0.998, abs=2e-3)
    share = break_even(iris(0, 2), Reach(0.5))
    problem = iris(0, 2)
    alone = individual(problem, Reach(0.5)).loss
    assert together(problem, Reach(0.5), participation=share).loss <= alone
    assert together(problem, Reach(0.5), participation=share - 0.01).loss > alone
    assert break_even(problem, Reach(0.5), participants=[0]) is None


def test_marginal_values_foretell_what_one_person_does():
    problem = iris(1, 2)
    worth = marginal_values(problem, Reach(0.01))
    for row in (10, 75, 130):
        gain = problem.loss(problem.theta) - together(problem, Reach(0.01), [row]).loss
        assert worth[row] == pytest.approx(gain, rel=1e-2)
    some = marginal_values(problem, Reach(0.01), participants=Y == 1)
    assert (some > 0).tolist() == (Y == 1).tolist()


def test_side_effects_are_counted():
    problem = iris(1, 2)
    found = together(problem, Reach(1.0))
    effects = side_effects(found)
    before, after = (problem.goals.decide(theta, X) for theta in (problem.theta, found.theta))
    assert effects.accuracy_before == pytest.approx(np.mean(before == Y))
    assert effects.accuracy == pytest.approx(np.mean(after == Y))
    assert effects.changed == pytest.approx(np.mean(before != after))
    assert effects.mean_move == pytest.approx(1.0)
    assert effects.by_group["2"]["people"] == 50
    assert effects.by_group["2"]["changed"] == pytest.approx(np.mean((before != after)[Y == 2]))
    with pytest.raises(DataError, match="one per data subject"):
        side_effects(found, groups=["a"])


def test_alternatives_differ_and_the_best_comes_first():
    ways = alternatives(iris(1, 2), Reach(0.5), n=3)
    assert len(ways) == 3
    assert len({way.name for way in ways}) == 3
    assert ways[0].recourse.loss == min(way.recourse.loss for way in ways)
    moves = [way.recourse.moves.ravel() / np.linalg.norm(way.recourse.moves) for way in ways]
    assert moves[0] @ moves[1] < 0.9
    with pytest.raises(ParameterError, match="at least one"):
        alternatives(iris(1, 2), Reach(0.5), n=0)
