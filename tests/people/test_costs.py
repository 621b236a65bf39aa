"""What a move costs: canonical shapes, units, multiples."""

import numpy as np
import pytest
import torch

from countermove.errors import CostError, UnknownNameError
from countermove.people import (
    ConicCost,
    Cost,
    LinearCost,
    MahalanobisCost,
    MixtureCost,
    QuadraticCost,
    WeightedQuadraticCost,
    cost_from_description,
)

DIRECTION = np.array([1.0, -2.0, 0.5])
MATRIX = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 3.0]])
COSTS: list[Cost] = [
    QuadraticCost(0.7),
    WeightedQuadraticCost([1.0, 2.0, 0.5]),
    MahalanobisCost(MATRIX),
    LinearCost(DIRECTION),
    MixtureCost(DIRECTION, gamma=0.3, scale=1.5),
    MixtureCost(DIRECTION, gamma=0.3, scale=1.5, weights=[1.0, 4.0, 2.0]),
]
kinds = pytest.mark.parametrize("cost", COSTS, ids=lambda cost: cost.kind)


def people(n: int = 20) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    return rng.normal(size=(n, 3)), rng.normal(size=(n, 3))


def test_prices_are_the_written_formulas():
    X, X_new = people()
    move = X_new - X
    square = (move**2).sum(axis=1)
    along = np.maximum(0.0, move @ DIRECTION)
    expected = [
        0.7 * square,
        move**2 @ np.array([1.0, 2.0, 0.5]),
        np.einsum("ni,ij,nj->n", move, MATRIX, move),
        along,
        1.5 * (0.7 * along + 0.3 * square),
        1.5 * (0.7 * along + 0.3 * move**2 @ np.array([1.0, 4.0, 2.0])),
    ]
    for cost, price in zip(COSTS, expected, strict=True):
        np.testing.assert_allclose(cost.price(X, X_new), price, rtol=1e-13)


@kinds
def test_staying_is_free(cost):
    X, _ = people()
    assert (cost.price(X, X) == 0.0).all()


@kinds
def test_tensors_give_tensors_with_gradients(cost):
    X, X_new = map(torch.from_numpy, people())
    X_new.requires_grad_()
    price = cost.price(X, X_new)
    np.testing.assert_allclose(
        price.detach().numpy(), cost.price(X.numpy(), X_new.detach().numpy())
    )
    price.sum().backward()
    assert X_new.grad is not None


@kinds
def test_rescaled_costs_charge_the_same_for_the_same_move(cost):
    X, X_new = people()
    scale = np.array([2.0, 0.1, 5.0])
    standard = cost.rescaled(scale)
    np.testing.assert_allclose(
        standard.price(X / scale, X_new / scale), cost.price(X, X_new), rtol=1e-12
    )


@kinds
def test_a_description_rebuilds_the_cost(cost):
    X, X_new = people()
    again = cost_from_description(cost.describe())
    np.testing.assert_array_equal(again.price(X, X_new), cost.price(X, X_new))
    assert type(cost).__name__ in repr(cost)


def test_unknown_kinds_name_the_nearest():
    with pytest.raises(UnknownNameError, match="quadratic"):
        cost_from_description({"kind": "quadratik"})


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: QuadraticCost(-1.0), "positive"),
        (lambda: QuadraticCost(0.0), "positive"),
        (lambda: QuadraticCost(float("nan")), "finite"),
        (lambda: WeightedQuadraticCost([1.0, -2.0]), "positive"),
        (lambda: WeightedQuadraticCost(2.0), "per feature"),
        (lambda: MahalanobisCost([[1.0, 2.0], [2.0, 1.0]]), "positive definite"),
        (lambda: MahalanobisCost([[1.0, 0.0], [0.5, 1.0]]), "symmetric"),
        (lambda: MahalanobisCost([[1.0, 0.0]]), "square"),
        (lambda: MixtureCost([1.0], gamma=1.2), "gamma"),
        (lambda: MixtureCost([1.0], gamma=0.2, scale=-1.0), "positive"),
        (lambda: LinearCost([np.inf]), "finite"),
    ],
)
def test_senseless_coefficients_are_refused(make, says):
    with pytest.raises(CostError, match=says):
        make()


@pytest.mark.parametrize("cost", COSTS[1:], ids=lambda cost: cost.kind)
def test_widths_must_fit_the_people(cost):
    with pytest.raises(CostError, match="features"):
        cost.price(np.zeros((2, 5)), np.ones((2, 5)))


def test_the_ends_of_a_mixture_are_its_parts():
    X, X_new = people()
    np.testing.assert_allclose(
        MixtureCost(DIRECTION, 0.0).price(X, X_new), LinearCost(DIRECTION).price(X, X_new)
    )
    np.testing.assert_allclose(
        MixtureCost(DIRECTION, 1.0).price(X, X_new), QuadraticCost().price(X, X_new)
    )


def test_a_conic_cost_says_who_prices_it():
    cost = ConicCost(lambda x, x_new: x_new - x)
    with pytest.raises(CostError, match="ConicResponse"):
        cost.price(np.zeros((1, 2)), np.ones((1, 2)))
    assert cost.describe()["kind"] == "conic"


@pytest.mark.parametrize("cost", COSTS, ids=lambda cost: cost.kind)
@pytest.mark.parametrize("factor", [0.125, 1.0, 8.0])
def test_every_price_is_multiplied(cost, factor):
    X, X_new = np.random.default_rng(0).normal(size=(2, 20, 3))
    multiplied = cost.times(factor)
    assert multiplied.kind == cost.kind
    assert multiplied.price(X, X_new) == pytest.approx(factor * cost.price(X, X_new))


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
        ConicResponse(c).respond(score, X) for c in (cost(0.25).times(3.0), cost(0.75))
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
        QuadraticCost().times(factor)


def test_an_unknown_cost_is_named():
    with pytest.raises(CostError, match="Own"):
        Own().times(2.0)
