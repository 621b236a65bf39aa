"""Help over rounds, by labels, and without seeing the learner."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import load_iris

from countermove.dynamics.collective.recourse import together
from countermove.dynamics.collective.recourse_problem import Reach, recourse_problem
from countermove.dynamics.collective.recourse_variants import (
    label_moves,
    recourse_rounds,
    with_retrainings,
)
from countermove.dynamics.learners import LogisticLearner
from countermove.errors import NotEnoughRowsError, ParameterError

X, Y = load_iris(return_X_y=True)
MEANS = np.array([X[c == Y].mean(axis=0) for c in range(3)])
PROBLEM = recourse_problem(X, Y, 0.25 * MEANS[1] + 0.75 * MEANS[2], 1)


def test_rounds_without_memory_add_up_to_one_large_move():
    rounds = recourse_rounds(PROBLEM, Reach(0.25), 4)
    assert rounds[-1].loss == pytest.approx(together(PROBLEM, Reach(1.0)).loss, abs=1e-9)
    assert [a.loss > b.loss for a, b in pairwise(rounds)] == [True] * 3
    assert np.linalg.norm(rounds[-1].moves, axis=1).max() <= 1.0 + 1e-9


def test_a_platform_that_remembers_yields_more_slowly():
    fresh = recourse_rounds(PROBLEM, Reach(0.25), 3)
    slow = recourse_rounds(PROBLEM, Reach(0.25), 3, memory=0.5)
    assert all(b.loss > a.loss for a, b in zip(fresh, slow, strict=True))
    refitted = PROBLEM.learner.fit(PROBLEM.crowd.moved(X + slow[0].moves))
    half = 0.5 * (refitted + PROBLEM.theta)
    assert np.allclose(slow[0].theta, half)


@pytest.mark.parametrize(
    "learner", [None, LogisticLearner(penalty=0.05)], ids=["means", "logistic"]
)
def test_label_moves_are_the_best_single_ones(learner):
    y = Y if learner is None else (Y > 0).astype(int)
    query = 0.4 * MEANS[1] + 0.6 * MEANS[0]
    problem = recourse_problem(X, y, query, 1, learner=learner)
    found = label_moves(problem, 1)
    every = []
    for row in range(0, 150, 7):
        for label in set(problem.goals.known) - {float(y[row])}:
            changed = problem.crowd.y.copy()
            changed[row] = label
            every.append(problem.loss(problem.learner.fit(problem.crowd.moved(y=changed))))
    assert found.losses[1] <= min(every) + 1e-12
    more = label_moves(problem, 12)
    assert list(more.losses) == sorted(more.losses, reverse=True)
    assert len(set(more.rows.tolist())) == len(more.rows)


def test_the_last_of_a_class_keeps_its_label():
    few = recourse_problem(X[48:53], Y[48:53], X[51], 0)
    found = label_moves(few, 5)
    left = few.crowd.y.copy()
    left[found.rows] = found.labels
    assert set(left) == {0.0, 1.0}


def test_nonsense_is_refused():
    with pytest.raises(ParameterError, match="memory"):
        recourse_rounds(PROBLEM, Reach(0.1), 2, memory=1.0)
    inside = recourse_problem(X, Y, None, 1, query_rows=[120])
    with pytest.raises(ParameterError, match="outside the data"):
        recourse_rounds(inside, Reach(0.1), 2)
    with pytest.raises(NotEnoughRowsError, match="at least one label"):
        label_moves(PROBLEM, 0)


def test_watching_retrainings_comes_near_full_sight():
    few = with_retrainings(PROBLEM, Reach(0.5), retrainings=21)
    many = with_retrainings(PROBLEM, Reach(0.5), retrainings=601)
    assert many.retrainings == 601
    assert 0.0 <= many.regret < 0.05
    assert many.regret < few.regret
    assert many.recourse.loss < PROBLEM.loss(PROBLEM.theta) - 0.5
    assert (np.linalg.norm(many.recourse.moves, axis=1) <= 0.5 + 1e-9).all()


def test_few_unknowns_need_few_retrainings():
    """Class means only ever move to and from the query: three numbers instead of twelve."""
    free = with_retrainings(PROBLEM, Reach(0.5), retrainings=41)
    towards = with_retrainings(PROBLEM, Reach(0.5), retrainings=41, directions="query")
    assert 0.0 <= towards.regret < 0.5 * free.regret


def test_unknown_directions_are_refused():
    with pytest.raises(ParameterError, match="directions are any, query"):
        with_retrainings(PROBLEM, Reach(0.5), directions="all")
    with pytest.raises(ParameterError, match="retrainings >= 3"):
        with_retrainings(PROBLEM, Reach(0.5), retrainings=2)
