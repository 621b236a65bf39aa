"""The best response: closed form against search, and the promises made about it."""

import numpy as np
import pytest
import torch

from countermove.errors import (
    CostError,
    DataError,
    InfeasibleActionsError,
    ParameterError,
    UnboundedResponseError,
)
from countermove.people import (
    ActionSet,
    LinearCost,
    MixtureCost,
    QuadraticCost,
    WeightedQuadraticCost,
)
from countermove.response import BestResponse
from countermove.scores import PartlyLinearScore


def least_cost_by_search(case, x: np.ndarray, n: int = 40_000) -> float:
    """Return the least cost of a favourable place found among random allowed actions."""
    rng = np.random.default_rng(1)
    lower, upper = case.actions.box(x[None])
    lower, upper = np.maximum(lower[0], -2.5), np.minimum(upper[0], 2.5)
    actions = rng.uniform(lower, upper, size=(n, len(x)))
    gains = actions @ case.w
    need = -(x @ case.w + case.b)
    # Shrink what overshoots to the boundary: no more expensive, since costs are convex and 0 at 0.
    useful = gains >= need
    shrunk = actions[useful] * (need / gains[useful])[:, None]
    if not len(shrunk):
        return np.inf
    return float(case.cost.price(np.zeros_like(shrunk), shrunk).min())


def test_nobody_finds_a_better_response_by_search(make_case, cost_name, boxed):
    case = make_case(cost_name, 0, boxed, n=12, d=3)
    found = BestResponse(case.cost, case.actions).respond(case.score, case.X)
    scores = case.X @ case.w + case.b
    after = found.x_new @ case.w + case.b
    for i in np.flatnonzero(scores < 0.0):
        searched = least_cost_by_search(case, case.X[i])
        if after[i] >= 0.0:
            assert found.cost[i] <= searched + 1e-9
            assert found.cost[i] < 2.0
        else:
            assert searched > 2.0 - 1e-9
    assert (found.cost[scores >= 0.0] == 0.0).all()


def test_the_response_is_allowed_priced_and_never_unfavourable_by_rounding(
    make_case, cost_name, boxed
):
    case = make_case(cost_name, 1, boxed, n=400)
    found = BestResponse(case.cost, case.actions).respond(case.score, case.X)
    assert case.actions.contains(case.X, found.x_new - case.X, tolerance=1e-12).all()
    np.testing.assert_allclose(case.cost.price(case.X, found.x_new), found.cost, atol=1e-12)
    moved = found.x_new[found.moved]
    assert 0 < len(moved) < len(case.X)
    with torch.no_grad():
        for size in (1, 7, len(moved)):
            parts = [
                case.score(torch.from_numpy(moved[i : i + size]))
                for i in range(0, len(moved), size)
            ]
            assert (torch.cat(parts) >= 0.0).all()
    assert ((moved @ case.w + case.b) < 1e-9).all()
    assert (found.x_new[~found.moved] == case.X[~found.moved]).all()


def test_decisions_and_signal_agree_with_the_places(make_case, cost_name, boxed):
    case = make_case(cost_name, 2, boxed, n=400)
    response = BestResponse(case.cost, case.actions)
    after = response.respond(case.score, case.X).x_new @ case.w + case.b >= 0.0
    np.testing.assert_array_equal(response.decisions_after(case.score, case.X), after)
    signal = response.scores_after(case.score, torch.from_numpy(case.X)).detach().numpy()
    np.testing.assert_array_equal(signal >= 0.0, after)


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
def test_reach_under_a_quadratic_cost_is_root_two_over_t(make_score, scale):
    """reference: serm.md 3', hard best response with gain 2."""
    score = make_score([3.0, -4.0], 0.0)
    signal = BestResponse(QuadraticCost(scale)).scores_after(score, torch.zeros(1, 2).double())
    assert float(signal.detach()) == pytest.approx(np.sqrt(2.0 / scale) * 5.0, rel=1e-14)
    bounded = BestResponse(QuadraticCost(scale), ActionSet(upper=[1e6, 1e6]))
    again = bounded.scores_after(score, torch.zeros(1, 2).double())
    assert float(again.detach()) == pytest.approx(float(signal.detach()), rel=1e-12)


def test_a_score_of_exactly_zero_is_favourable_and_an_even_trade_is_not_made(make_score):
    score = make_score([1.0, 0.0], -1.0)
    X = np.array([[1.0, 5.0], [1.0 - np.sqrt(2.0), 0.0], [1.0 - np.sqrt(2.0) + 1e-9, 0.0]])
    found = BestResponse(QuadraticCost(1.0)).respond(score, X)
    assert found.moved.tolist() == [False, False, True]


