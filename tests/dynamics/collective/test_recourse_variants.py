"""Help over rounds, by labels, and without seeing the learner."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import load_iris

from countermove.dynamics.collective.recourse import together
from countermove.dynamics.collective.recourse_problem import Reach, recourse_problem
from countermove.dynamics.collective.recourse_variants import (
    recourse_rounds,
    with_retrainings,
)
from countermove.errors import ParameterError

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


def test_nonsense_is_refused():
    with pytest.raises(ParameterError, match="memory"):
        recourse_rounds(PROBLEM, Reach(0.1), 2, memory=1.0)
    inside = recourse_problem(X, Y, None, 1, query_rows=[120])
    with pytest.raises(ParameterError, match="outside the data"):
        recourse_rounds(inside, Reach(0.1), 2)


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
