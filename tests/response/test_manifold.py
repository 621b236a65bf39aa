"""Moves within a tangent space: exact, differentiable, and checked against places tried."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from countermove.data.synthetic import ParabolaTangents, on_parabola, parabola
from countermove.errors import CostError, DataError, ParameterError
from countermove.people import (
    LinearCost,
    MahalanobisCost,
    QuadraticCost,
    WeightedQuadraticCost,
)
from countermove.response import BestResponse, ScalarResponse
from countermove.response.manifold import PointsResponse, TangentResponse, _smoothed_gain
from countermove.response.step import rise

from .conftest import linear_score

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 3))
RULE = linear_score([1.0, -0.5, 0.7], -1.0)
COSTS = [
    QuadraticCost(0.8),
    WeightedQuadraticCost([0.5, 1.0, 2.0]),
    MahalanobisCost([[2.0, 0.3, 0.0], [0.3, 1.0, 0.1], [0.0, 0.1, 1.5]]),
]


class Everywhere:
    """All directions are open."""

    def tangents(self, X):
        return np.tile(np.eye(X.shape[1]), (len(X), 1, 1))


class Planes:
    """Two random directions, each person their own."""

    def tangents(self, X):
        rng = np.random.default_rng(0)
        return np.linalg.qr(rng.normal(size=(len(X), X.shape[1], 2)))[0]


@pytest.mark.parametrize("cost", COSTS, ids=lambda cost: cost.kind)
def test_where_everything_is_open_it_is_the_free_response(cost):
    hard = TangentResponse(Everywhere(), cost)
    free = BestResponse(cost)
    assert np.array_equal(hard.decisions_after(RULE, X), free.decisions_after(RULE, X))
    assert np.allclose(hard.respond(RULE, X).cost, free.respond(RULE, X).cost, atol=1e-9)
    for start in ("global", "stay"):
        soft = TangentResponse(Everywhere(), cost, "smooth", 0.4, start)
        same = ScalarResponse(cost, temperature=0.4, start=start)
        assert np.allclose(soft.respond(RULE, X).x_new, same.respond(RULE, X).x_new, atol=1e-7)


@pytest.mark.parametrize("behaviour", ["best", "smooth"])
def test_nobody_leaves_the_tangent_space(behaviour):
    found = TangentResponse(Planes(), QuadraticCost(0.2), behaviour).respond(RULE, X)
    basis = Planes().tangents(X)
    moves = found.x_new - X
    inside = np.einsum("ndr,ner,ne->nd", basis, basis, moves)
    assert found.moved.any()
    assert np.allclose(inside, moves, atol=1e-12)
    assert np.allclose(found.cost, 0.2 * (moves**2).sum(axis=1))


def test_rational_people_cross_exactly_if_it_pays():
    response = TangentResponse(Planes(), QuadraticCost(0.5))
    found = response.respond(RULE, X)
    with torch.no_grad():
        after = RULE(torch.from_numpy(found.x_new)).numpy()
    assert (after[found.moved] >= 0.0).all()
    assert (found.cost <= 2.0 + 1e-9).all()
    assert np.array_equal(after >= 0.0, response.decisions_after(RULE, X))


def test_nobody_finds_a_better_gain():
    response = TangentResponse(Planes(), QuadraticCost(0.3), "smooth", 0.3)
    found = response.respond(RULE, X)
    basis = Planes().tangents(X)
    w = RULE.weight.detach().numpy()
    unit = np.linalg.norm(np.einsum("ndr,d->nr", basis, w), axis=1)

    def utility(rows):
        with torch.no_grad():
            y = RULE(torch.from_numpy(rows)).numpy() / (0.3 * unit)
        step = 2 * y / (np.sqrt((y + 1) ** 2 + 1) + np.sqrt((y - 1) ** 2 + 1))
        return step - 0.3 * ((rows - X) ** 2).sum(axis=1)

    found = utility(found.x_new)
    for coefficients in RNG.normal(size=(500, len(X), 2)) * 2.0:
        assert (utility(X + np.einsum("ndr,nr->nd", basis, coefficients)) <= found + 1e-9).all()


@pytest.mark.parametrize("first", [True, False])
def test_everybody_stops_where_their_own_marginal_cost_meets_the_slope_of_the_step(first):
    rng = np.random.default_rng(7)
    now, reach = 3.0 * rng.normal(size=2_000), np.exp(rng.normal(size=2_000))
    sharpness = np.exp(rng.normal(size=2_000))
    reach[:20] = 0.0
    gain = _smoothed_gain(now, reach, sharpness, first)
    assert (gain[:20] == 0.0).all()
    # The derivative of step(sharpness (s + g)) - (g / reach)^2, times reach^2.
    miss = [
        a * r * r * rise(a * (s + g)) - 2.0 * g
        for s, r, a, g in zip(now, reach, sharpness, gain, strict=True)
    ]
    assert np.abs(miss).max() <= 1e-12 * (1.0 + (sharpness * reach**2).max())
    if first:
        best = _smoothed_gain(now, reach, sharpness, False)
        assert (gain <= best + 1e-12).all()
        assert (gain < best - 1e-3).any()


@pytest.mark.parametrize("start", ["global", "stay"])
@pytest.mark.parametrize("normalised", [True, False])
def test_gradients_are_those_of_the_scores_after(start, normalised):
    response = TangentResponse(Planes(), QuadraticCost(0.3), "smooth", 0.7, start, normalised)
    weight = torch.tensor([1.0, -0.5, 0.7], dtype=torch.float64, requires_grad=True)
    bias = torch.tensor(-0.6, dtype=torch.float64, requires_grad=True)

    def after(weight, bias):
        rule = linear_score([0.0, 0.0, 0.0], 0.0)
        return torch.func.functional_call(
            _After(rule, response), {"rule.weight": weight, "rule.bias": bias}, (_rows(),)
        )

    assert torch.autograd.gradcheck(after, (weight, bias), atol=1e-5)


class _After(torch.nn.Module):
    def __init__(self, rule, response):
        super().__init__()
        self.rule, self.response = rule, response

    def forward(self, rows):
        return self.response.scores_after(self.rule, rows)


def _rows():
    return torch.from_numpy(X[:8])


def test_only_quadratic_costs_and_whole_tangents_are_taken():
    with pytest.raises(CostError, match="got a linear cost"):
        TangentResponse(Everywhere(), LinearCost([1.0, 0.0, 0.0])).respond(RULE, X)

    class Flat:
        def tangents(self, X):
            return np.zeros((len(X), X.shape[1], 0))

    with pytest.raises(ParameterError, match="r of at least 1"):
        TangentResponse(Flat()).respond(RULE, X)
    with pytest.raises(ParameterError, match="behaviour is one of"):
        TangentResponse(Everywhere(), behaviour="worst")


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ([0.0, 0.0, 0.0], "rank below 2"),
        ([1.0, 0.0, 0.0], "rank below 2"),
        ([np.nan, 0.0, 0.0], "not finite"),
    ],
)
@pytest.mark.parametrize("behaviour", ["best", "smooth"])
def test_tangents_without_full_rank_are_named_by_row(column, words, behaviour):
    class Degenerate:
        def tangents(self, X):
            basis = np.tile(np.eye(3)[:, :2], (len(X), 1, 1))
            basis[[4, 7], :, 1] = column
            return basis

    with pytest.raises(DataError, match=f"rows 4, 7 .*{words}") as caught:
        TangentResponse(Degenerate(), behaviour=behaviour).respond(RULE, X)
    assert caught.value.rows == (4, 7)


def test_a_tangent_of_rank_zero_is_named_by_row():
    class Nowhere:
        def tangents(self, X):
            return np.zeros((len(X), X.shape[1], 1))

    with pytest.raises(DataError, match="rank below 1"):
        TangentResponse(Nowhere()).respond(RULE, X)


@pytest.mark.parametrize("cost", COSTS, ids=lambda cost: cost.kind)
def test_the_cheapest_approval_lies_within_the_tangent_space(cost):
    response = TangentResponse(Planes(), cost, "smooth", 0.3)
    found = response.rational().crossing_cost(RULE, X)
    basis, w = Planes().tangents(X), RULE.weight.detach().numpy()
    with torch.no_grad():
        now = RULE(torch.from_numpy(X)).numpy()
    assert np.array_equal(found == 0.0, now >= 0.0)
    # Whatever other way there is to the same score costs more.
    for coefficients in RNG.normal(size=(300, len(X), 2)):
        move = np.einsum("ndr,nr->nd", basis, coefficients)
        gain = move @ w
        reaching = np.where(np.abs(gain) > 1e-9, -now / gain, np.inf)
        there = X + reaching[:, None] * move
        assert (cost.price(X, there)[now < 0.0] >= found[now < 0.0] - 1e-9).all()
    free = BestResponse(cost).crossing_cost(RULE, X)
    assert (found >= free - 1e-9).all()
    assert found.sum() > free.sum() + 0.1


def test_the_cheapest_approval_has_the_gradient_of_its_cost():
    response = TangentResponse(Planes(), QuadraticCost(0.3))
    weight = torch.tensor([1.0, -0.5, 0.7], dtype=torch.float64, requires_grad=True)
    bias = torch.tensor(-0.6, dtype=torch.float64, requires_grad=True)

    def price(weight, bias):
        rule = linear_score([0.0, 0.0, 0.0], 0.0)
        parameters = {"rule.weight": weight, "rule.bias": bias}
        return torch.func.functional_call(_Price(rule, response), parameters, (_rows(),))

    assert torch.autograd.gradcheck(price, (weight, bias), atol=1e-5)


class _Price(torch.nn.Module):
    def __init__(self, rule, response):
        super().__init__()
        self.rule, self.response = rule, response

    def forward(self, rows):
        return self.response.crossing(self.rule, rows).cost


def test_where_the_score_is_flat_along_the_surface_nobody_moves():
    class Across:
        def tangents(self, X):
            return np.tile(np.array([[0.5], [1.0], [0.0]]) / 1.25**0.5, (len(X), 1, 1))

    for behaviour in ("best", "smooth"):
        found = TangentResponse(Across(), behaviour=behaviour).respond(RULE, X)
        assert not found.moved.any()
        assert np.array_equal(found.x_new, X)
    price = TangentResponse(Across()).crossing_cost(RULE, X)
    assert set(np.unique(price)) == {0.0, np.inf}


def test_short_moves_along_a_curve_are_those_along_its_tangent():
    people, _ = on_parabola(60, seed=0)
    rule, cost = linear_score([-1.0, -0.2], -1.0), QuadraticCost(20.0)
    curve = PointsResponse(parabola(np.linspace(-6.0, 6.0, 60_001)), cost, 1.0, "stay")
    tangent = TangentResponse(ParabolaTangents(), cost, "smooth", 1.0, "stay", normalised=False)
    moves = curve.respond(rule, people).x_new - tangent.respond(rule, people).x_new
    assert np.abs(moves).max() < 1e-3


def test_places_are_chosen_by_trying_them_all():
    places = RNG.normal(size=(25, 3))
    found = PointsResponse(places, QuadraticCost(0.5)).respond(RULE, X)
    w, b = RULE.weight.detach().numpy(), float(RULE.bias.detach())
    for person, chosen in zip(X, found.x_new, strict=True):
        options = np.vstack([person, places])
        worth = np.sign(options @ w + b) - 0.5 * ((options - person) ** 2).sum(axis=1)
        assert np.allclose(options[np.argmax(worth)], chosen)


def test_the_cheapest_approved_place_is_found_by_trying_them_all():
    places = RNG.normal(size=(25, 3))
    response = PointsResponse(places, QuadraticCost(0.5), 1.0, "stay").rational()
    w, b = RULE.weight.detach().numpy(), float(RULE.bias.detach())
    approved = places[places @ w + b >= 0.0]
    for person, price in zip(X, response.crossing_cost(RULE, X), strict=True):
        best = 0.5 * ((approved - person) ** 2).sum(axis=1).min()
        assert price == pytest.approx(0.0 if person @ w + b >= 0.0 else best)
    nowhere = PointsResponse(places[places @ w + b < 0.0])
    assert np.isinf(nowhere.crossing_cost(RULE, X)[X @ w + b < 0.0]).all()


def test_places_must_be_places():
    with pytest.raises(ParameterError, match="at least one"):
        PointsResponse(np.zeros((0, 3)))
    with pytest.raises(ParameterError, match="the places 2"):
        PointsResponse(np.zeros((4, 2))).respond(RULE, X)