def test_results_do_not_depend_on_the_partition(make_case, cost_name, boxed):
    case = make_case(cost_name, 3, boxed, n=257)
    response = BestResponse(case.cost, case.actions)
    whole = response.respond(case.score, case.X)
    for size in (1, 3, 100):
        parts = [
            response.respond(case.score, case.X[i : i + size]) for i in range(0, len(case.X), size)
        ]
        np.testing.assert_array_equal(np.vstack([part.x_new for part in parts]), whole.x_new)
        np.testing.assert_array_equal(np.concatenate([part.cost for part in parts]), whole.cost)


def differentiable(case, response):
    """Return (function, inputs): places and training signal of weights, bias, X and cost."""
    names = [
        n for n in ("scale", "weights", "matrix", "direction", "gamma") if hasattr(case.cost, n)
    ]
    coefficients = [getattr(case.cost, name).detach().clone() for name in names]

    def function(w, b, X, *given):
        cost = type(case.cost)(**dict(zip(names, (_symmetric(g) for g in given), strict=True)))
        score = type(case.score)(len(case.w))
        del score.weight, score.bias
        score.weight, score.bias = w, b
        answer = type(response)(cost, case.actions)
        return answer.respond(score, X).x_new, answer.scores_after(score, X)

    inputs = [case.score.weight.detach().clone(), case.score.bias.detach().clone()]
    inputs += [torch.from_numpy(case.X.copy()), *coefficients]
    return function, tuple(tensor.requires_grad_() for tensor in inputs)


def _symmetric(tensor):
    return 0.5 * (tensor + tensor.T) if tensor.dim() == 2 else tensor


def test_gradients_of_the_crossing_and_of_the_reach(make_case, cost_name, boxed):
    case = make_case(cost_name, 4, boxed, n=8, d=4)
    case.X[:] *= 0.7  # strictly inside: at a bound there is no derivative
    function, inputs = differentiable(case, BestResponse())
    if cost_name == "linear":
        # On free crossings only the share of the free action is differentiated; see tangents.
        assert torch.autograd.gradcheck(lambda *i: function(*i)[1], inputs, atol=1e-5)
    else:
        assert torch.autograd.gradcheck(function, inputs, atol=1e-5)


def test_a_zero_rule_moves_nobody(make_case, cost_name):
    case = make_case(cost_name, 5, True)
    with torch.no_grad():
        case.score.weight.zero_()
        case.score.bias.fill_(-1.0)
    response = BestResponse(case.cost, case.actions)
    assert not response.respond(case.score, case.X).moved.any()
    signal = response.scores_after(case.score, torch.from_numpy(case.X))
    signal.sum().backward()
    assert torch.isfinite(case.score.weight.grad).all()


def test_the_zero_gradient_of_an_unbounded_zero_rule_is_finite(make_score):
    score = make_score([0.0, 0.0], -1.0)
    BestResponse().scores_after(score, torch.ones(3, 2).double()).sum().backward()
    assert torch.isfinite(score.weight.grad).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("cost", [QuadraticCost(), MixtureCost([1.0, 1.0], 0.5)])
def test_features_that_are_no_numbers_are_named(make_score, cost, bad):
    X = np.zeros((4, 2))
    X[2, 1] = bad
    with pytest.raises(DataError, match="rows 2") as caught:
        BestResponse(cost).respond(make_score([1.0, 0.0], 0.0), X)
    assert caught.value.rows == (2,)


def test_bad_shapes_weights_and_modes_are_refused(make_score):
    score = make_score([1.0, 1.0], 0.0)
    with pytest.raises(DataError, match="2 features"):
        BestResponse().respond(score, np.zeros((3, 4)))
    with pytest.raises(DataError, match="numbers"):
        BestResponse().respond(score, np.array([["a", "b"]]))
    with pytest.raises(ParameterError, match="NaN"):
        BestResponse().respond(make_score([np.nan, 1.0], 0.0), np.zeros((1, 2)))
    with pytest.raises(ParameterError, match="on_failure"):
        BestResponse().respond(score, np.zeros((3, 2)), on_failure="ignore")
    with pytest.raises(CostError, match="3 weights"):
        BestResponse(WeightedQuadraticCost([1.0, 1.0, 1.0])).respond(score, np.zeros((1, 2)))


