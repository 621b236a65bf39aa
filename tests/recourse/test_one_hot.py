"""A person's category changes as a whole or not at all."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from countermove.people import ActionSet
from countermove.recourse.objective import movable_groups, rows_with_bounds, single_step
from countermove.scores import MLPScore

RNG = np.random.default_rng(3)
CATEGORY = RNG.integers(0, 3, size=50)
ORIGINAL = np.column_stack([RNG.normal(size=50), np.eye(3)[CATEGORY]])
SCALE, MEAN = np.array([1.0, 0.5, 0.4, 0.3]), np.array([0.0, 0.3, 0.4, 0.3])
X = (ORIGINAL - MEAN) / SCALE
SCORE = MLPScore(4, (10,), generator=torch.Generator().manual_seed(2))


def actions(**settings) -> ActionSet:
    whole = ActionSet(
        lower=[-0.5, -np.inf, -np.inf, -np.inf],
        upper=[0.5, np.inf, np.inf, np.inf],
        groups=[(1, 2, 3)],
        **settings,
    )
    return whole.rescaled(SCALE, MEAN)


def switched(k: int) -> np.ndarray:
    """Return the change of the group's columns for everybody who chooses category k."""
    return (np.eye(3)[[k]] - np.eye(3)[CATEGORY]) / SCALE[1:]


def test_the_category_that_gains_most_is_chosen():
    step = single_step(SCORE, X, actions())
    gradient = SCORE.gradient(torch.from_numpy(X)).numpy()
    gains = np.stack([(gradient[:, 1:] * switched(k)).sum(axis=1) for k in range(3)])
    np.testing.assert_allclose((gradient[:, 1:] * step[:, 1:]).sum(axis=1), gains.max(axis=0))
    assert actions().contains(X, step).all()
    assert (gains.argmax(axis=0) != CATEGORY).any()


@pytest.mark.parametrize(
    ("settings", "reachable"),
    [({"immutable": (2,)}, {0, 2}), ({"only_decrease": (3,)}, {0, 1}), ({"immutable": (1, 2)}, ())],
)
def test_categories_that_may_not_be_entered_or_left_are_respected(settings, reachable):
    allowed = actions(**settings)
    step = single_step(SCORE, X, allowed)
    assert allowed.contains(X, step).all()
    moved = (step[:, 1:] != 0.0).any(axis=1)
    after = np.argmax(ORIGINAL[:, 1:] + step[:, 1:] * SCALE[1:], axis=1)
    assert set(after[moved]) <= set(reachable)
    assert moved.any() == bool(reachable)


def test_people_in_no_category_stay_and_bounds_are_one_category():
    nobody = X.copy()
    nobody[:, 1:] = -MEAN[1:] / SCALE[1:]
    assert (single_step(SCORE, nobody, actions())[:, 1:] == 0.0).all()
    limits = rows_with_bounds(X, actions())
    np.testing.assert_allclose(limits[0, 9:12], 1.0 / SCALE[1:])


def test_a_group_that_cannot_move_needs_no_step():
    assert movable_groups(actions(immutable=(1, 2, 3)), 4) == ()
    constrained = ActionSet(groups=[(1, 2, 3)], A=[[1.0, 0.0, 0.0, 0.0]], b=[1.0])
    assert movable_groups(constrained, 4) == ()
