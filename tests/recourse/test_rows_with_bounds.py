"""Everybody's limits travel with them, and impossible ones are refused before training."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from countermove.errors import InfeasibleActionsError, ParameterError
from countermove.people import ActionSet
from countermove.recourse.objective import rows_with_bounds, split_bounds, usual_actions

X = np.random.default_rng(0).normal(size=(6, 3))


def test_rows_hold_features_and_the_box_of_the_actions():
    actions = ActionSet(
        lower=[-1, -1, 0], upper=[1, 2, 0], max_value=[0.5, 9, 9], only_increase=[1]
    )
    actions = ActionSet(lower=[-1, -1, 0], upper=[4, 2, 0], max_value=[3, 9, 9], only_increase=[1])
    low, high = actions.box(X)
    parts = split_bounds(torch.from_numpy(rows_with_bounds(X, actions)), 3)
    for part, wanted in zip(parts, (X, low, high, np.empty((6, 0))), strict=True):
        np.testing.assert_array_equal(part.numpy(), wanted)


def test_constraints_add_their_offsets():
    actions = ActionSet(
        lower=[-1] * 3, upper=[1] * 3, A=[[1.0, 1.0, 0.0]], b=np.arange(6.0)[:, None]
    )
    offsets = split_bounds(torch.from_numpy(rows_with_bounds(X, actions)), 3)[3]
    np.testing.assert_array_equal(offsets.numpy()[:, 0], np.arange(6.0))


def test_an_unbounded_action_is_refused_by_feature():
    with pytest.raises(ParameterError, match="feature 1 "):
        rows_with_bounds(X, ActionSet(lower=[-1, -1, -1], upper=[1, np.inf, 1]))


def test_a_person_without_any_action_is_named():
    low = np.full((6, 3), -1.0)
    low[4, 1] = 0.6
    actions = ActionSet(lower=low, upper=np.ones((6, 3)), max_value=[9.0, X[:, 1].max(), 9.0])
    blocked = X.copy()
    blocked[4, 1] = X[:, 1].max()
    with pytest.raises(InfeasibleActionsError) as caught:
        rows_with_bounds(blocked, actions)
    assert caught.value.rows == (4,)


def test_narrowing_keeps_what_was_narrower_and_everything_else():
    actions = ActionSet(lower=[-0.1, -9, -9], only_increase=[2], immutable=[1])
    inner = actions.narrowed(0.5, 3)
    low, high = inner.box(X)
    np.testing.assert_array_equal(low[0], [-0.1, 0.0, 0.0])
    np.testing.assert_array_equal(high[0], [0.5, 0.0, 0.5])
    assert actions.upper is None
    with pytest.raises(ParameterError, match="positive"):
        actions.narrowed(0.0, 3)


def test_the_usual_actions_are_the_papers():
    low, high = usual_actions(3).box(X)
    assert (low == -0.75).all()
    assert (high == 0.75).all()
