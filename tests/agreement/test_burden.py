"""The burden in closed form against the conic layers: the same prices, people and gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from countermove.learning import SocialBurden
from countermove.people import (
    ActionSet,
    ConicCost,
    Cost,
    LinearCost,
    MahalanobisCost,
    MixtureCost,
    QuadraticCost,
    WeightedQuadraticCost,
)
from countermove.response import BestResponse
from countermove.scores import LinearScore

D, PEOPLE = 3, 16
DIRECTION, WEIGHTS = [0.9, -0.6, 0.4], [0.5, 1.4, 0.8]
MATRIX = np.array([[1.0, 0.3, 0.0], [0.3, 0.8, 0.1], [0.0, 0.1, 0.6]])
COSTS: dict[str, Cost] = {
    "quadratic": QuadraticCost(0.7),
    "weighted": WeightedQuadraticCost(WEIGHTS),
    "mahalanobis": MahalanobisCost(MATRIX),
    "linear": LinearCost(DIRECTION),
    "mixture": MixtureCost(DIRECTION, 0.4, 1.5),
}
BOX = ActionSet(lower=[-0.6] * D, upper=[0.9, 0.5, 0.7], min_value=[-1.5] * D, only_increase=[0])
COUPLED = ActionSet(
    lower=[-0.6] * D, upper=[0.9, 0.5, 0.7], A=[[-1.0, -1.0, -1.0]], b=[0.8]
)  # the three moves together raise at most 0.8


def rule() -> LinearScore:
    score = LinearScore(D)
    with torch.no_grad():
        score.weight.copy_(torch.tensor([0.8, -0.5, 0.6]))
        score.bias.fill_(-0.4)
    return score


def people() -> torch.Tensor:
    rng = np.random.default_rng(11)
    return torch.from_numpy(rng.normal(size=(PEOPLE, D)).clip(-1.4, 1.4))


def by_hand(x, x_new, action, root):
    """The weighted quadratic cost, written in CVXPY."""
    import cvxpy as cp

    return cp.sum_squares(cp.multiply(root, action))


def written(name: str) -> ConicCost:
    """Return a closed-form cost written in CVXPY."""
    import cvxpy as cp

    root = np.linalg.cholesky(MATRIX).T
    squares = {
        "quadratic": lambda x, x_new: 0.7 * cp.sum_squares(x_new - x),
        "weighted": lambda x, x_new: cp.sum_squares(cp.multiply(np.sqrt(WEIGHTS), x_new - x)),
        "mahalanobis": lambda x, x_new: cp.sum_squares(root @ (x_new - x)),
        "linear": lambda x, x_new: cp.pos(np.array(DIRECTION) @ (x_new - x)),
        "mixture": lambda x, x_new: (
            1.5 * 0.6 * cp.pos(np.array(DIRECTION) @ (x_new - x))
            + 1.5 * 0.4 * cp.sum_squares(x_new - x)
        ),
    }
    return ConicCost(squares[name])


def gradients(crossing, score) -> np.ndarray:
    wanted = torch.autograd.grad(crossing.cost.sum(), [score.weight, score.bias])
    return np.concatenate([part.numpy().ravel() for part in wanted])


@pytest.mark.parametrize("name", COSTS)
def test_closed_form_and_conic_prices_agree(name):
    score, X = rule(), people()
    closed = BestResponse(COSTS[name], BOX).crossing(score, X)
    conic = BestResponse(written(name), BOX).crossing(score, X)
    assert torch.equal(closed.possible, conic.possible)
    assert 0 < int(closed.possible.sum()) < PEOPLE  # the box keeps some of them out
    assert float((closed.cost > 1e-3).sum()) >= 3
    np.testing.assert_allclose(closed.cost.detach(), conic.cost.detach(), atol=2e-6)
    np.testing.assert_allclose(gradients(closed, score), gradients(conic, score), atol=2e-3)


def test_extra_constraints_keep_the_same_people_out():
    """Closed form by the dual active set, conic by the layer that finds what is missing."""
    score, X = rule(), people()
    closed = BestResponse(QuadraticCost(0.7), COUPLED).crossing(score, X)
    conic = BestResponse(written("quadratic"), COUPLED).crossing(score, X)
    assert torch.equal(closed.possible, conic.possible)
    assert 0 < int(closed.possible.sum()) < PEOPLE
    np.testing.assert_allclose(closed.cost.detach(), conic.cost.detach(), atol=2e-6)


def test_a_cost_written_in_cvxpy_has_the_burden_of_its_closed_form():
    score, X = rule(), people()
    y = torch.from_numpy(np.where(np.arange(PEOPLE) % 3, 1.0, -1.0))
    written = ConicCost(by_hand, {"root": np.sqrt(WEIGHTS)}, {"root": "nonneg"})
    found = [
        SocialBurden().measure(score, X, y, BestResponse(cost, BOX))
        for cost in (COSTS["weighted"], written)
    ]
    assert float(found[1].detach()) == pytest.approx(float(found[0].detach()), abs=2e-6)
    slopes = [torch.autograd.grad(value, score.weight)[0].numpy() for value in found]
    np.testing.assert_allclose(slopes[1], slopes[0], atol=2e-3)
    prices = [
        BestResponse(cost, BOX).crossing_cost(score, X.numpy())
        for cost in (COSTS["weighted"], written)
    ]
    assert (np.isinf(prices[0]) == np.isinf(prices[1])).all()
