"""A cost times a factor is that factor times the cost, whatever its kind."""

import numpy as np
import pytest

from countermove.errors import CostError
from countermove.people import (
    ConicCost,
    Cost,
    LinearCost,
    MahalanobisCost,
    MixtureCost,
    QuadraticCost,
    WeightedQuadraticCost,
)
from countermove.people.scaled import times

COSTS = [
    QuadraticCost(0.7),
    WeightedQuadraticCost([1.0, 2.0, 3.0]),
    MahalanobisCost(np.eye(3) + 0.2),
    LinearCost([1.0, -0.5, 2.0]),
    MixtureCost([1.0, 0.5, 0.0], 0.3, 2.0, [1.0, 2.0, 0.5]),
]


@pytest.mark.parametrize("cost", COSTS, ids=lambda cost: cost.kind)
@pytest.mark.parametrize("factor", [0.125, 1.0, 8.0])
def test_every_price_is_multiplied(cost, factor):
    X, X_new = np.random.default_rng(0).normal(size=(2, 20, 3))
    dearer = times(cost, factor)
    assert dearer.kind == cost.kind
    assert dearer.price(X, X_new) == pytest.approx(factor * cost.price(X, X_new))


def lifted(x, x_new, action, weight):
    import cvxpy as cp

    return weight * cp.norm1(action)


def test_a_conic_cost_keeps_its_arguments_units_and_signs():
    from countermove.response import ConicResponse
    from countermove.scores import LinearScore

    def cost(weight):
        return ConicCost(lifted, {"weight": weight}, {"weight": "nonneg"}).rescaled([1.0, 2.0])

    score = LinearScore(2)
    score.load_state_dict({"weight": np_tensor([1.0, 0.3]), "bias": np_tensor(-1.0)})
    X = np.array([[0.4, 0.1], [-2.0, 0.0]])
    multiplied, written = (
        ConicResponse(c).respond(score, X) for c in (times(cost(0.25), 3.0), cost(0.75))
    )
    assert multiplied.x_new == pytest.approx(written.x_new, abs=1e-5)
    assert multiplied.cost == pytest.approx(written.cost, abs=1e-5)
    assert written.cost[0] > 0.01


def np_tensor(value):
    import torch

    return torch.tensor(value, dtype=torch.float64)


class Own(Cost):
    kind = "own"

    def canonical(self, n_features):
        return None

    def rescaled(self, scale):
        return self

    def describe(self):
        return {"kind": self.kind}


@pytest.mark.parametrize("factor", [0.0, -1.0, float("nan"), float("inf")])
def test_a_factor_is_a_positive_number(factor):
    with pytest.raises(CostError, match="positive number"):
        times(QuadraticCost(), factor)


def test_an_unknown_cost_is_named():
    with pytest.raises(CostError, match="Own"):
        times(Own(), 2.0)
