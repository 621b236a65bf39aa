"""People before affine rules in whole steps: the highest score equals trying every move."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from countermove.learning.simple_rules import linear_score
from countermove.learning.whole_steps import FINE, WholeStepResponse
from countermove.people import ActionSet, QuadraticCost
from countermove.response import BestResponse

WEIGHT = np.array([1.0, -0.7, 0.4, 2.0])
RULE = linear_score(np.append(WEIGHT, -3.0)).requires_grad_(False)


def every_move(X: np.ndarray, low: int, free: bool) -> np.ndarray:
    """Return the highest score for less than two, over whole steps of two columns."""
    found = np.full(len(X), -np.inf)
    for a in range(low, 3):
        for b in range(-2, 3):
            paid = float(a * a + b * b)
            if paid < 2.0:
                rest = 0.4 * np.sqrt(2.0 - paid) if free else 0.0
                found = np.maximum(found, X @ WEIGHT - 3.0 + a - 0.7 * b + rest)
    return found


@pytest.mark.parametrize(("low", "free"), [(-2, False), (0, False), (-2, True), (0, True)])
def test_the_highest_score_is_that_of_the_best_whole_steps(low, free):
    X = np.random.default_rng(0).normal(size=(80, 4))
    held = (3,) if free else (2, 3)
    up = (0,) if low == 0 else ()
    actions = ActionSet(integer=(0, 1), immutable=held, only_increase=up)
    people = WholeStepResponse(QuadraticCost(1.0), actions)
    found = people.scores_after(RULE, torch.from_numpy(X)).numpy()
    wanted = every_move(X, low, free)
    reach = np.sqrt(2.0) * np.linalg.norm(WEIGHT[:3])
    np.testing.assert_allclose(found, wanted, atol=FINE * reach)
    assert (people.decisions_after(RULE, X) == (wanted >= 0.0)).all()
    relaxed = BestResponse(QuadraticCost(1.0), actions)
    eased = relaxed.scores_after(RULE, torch.from_numpy(X)).numpy()
    assert (eased >= found - 1e-9).all()
    assert (eased > found + 0.05).any()


def test_without_whole_steps_it_is_the_best_response():
    X = np.random.default_rng(1).normal(size=(50, 4))
    actions = ActionSet(immutable=(3,))
    ours, best = (kind(QuadraticCost(1.0), actions) for kind in (WholeStepResponse, BestResponse))
    rows = torch.from_numpy(X)
    assert torch.equal(ours.scores_after(RULE, rows), best.scores_after(RULE, rows).detach())


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_whoever_may_not_stay_crosses_in_whole_steps_for_the_gain_beyond_what_they_pay(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(scale=2.0, size=(120, 4)).round(2)
    low, high = np.tile([-2.0, -2.0, 0.0, 0.0], (120, 1)), np.tile([2.0, 2.0, 0.0, 0.0], (120, 1))
    low[:40, 0], high[40:80, 0] = 1.0, -1.0
    people = BestResponse(QuadraticCost(1.0), ActionSet(low, high, integer=(0, 1)))
    wanted = np.zeros(len(X), bool)
    for i, x in enumerate(X):
        steps = [(a, b) for a in np.arange(low[i, 0], high[i, 0] + 1) for b in range(-2, 3)]
        floor = min(a * a + b * b for a, b in steps)
        best = max(2.0 * (x @ WEIGHT - 3.0 + a - 0.7 * b >= 0.0) - a * a - b * b for a, b in steps)
        wanted[i] = best > -floor or any(
            x @ WEIGHT - 3.0 + a - 0.7 * b >= 0.0 for a, b in steps if a * a + b * b == floor
        )
    now = X @ WEIGHT - 3.0 >= 0.0
    assert (wanted[:80] & ~now[:80]).any()
    np.testing.assert_array_equal(people.decisions_in_whole_steps(RULE, X), wanted)
    whole = WholeStepResponse(QuadraticCost(1.0), ActionSet(low, high, integer=(0, 1)))
    scores = whole.scores_after(RULE, torch.from_numpy(X)).numpy()
    np.testing.assert_array_equal(scores >= 0.0, wanted)
