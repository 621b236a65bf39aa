"""Learned surfaces have the true tangents, and moves along them are exact."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from countermove.errors import DataError, ParameterError
from countermove.experiments.serm.manifold import (
    ContractiveAutoencoder,
    CurveResponse,
    ParabolaTangents,
    TangentResponse,
    first_maximum,
    on_parabola,
    parabola,
)
from countermove.people import QuadraticCost
from countermove.response import ScalarResponse
from countermove.response.step import rise, step
from countermove.scores import LinearScore

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 3))


def rule(weights, bias):
    score = LinearScore(len(weights))
    with torch.no_grad():
        score.weight.copy_(torch.tensor(weights))
        score.bias.fill_(bias)
    return score


RULE = rule([1.0, -0.5, 0.7], -1.0)


class Everywhere:
    """All directions are open."""

    def tangents(self, X):
        return np.tile(np.eye(X.shape[1]), (len(X), 1, 1))


class Planes:
    """Two random directions, each person their own."""

    def tangents(self, X):
        rng = np.random.default_rng(0)
        return np.linalg.qr(rng.normal(size=(len(X), X.shape[1], 2)))[0]


@pytest.mark.parametrize("price", [0.05, 0.3, 2.0])
def test_where_everything_is_open_it_is_the_free_response(price):
    cost = QuadraticCost(price)
    bound = TangentResponse(Everywhere(), cost).respond(RULE, X)
    free = ScalarResponse(cost, None, 1.0, "stay", normalised=False).respond(RULE, X)
    np.testing.assert_allclose(bound.x_new, free.x_new, atol=1e-9)
    np.testing.assert_allclose(bound.cost, free.cost, atol=1e-9)


def test_nobody_leaves_the_tangent_space():
    found = TangentResponse(Planes(), QuadraticCost(0.2)).respond(RULE, X)
    basis, moves = Planes().tangents(X), found.x_new - X
    inside = np.einsum("ndr,ner,ne->nd", basis, basis, moves)
    assert found.moved.any()
    np.testing.assert_allclose(inside, moves, atol=1e-12)
    np.testing.assert_allclose(found.cost, 0.2 * (moves**2).sum(axis=1))


def test_everybody_stops_at_the_first_place_where_more_gain_costs_more_than_it_is_worth():
    now = torch.from_numpy(6.0 * RNG.normal(size=300))
    reach = torch.from_numpy(np.exp(1.0 + RNG.normal(size=300)))
    reach[:20] = 0.0
    gain = first_maximum(now, reach).numpy()
    assert (gain[:20] == 0.0).all()
    higher = 0
    for s, r, g in zip(now.numpy()[20:], reach.numpy()[20:], gain[20:], strict=True):
        assert abs(r * r * rise(s + g) - 2.0 * g) < 1e-12 * (1.0 + r * r)
        before = np.linspace(0.0, g, 200)
        uphill = np.array([r * r * rise(s + b) - 2.0 * b for b in before[:-1]])
        assert (uphill > 0.0).all()
        best = max(step(s + b) - (b / r) ** 2 for b in np.linspace(0.0, r * r, 500))
        higher += best > step(s + g) - (g / r) ** 2 + 1e-3
    assert higher > 5  # the first maximum is not always the highest


class After(torch.nn.Module):
    """Scores after response as a function of the rule."""

    def __init__(self, response):
        super().__init__()
        self.rule, self.response = rule([0.0, 0.0, 0.0], 0.0), response

    def forward(self, rows):
        return self.response.scores_after(self.rule, rows)


def test_gradients_are_those_of_the_scores_after():
    module = After(TangentResponse(Planes(), QuadraticCost(0.3)))
    weight = torch.tensor([1.0, -0.5, 0.7], dtype=torch.float64, requires_grad=True)
    bias = torch.tensor(-0.6, dtype=torch.float64, requires_grad=True)

    def after(weight, bias):
        parameters = {"rule.weight": weight, "rule.bias": bias}
        return torch.func.functional_call(module, parameters, (torch.from_numpy(X[:8]),))

    assert torch.autograd.gradcheck(after, (weight, bias), atol=1e-5)


def test_where_the_score_is_flat_along_the_surface_nobody_moves():
    class Across:
        def tangents(self, X):
            return np.tile(np.array([[0.5], [1.0], [0.0]]) / 1.25**0.5, (len(X), 1, 1))

    found = TangentResponse(Across(), QuadraticCost(1.0)).respond(RULE, X)
    assert not found.moved.any()
    assert np.array_equal(found.x_new, X)


def test_short_moves_along_a_curve_are_those_along_its_tangent():
    people, _ = on_parabola(60, seed=0)
    line, cost = rule([-1.0, -0.2], -1.0), QuadraticCost(20.0)
    curve = CurveResponse(parabola(np.linspace(-6.0, 6.0, 60_001)), cost, climbing=True)
    tangent = TangentResponse(ParabolaTangents(), cost)
    moves = curve.respond(line, people).x_new - tangent.respond(line, people).x_new
    assert np.abs(moves).max() < 1e-3


def test_places_are_chosen_by_trying_them_all():
    places = RNG.normal(size=(25, 3))
    found = CurveResponse(places, QuadraticCost(0.5)).respond(RULE, X)
    w, b = RULE.weight.detach().numpy(), float(RULE.bias.detach())
    for person, chosen in zip(X, found.x_new, strict=True):
        options = np.vstack([person, places])
        worth = np.sign(options @ w + b) - 0.5 * ((options - person) ** 2).sum(axis=1)
        assert np.allclose(options[np.argmax(worth)], chosen)


@pytest.fixture(scope="module")
def learned():
    X, _ = on_parabola(200, seed=0)
    return X, ContractiveAutoencoder(max_iterations=120, starts=1).fit(X)


def test_tangents_are_orthonormal_and_close_to_the_true_ones(learned):
    X, surface = learned
    found = surface.tangents(X)
    assert found.shape == (200, 2, 1)
    assert np.allclose(np.linalg.norm(found, axis=1), 1.0)
    alike = np.abs((found * ParabolaTangents().tangents(X)).sum(axis=1))
    # A random direction would have a mean of 2/pi.
    assert alike.mean() > 0.95


def test_a_plane_in_three_dimensions_is_found():
    rng = np.random.default_rng(1)
    basis = np.linalg.qr(rng.normal(size=(3, 2)))[0]
    X = rng.normal(size=(150, 2)) @ basis.T
    model = ContractiveAutoencoder(dimension=2, max_iterations=120, starts=1)
    found = model.fit(X).tangents(X)
    inside = np.linalg.norm(basis.T @ found, axis=1)
    assert inside.mean() > 0.95


def test_the_same_seed_gives_the_same_surface(learned):
    X, surface = learned
    again = ContractiveAutoencoder(max_iterations=120, starts=1).fit(X)
    assert np.array_equal(again.tangents(X), surface.tangents(X))


def test_where_the_code_does_not_change_the_rows_are_named(learned):
    _, surface = learned
    far = np.array([[0.0, 0.0], [1e6, -1e6]])
    with pytest.raises(DataError, match="no tangent of rank 1 at rows 1") as caught:
        surface.tangents(far)
    assert caught.value.rows == (1,)


@pytest.mark.parametrize("dimension", [0, 2])
def test_a_surface_has_fewer_dimensions_than_there_are_features(dimension):
    with pytest.raises(ParameterError, match="between 1 and 1"):
        ContractiveAutoencoder(dimension=dimension).fit(np.zeros((5, 2)))


def test_rows_that_teach_nothing_are_refused():
    with pytest.raises(DataError, match="columns 1 never vary"):
        ContractiveAutoencoder().fit(np.array([[0.0, 1.0], [1.0, 1.0]]))
    with pytest.raises(DataError, match="finite rows"):
        ContractiveAutoencoder().fit(np.array([[0.0, np.nan]]))


def test_of_several_starts_the_lowest_loss_is_kept():
    X, _ = on_parabola(100, seed=1)
    losses = [
        ContractiveAutoencoder(max_iterations=40, starts=starts, seed=1).fit(X).loss
        for starts in (1, 2, 4)
    ]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0]
