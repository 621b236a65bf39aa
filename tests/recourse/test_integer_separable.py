"""The specialised exact method and the mixed-integer program agree; so do their proofs."""

from __future__ import annotations

import numpy as np
import pytest

from countermove.people import ActionSet, MahalanobisCost
from countermove.recourse._feasible import feasible_actions
from countermove.recourse._integer_highs import cheapest_action
from countermove.recourse._integer_separable import cheapest_separable

from .conftest import assert_agrees_with_highs, town_actions, town_people


@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_highs(seed):
    draws = np.random.default_rng(seed)
    X = town_people(8, seed)
    actions = town_actions(8)
    if seed == 0:  # whole numbers only: the finest one is then solved last, in closed form
        actions.integer = (0, *actions.integer)
    feasible = feasible_actions(actions, X)
    slope, need = draws.normal(size=(8, 7)), draws.uniform(0.2, 5.0, 8)
    weights = draws.uniform(0.3, 3.0, 7)
    found = cheapest_separable(feasible, slope, need, weights)
    assert not found.unsolved.any()
    assert 0 < found.proven_none.sum() < 8 or seed == 1
    assert_agrees_with_highs(found, feasible, slope, need, weights)
    allowed = actions.contains(X, np.nan_to_num(found.action))
    assert allowed.all()


def test_costs_that_do_not_separate_are_solved_by_tangents():
    # In the plane with one constraint active: minimise d'Md over w.d = need, M^{-1} w scaled.
    matrix = np.array([[2.0, 0.8], [0.8, 1.0]])
    slope, need = np.array([1.0, 0.5]), 1.0
    feasible = feasible_actions(ActionSet(lower=[-9.0, -9.0], upper=[9.0, 9.0]), np.zeros((1, 2)))
    found = cheapest_action(feasible, MahalanobisCost(matrix), slope, need)
    inverse = np.linalg.solve(matrix, slope)
    exact = inverse * need / (slope @ inverse)
    assert found @ matrix @ found == pytest.approx(exact @ matrix @ exact, rel=1e-4)
