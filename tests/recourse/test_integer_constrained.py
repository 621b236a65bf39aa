"""Under linear constraints the specialised method and the mixed-integer program agree."""

from __future__ import annotations

import time

import numpy as np
import pytest

from countermove.people import ActionSet
from countermove.recourse import recommend
from countermove.recourse._feasible import feasible_actions
from countermove.recourse._integer_constrained import cheapest_constrained

from .conftest import assert_agrees_with_highs, linear, town_actions, town_people

# What is gained in columns 0 and 1 shares a budget with whole units of column 2.
A = np.array([[-1.0, -0.4, 0.5, 0, 0, 0, 0], [0.0, -1.0, -0.5, 0, -0.2, 0, 0.3]])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("whole", [False, True])
def test_agrees_with_highs(seed, whole):
    draws = np.random.default_rng(seed)
    n = 6
    X = town_people(n, seed)
    actions = town_actions(n, A=A, b=draws.uniform(0.0, 1.5, (n, 2)))
    if whole:  # no continuous feature is left to solve last
        actions.integer = (0, *actions.integer)
    feasible = feasible_actions(actions, X)
    slope, need = draws.normal(size=(n, 7)), draws.uniform(0.2, 4.0, n)
    weights = draws.uniform(0.3, 3.0, 7)
    found = cheapest_constrained(feasible, slope, need, weights)
    assert not found.unsolved.any()
    assert_agrees_with_highs(found, feasible, slope, need, weights)
    assert actions.contains(X, np.nan_to_num(found.action))[~found.proven_none].all()


def test_constraints_change_answers_and_take_recourse_away():
    X, slope = town_people(40, 5), np.tile([1.0, 0.5, -0.4, 0.0, 0.2, 0.0, -0.3], (40, 1))
    need, weights = np.full(40, 1.0), np.ones(7)
    free = cheapest_constrained(
        feasible_actions(town_actions(40, A=A, b=[99.0, 99.0]), X), slope, need, weights
    )
    bound = cheapest_constrained(
        feasible_actions(town_actions(40, A=A, b=[0.8, 0.8]), X), slope, need, weights
    )
    assert (free.proven_none <= bound.proven_none).all()
    assert bound.proven_none.sum() > free.proven_none.sum()
    both = ~bound.proven_none
    cost = [(np.nan_to_num(part.action)[both] ** 2).sum(axis=1) for part in (free, bound)]
    assert (cost[0] <= cost[1] + 1e-9).all()
    assert (cost[0] < cost[1] - 1e-6).any()


def test_two_continuous_features_are_left_to_highs():
    # Cheapest on d0 + d1 >= 2 with d0 <= 0.5: (0.5, 1.5), not (1, 1).
    actions = ActionSet(lower=[-3, -3], upper=[3, 3], A=[[-1.0, 0.0]], b=[0.5])
    X = np.zeros((1, 2))
    left = cheapest_constrained(
        feasible_actions(actions, X), np.ones((1, 2)), np.array([2.0]), np.ones(2)
    )
    assert left.unsolved.tolist() == [True]
    advice = recommend(linear([1.0, 1.0], -2.0), X, "integer_program", 0.5, actions)
    assert advice.action[0] == pytest.approx([0.5, 1.5], abs=1e-3)


@pytest.mark.slow
def test_a_hundred_people_per_second_under_constraints():
    """CPU seconds, and half of what the benchmark measures, to leave room for other machines."""
    draws = np.random.default_rng(0)
    n, size = 300, np.array([1.2, 12.0, 2800.0, 1.5, 1.1, 0.5])
    original = np.column_stack([draws.integers(0, top, n) for top in (4, 60, 9000, 5, 4, 2)])
    actions = ActionSet(
        min_value=np.zeros(6),
        max_value=[3.0, 120.0, 18000.0, 4.0, 4.0, 1.0],
        integer=range(6),
        A=[[-1.0, 0.0, 0.0, -1.0, 0.0, 0.0], [0.0, 1.0, -0.005, 0.0, 0.0, 0.0]],
        b=[2.0, 6.0],
    ).rescaled(size, np.zeros(6))
    score = linear([0.7, -0.5, -0.3, 0.4, -0.3, 0.1], -0.5)
    start = time.process_time()
    advice = recommend(score, original / size, "integer_program", 0.6, actions)
    spent = time.process_time() - start
    refused = int((advice.status != "NOT_NEEDED").sum())
    assert (advice.status == "FOUND").any()
    assert refused / spent > 100