@pytest.mark.parametrize(
    "cost", [QuadraticCost(), MixtureCost([1.0, 1.0], 0.5), LinearCost([1, 1])]
)
def test_people_without_any_action_are_named(make_score, cost):
    actions = ActionSet(min_value=[0.0, 0.0], max_value=[5.0, 5.0], only_decrease=[0])
    X = np.array([[1.0, 1.0], [-2.0, 1.0], [3.0, 3.0], [-1.0, 0.0]])
    with pytest.raises(InfeasibleActionsError) as caught:
        BestResponse(cost, actions).respond(make_score([1.0, 1.0], -9.0), X)
    assert caught.value.rows == (1, 3)


def test_an_unbounded_response_says_why_and_what_to_add(make_score):
    response = BestResponse(LinearCost([1.0, -1.0]))
    with pytest.raises(UnboundedResponseError, match="Bound the actions") as caught:
        response.respond(make_score([1.0, 1.0], -1.0), np.zeros((2, 2)))
    assert caught.value.rows == (0, 1)


def test_a_linear_cost_along_the_score_needs_no_bounds(make_score):
    """With one feature there is nothing to trade against: the price of score is constant."""
    score = make_score([2.0], -3.0)
    found = BestResponse(LinearCost([1.0])).respond(score, np.array([[0.0], [-0.6]]))
    assert found.cost == pytest.approx([1.5, 0.0], abs=1e-9)
    assert found.moved.tolist() == [True, False]


def test_people_beyond_a_bound_come_back_and_pay_the_difference(make_score):
    actions = ActionSet(max_value=[1.0, 1.0])
    score = make_score([-1.0, 1.0], 0.0)
    found = BestResponse(QuadraticCost(1.0), actions).respond(score, np.array([[3.0, 0.0]]))
    assert found.x_new[0, 0] <= 1.0
    assert found.x_new[0] @ [-1.0, 1.0] >= 0.0
    assert found.cost[0] == pytest.approx(4.0 + 0.5, abs=2.1)


def test_per_person_bounds_and_immutables_hold(make_score):
    rng = np.random.default_rng(0)
    X, upper = rng.normal(size=(50, 3)), rng.uniform(0.0, 0.6, size=(50, 3))
    actions = ActionSet(lower=-upper, upper=upper, immutable=[1])
    found = BestResponse(QuadraticCost(0.2), actions).respond(make_score([1.0, 2.0, -1.0], -0.5), X)
    assert (np.abs(found.x_new - X) <= upper + 1e-12).all()
    np.testing.assert_array_equal(found.x_new[:, 1], X[:, 1])
    assert found.moved.any()


def test_the_score_may_be_any_network_of_what_cannot_move():
    score = PartlyLinearScore(4, [0, 1], hidden=(8,), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        score.weight.copy_(torch.tensor([1.0, -2.0]))
    X = np.random.default_rng(0).normal(size=(300, 4))
    response = BestResponse(QuadraticCost(1.0))
    found = response.respond(score, X)
    np.testing.assert_array_equal(found.x_new[:, 2:], X[:, 2:])
    with torch.no_grad():
        after = score(torch.from_numpy(found.x_new)).numpy()
        before = score(torch.from_numpy(X)).numpy()
    assert (after[found.moved] >= 0.0).all()
    reach = np.sqrt(2.0) * np.sqrt(5.0)
    np.testing.assert_array_equal(found.moved, (before < 0.0) & (before + reach > 1e-9))
    np.testing.assert_array_equal(response.decisions_after(score, X), before + reach > 1e-9)


def test_extra_constraints_bind(make_score):
    """A δ + b ≥ 0 keeps the two moves together; the cheapest crossing obeys it."""
    actions = ActionSet(A=[[1.0, -1.0], [-1.0, 1.0]], b=[0.0, 0.0])
    found = BestResponse(QuadraticCost(1.0), actions).respond(
        make_score([1.0, 0.0], -0.5), np.zeros((1, 2))
    )
    np.testing.assert_allclose(found.x_new, [[0.5, 0.5]], atol=1e-9)
    assert found.cost[0] == pytest.approx(0.5, abs=1e-9)


def test_a_response_describes_itself():
    described = BestResponse(QuadraticCost(2.0), ActionSet(immutable=[1])).describe()
    assert described == {
        "kind": "best",
        "cost": {"kind": "quadratic", "scale": 2.0},
        "actions": {"immutable": [1]},
    }
