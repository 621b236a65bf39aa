"""Without seeing the learner people can still help each other, at a measured price."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from countermove.dynamics.black_box import with_retrainings, with_surrogate
from countermove.dynamics.learners import LogisticLearner
from countermove.dynamics.recourse_search import Search
from countermove.dynamics.recourse_setting import Reach, recourse_problem
from countermove.errors import ParameterError

X, Y = load_iris(return_X_y=True)
MEANS = np.array([X[c == Y].mean(axis=0) for c in range(3)])
PROBLEM = recourse_problem(X, Y, 0.25 * MEANS[1] + 0.75 * MEANS[2], 1)


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


def test_a_surrogate_helps_where_the_learners_agree():
    rows, y = X[Y > 0], Y[Y > 0] - 1
    query = 0.25 * MEANS[1] + 0.75 * MEANS[2]
    problem = recourse_problem(rows, y, query, 0)
    told = with_surrogate(
        problem, LogisticLearner(penalty=0.1), Reach(0.5), search=Search(strict=False)
    )
    assert told.retrainings == 0
    assert told.regret > 0.0
    assert told.recourse.loss < told.recourse.loss_before


def test_nonsense_is_refused():
    with pytest.raises(ParameterError, match="directions are any, query"):
        with_retrainings(PROBLEM, Reach(0.5), directions="all")
    with pytest.raises(ParameterError, match="retrainings >= 3"):
        with_retrainings(PROBLEM, Reach(0.5), retrainings=2)
