"""The reach of a linear score over boxes agrees with a linear program."""

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from countermove.errors import InfeasibleActionsError
from countermove.people import ActionSet
from countermove.recourse import largest_gain
from countermove.scores import LinearScore


def linear(weights) -> LinearScore:
    score = LinearScore(len(weights))
    with torch.no_grad():
        score.weight.copy_(torch.tensor(weights, dtype=torch.float64))
    return score


@pytest.fixture
def people():
    return np.random.default_rng(0).normal(size=(30, 4))


def test_box_agrees_with_a_linear_program(people):
    weights = [1.0, -2.0, 0.5, 0.0]
    actions = ActionSet(only_increase=[0], immutable=[2], min_value=[-4.0] * 4, max_value=[4.0] * 4)
    gains = largest_gain(linear(weights), actions, people, largest_action=0.75)
    low, high = actions.box(people)
    for row, gain in enumerate(gains):
        bounds = np.column_stack([np.maximum(low[row], -0.75), np.minimum(high[row], 0.75)])
        assert gain == pytest.approx(-linprog(-np.array(weights), bounds=bounds).fun)


def test_unbounded_feature_without_weight_gains_nothing(people):
    gains = largest_gain(linear([0.0, 0.0, 0.0, 1.0]), ActionSet(immutable=[3]), people)
    assert np.array_equal(gains, np.zeros(30))


def test_unbounded_movable_feature_gains_without_limit(people):
    assert np.isinf(largest_gain(linear([1.0, 0, 0, 0]), ActionSet(), people)).all()


def test_extra_constraints_bind(people):
    budget = ActionSet(A=-np.ones((1, 4)), b=[1.0], lower=[0.0] * 4, upper=[5.0] * 4)
    gains = largest_gain(linear([1.0, 3.0, 2.0, 0.0]), budget, people)
    assert gains == pytest.approx(np.full(30, 3.0))


def test_nobody_without_any_action_is_passed_over_silently(people):
    far = np.vstack([people, [10.0, 0, 0, 0]])
    actions = ActionSet(max_value=[5.0, 9, 9, 9])
    with pytest.raises(InfeasibleActionsError) as caught:
        largest_gain(linear([1.0, 0, 0, 0]), actions, far, largest_action=1.0)
    assert caught.value.rows == (30,)
