"""Reach with its two derivatives: the same as the response's, and as differences say."""

import numpy as np
import pytest
import torch

from countermove.people import (
    ActionSet,
    LinearCost,
    MahalanobisCost,
    QuadraticCost,
    WeightedQuadraticCost,
)
from countermove.response import BestResponse, NoResponse, ScalarResponse
from countermove.response.training_signal import (
    OwnReach,
    SharedReach,
    has_second_order,
    reach_of,
)
from countermove.scores import LinearScore

N, D = 60, 5
X = np.random.default_rng(0).normal(size=(N, D))
WEIGHT = np.array([1.0, -0.6, 0.3, 0.0, -0.2])
COSTS = {
    "quadratic": QuadraticCost(0.7),
    "weighted": WeightedQuadraticCost([0.5, 1.0, 2.0, 0.3, 0.8]),
}
ACTIONS = {
    "free": ActionSet(),
    "immutable": ActionSet(immutable=[0, 3]),
    "one way": ActionSet(only_increase=[0, 1], only_decrease=[2, 4]),
    "box": ActionSet(lower=[-0.3] * D, upper=[0.2, 0.4, 0.1, 0.5, 0.3]),
    "values": ActionSet(min_value=X.min(axis=0) - 0.1, max_value=X.max(axis=0), immutable=[1]),
    "own": ActionSet(upper=np.abs(X[:, ::-1]), lower=-np.abs(X)),
}
cases = pytest.mark.parametrize(
    "response",
    [BestResponse(cost, actions) for cost in COSTS.values() for actions in ACTIONS.values()]
    + [BestResponse(QuadraticCost(0.7), ACTIONS["box"]).with_log_price([0.0, 0.0, 0.0, 0.0, 0.0])],
    ids=[f"{c}-{a}" for c in COSTS for a in ACTIONS] + ["priced"],
)


def rule(weight=WEIGHT, bias=-0.2):
    score = LinearScore(len(weight))
    with torch.no_grad():
        score.weight.copy_(torch.from_numpy(np.asarray(weight)))
        score.bias.fill_(bias)
    return score


def gains(reach):
    return reach.reach if isinstance(reach, OwnReach) else reach.factor * reach.reach


def tangents(reach):
    if isinstance(reach, OwnReach):
        return reach.moved - X
    return np.broadcast_to(np.outer(reach.factor, reach.direction), X.shape)


@cases
def test_the_reach_is_that_of_the_best_response(response):
    score, rows = rule(), torch.from_numpy(X)
    now = score(rows).detach().numpy()
    after = response.scores_after(score, rows)
    np.testing.assert_allclose(
        now + gains(reach_of(response, WEIGHT, X)), after.detach(), atol=1e-7
    )
    (by_weight,) = torch.autograd.grad(after.sum(), score.weight)
    expected = (X + tangents(reach_of(response, WEIGHT, X))).sum(axis=0)
    free = WEIGHT != 0.0  # At zero a feature may have two slopes.
    np.testing.assert_allclose(by_weight.numpy()[free], expected[free], atol=1e-6)


@pytest.mark.parametrize("actions", ["free", "immutable", "one way"])
@pytest.mark.parametrize("cost", COSTS)
def test_the_curvature_is_that_of_differences(cost, actions):
    response = BestResponse(COSTS[cost], ACTIONS[actions])
    by_score = np.random.default_rng(1).normal(size=N)
    weight = np.where(WEIGHT == 0.0, 0.25, WEIGHT)
    shared = reach_of(response, weight, X)
    found = (by_score * shared.factor).sum() * shared.curvature
    step = 1e-6
    for j in range(D):
        ends = []
        for sign in (1.0, -1.0):
            moved = weight.copy()
            moved[j] += sign * step
            ends.append(by_score @ tangents(reach_of(response, moved, X)))
        np.testing.assert_allclose(found[j], (ends[0] - ends[1]) / (2 * step), atol=2e-5)


def test_prices_by_person_set_the_budget():
    response = BestResponse(QuadraticCost(0.5), ActionSet(immutable=[3])).with_log_price(
        [0.0, 0.0, 0.0, 0.8, 0.0]
    )
    reach = reach_of(response, WEIGHT, X)
    assert isinstance(reach, SharedReach)
    prices = 0.5 * np.exp(0.8 * X[:, 3])
    usable = WEIGHT * [1, 1, 1, 0, 1]
    np.testing.assert_allclose(
        gains(reach), np.sqrt(2.0 / prices) * np.linalg.norm(usable), rtol=1e-6
    )


def test_nobody_moves_where_nobody_does():
    assert reach_of(NoResponse(), WEIGHT, X) is None


def test_whoever_may_not_stay_has_no_plain_reach():
    inside = ActionSet(max_value=np.median(X, axis=0))
    assert reach_of(BestResponse(actions=inside), WEIGHT, X) == "unknown"


@pytest.mark.parametrize(
    ("response", "known"),
    [
        (NoResponse(), True),
        (BestResponse(), True),
        (BestResponse(MahalanobisCost(np.eye(D))), False),
        (BestResponse(LinearCost(np.ones(D)), ACTIONS["box"]), False),
        (BestResponse(actions=ActionSet(A=np.ones((1, D)), b=[1.0])), False),
        (ScalarResponse(), False),
    ],
)
def test_only_plain_quadratic_costs_have_one(response, known):
    assert has_second_order(response) is known
