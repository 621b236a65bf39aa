"""The linearised step is the linear program's optimum, whichever way it is found."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import logit

from countermove.errors import InfeasibleActionsError, UnboundedResponseError
from countermove.people import ActionSet, QuadraticCost
from countermove.recourse import recommend
from countermove.recourse.polytope import linear_step, nearest_alone, project
from countermove.recourse.problem import search_problem

from .conftest import trained_tanh


def polytope(n: int, d: int, m: int, seed: int, shared: bool = False):
    draws = np.random.default_rng(seed)
    rows = 1 if shared else n
    low, high = -draws.uniform(0, 1, (rows, d)), draws.uniform(0, 1, (rows, d))
    low[:, 0] = high[:, 0] = 0.0
    A, b = draws.normal(size=(m, d)), draws.uniform(0.05, 0.4, (rows, m))
    wide = [np.broadcast_to(part, (n, part.shape[1])).copy() for part in (low, high, b)]
    return draws.normal(size=(n, d)), wide[0], wide[1], A, wide[2]


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(("d", "m"), [(3, 1), (4, 3), (9, 4)])  # the last goes to HiGHS
def test_the_step_solves_the_linear_program(d, m, shared):
    gradient, low, high, A, b = polytope(25, d, m, seed=d, shared=shared)
    step = linear_step(gradient, low, high, A, b)
    assert (step >= low - 1e-9).all()
    assert (step <= high + 1e-9).all()
    assert (step @ A.T + b >= -1e-7).all()
    for i in range(len(step)):
        best = linprog(-gradient[i], A_ub=-A, b_ub=b[i], bounds=np.column_stack([low[i], high[i]]))
        assert gradient[i] @ step[i] == pytest.approx(-best.fun, abs=1e-7)


def test_a_box_is_solved_by_its_corner():
    gradient = np.array([[1.0, -2.0, 0.0]])
    low, high = np.array([[-1.0, -1.0, -1.0]]), np.array([[0.5, 0.5, 0.5]])
    assert linear_step(gradient, low, high).tolist() == [[0.5, -1.0, 0.0]]
    # No constraints at all is the box again.
    assert linear_step(gradient, low, high, np.zeros((0, 3))).tolist() == [[0.5, -1.0, 0.0]]


def test_who_has_no_step_is_named():
    gradient = np.ones((3, 1))
    with pytest.raises(UnboundedResponseError) as raised:
        linear_step(gradient, np.zeros((3, 1)), np.array([[1.0], [np.inf], [1.0]]))
    assert raised.value.rows == (1,)
    A, b = np.array([[1.0]]), np.array([[0.0], [-5.0], [0.0]])
    with pytest.raises(InfeasibleActionsError) as empty:
        linear_step(gradient, np.zeros((3, 1)), np.ones((3, 1)), A, b)
    assert empty.value.rows == (1,)
    many = np.ones((3, 12))
    with pytest.raises(InfeasibleActionsError, match="rows 1") as highs:
        linear_step(many, 0 * many, many, np.ones((1, 12)), 5 * b)
    assert highs.value.rows == (1,)


@pytest.mark.parametrize("m", [1, 3])
def test_projection_is_the_nearest_point(m):
    y, low, high, A, b = polytope(40, 5, m, seed=m)
    y = 2.0 * y
    near = project(y, low, high, A, b)
    for i in range(len(y)):
        one = ActionSet(lower=low[i], upper=high[i], A=A, b=b[i])
        exact = one.project(np.zeros((1, 5)), y[[i]])[0]
        assert near[i] == pytest.approx(exact, abs=1e-7)


def test_the_single_step_misses_what_the_search_finds():
    # The reason for iterating: on a score that bends, the first corner is often the wrong one.
    X = np.random.default_rng(0).normal(size=(600, 3))
    score = trained_tanh(X, np.cos(3 * X[:, 0]) * np.cos(2 * X[:, 1]) > 0.3)
    actions = ActionSet(lower=[-1.5, -1.5, 0.0], upper=[1.5, 1.5, 0.0])
    advice = recommend(score, X[:200], "linear_program", 0.45, actions)
    found = advice.status == "FOUND"
    problem = search_problem(score, X[:200], actions, QuadraticCost(), logit(0.45))
    _, gradient = problem.slopes(problem.home)
    single = problem.reaches(linear_step(gradient, problem.feasible.low, problem.feasible.high))
    assert found.sum() > 1.2 * (single & (advice.status != "NOT_NEEDED")).sum()


def test_the_nearest_point_does_not_depend_on_rows_that_are_not_in_force():
    """Rows of other branches have an offset of a million; held columns lack a last digit."""
    low, high = np.array([0.3, -2.0, -2.0]), np.array([0.3, 2.0, 2.0])
    A = np.array([[0.0, 1.0, -1.0], [0.0, -1.0, 1.0]])
    b = np.array([0.0, 1e-10])  # nearly an equation
    more = np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    rest = np.array([-0.3 - 1e-12, 0.3, 1e6])
    y = np.array([5.0, 1.5, -1.0])
    for rows, offsets in ((A, b), (np.vstack([A, more]), np.hstack([b, rest]))):
        alone = nearest_alone(y, low, high, rows, offsets, 0)
        np.testing.assert_allclose(alone, [0.3, 0.25, 0.25], atol=1e-6)
        found = project(y[None], low[None], high[None], rows, offsets[None])
        np.testing.assert_allclose(found[0], [0.3, 0.25, 0.25], atol=1e-6)
