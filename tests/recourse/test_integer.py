"""Local linear models find recourse on scores that bend; people without it are proven so."""

from __future__ import annotations

import time

import numpy as np
import pytest

from countermove.errors import CostError
from countermove.people import ActionSet, ConicCost
from countermove.recourse import Settings, recommend

from .conftest import linear, town_actions


def test_local_models_lead_to_recourse(town):
    X, actions = town.X[:60], town_actions(60)
    settings = Settings(grid=9)
    advice = recommend(town.bent, X, "integer_program", 0.5, actions, settings=settings)
    referee = recommend(town.bent, X, "exhaustive", 0.5, actions, settings=settings)
    exists = referee.status == "FOUND"
    assert exists.sum() > 10
    assert (advice.status == "FOUND")[exists].mean() > 0.9
    # A model that is refitted where it leads ends near the cheapest action of the grid.
    both = exists & (advice.status == "FOUND")
    assert np.median(advice.cost[both] / referee.cost[both]) < 1.1


def test_proofs_hold_where_whole_numbers_and_constraints_meet():
    # 2 steps of 1 reach a gain of 2, but the constraint allows only one and a half: one step.
    score, X = linear([1.0, 0.0], -1.2), np.zeros((1, 2))
    actions = ActionSet(lower=[0, 0], upper=[2, 0], integer=[0], A=[[-1.0, 0.0]], b=[1.5])
    assert recommend(score, X, "integer_program", 0.5, actions).status.tolist() == ["PROVEN_NONE"]
    # The relaxed program sees no obstacle: the linear program may not claim a proof.
    assert recommend(score, X, "linear_program", 0.5, actions).status.tolist() == ["NOT_FOUND"]
    nearer = linear([1.0, 0.0], -0.9)
    advice = recommend(nearer, X, "integer_program", 0.5, actions)
    assert advice.action.tolist() == [[1.0, 0.0]]


def test_exactly_at_the_threshold_is_recourse():
    # One step of 1 leads to a score of exactly 0, which is approved.
    actions = ActionSet(lower=[0.0], upper=[1.0], integer=[0])
    for method in ("integer_program", "exhaustive", "linear_program", "gradient"):
        advice = recommend(linear([1.0], -1.0), np.zeros((1, 1)), method, 0.5, actions)
        assert advice.status.tolist() == ["FOUND"], method


def test_costs_without_a_closed_form_are_refused(town):
    cost = ConicCost(lambda x, x_new: ((x_new - x) ** 2).sum())
    with pytest.raises(CostError):
        recommend(town.linear, town.X, "integer_program", 0.7, town.actions, cost)


@pytest.mark.slow
def test_two_hundred_people_per_second_with_fine_whole_numbers():
    # The shape of german: short scales, months, and an amount in single units; CPU seconds.
    draws = np.random.default_rng(0)
    n, size = 400, np.array([1.2, 12.0, 2800.0, 1.5, 1.1, 0.5])
    original = np.column_stack([draws.integers(0, top, n) for top in (4, 60, 9000, 5, 4, 2)])
    most = np.array([3.0, 120.0, 18000.0, 4.0, 4.0, 1.0])
    actions = ActionSet(min_value=np.zeros(6), max_value=most, integer=range(6))
    actions = actions.rescaled(size, np.zeros(6))
    score = linear([0.7, -0.5, -0.3, 0.4, -0.3, 0.1], -0.5)
    start = time.process_time()
    advice = recommend(score, original / size, "integer_program", 0.7, actions)
    spent = time.process_time() - start
    refused = (advice.status != "NOT_NEEDED").sum()
    assert refused > 200
    assert refused / spent > 200
