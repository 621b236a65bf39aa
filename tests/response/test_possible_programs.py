"""Possible people at any convex cost, before networks, and among places: against other solvers."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import torch
from tests.response.test_possible import TABLES, Referee, crowd, little_people, quadratic

from countermove.people import (
    LinearCost,
    MahalanobisCost,
    MixtureCost,
    QuadraticCost,
    WeightedQuadraticCost,
)
from countermove.people.conic_cost import ConicCost
from countermove.response import (
    AscentResponse,
    BestResponse,
    ConicResponse,
    GainResponse,
    ScalarResponse,
)
from countermove.scores import LinearScore, MLPScore, PartlyLinearScore

pytestmark = pytest.mark.filterwarnings("ignore:Solution may be inaccurate")


def relaxed(actions):
    """Return the set without whole steps, which responses relax."""
    return actions._copy(integer=(), steps={})


def costs(d: int) -> dict[str, tuple]:
    """Return costs that are no sum of squares over columns, each with its CVXPY expression."""
    draws = np.random.default_rng(2)
    factor = draws.normal(size=(d, d)) / d
    matrix, kink = np.eye(d) + factor @ factor.T, draws.normal(size=d)
    mixed, straight = MixtureCost(kink, 0.4), LinearCost(kink)
    q, slant = mixed.canonical(d).weights.numpy(), mixed.canonical(d).kink.numpy()
    whole = straight.canonical(d).kink.numpy()

    def farthest(x, x_new):
        return cp.norm(x_new - x, 2) + cp.sum_squares(x_new - x)

    return {
        "mahalanobis": (MahalanobisCost(matrix), lambda D: cp.quad_form(D, matrix)),
        "mixture": (mixed, lambda D: quadratic(q)(D) + cp.pos(slant @ D)),
        "linear": (straight, lambda D: cp.pos(whole @ D)),
        "own": (ConicCost(farthest), lambda D: cp.norm(D, 2) + cp.sum_squares(D)),
    }


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("kind", ["mahalanobis", "mixture", "linear", "own"])
@pytest.mark.slow
def test_reach_and_crossing_at_any_convex_cost_equal_a_program_per_branch(name, kind):
    score, X, actions = crowd(name, 8, seed=3)
    cost, written = costs(X.shape[1])[kind]
    people, weight = BestResponse(cost, actions), score.weight.detach().numpy()
    with torch.no_grad():
        now = score(torch.from_numpy(X)).numpy()
        reach = people.scores_after(score, torch.from_numpy(X)).numpy() - now
    price, found = people.crossing_cost(score, X), people.respond(score, X)
    for i in range(len(X)):
        referee = Referee(actions.of_rows([i]), X[i])
        most = -referee.solve(lambda D: -weight @ D, lambda D: [written(D) <= 2.0])
        assert reach[i] == pytest.approx(most, abs=1e-6)
        if now[i] < 0.0:
            least = referee.solve(written, lambda D, i=i: [weight @ D >= -now[i]])
            assert price[i] == pytest.approx(least, abs=2e-5)
            assert found.moved[i] == (least < 2.0)
    assert relaxed(actions).contains(X, found.x_new - X, 1e-6).all()


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("start", ["global", "stay"])
@pytest.mark.slow
def test_conic_responses_of_possible_people_equal_the_compiled_ones(name, start):
    score, X, actions = crowd(name, 12, seed=5)
    fast = ScalarResponse(actions=actions, start=start).respond(score, X)
    slow = ConicResponse(QuadraticCost(), actions, start=start).respond(score, X)
    np.testing.assert_allclose(slow.x_new, fast.x_new, atol=1e-5)


@pytest.mark.slow
def test_no_smoothed_response_at_a_cost_with_cross_terms_is_beaten_in_any_branch():
    score, X, actions = crowd("credit", 4, seed=5)
    cost, written = costs(X.shape[1])["mahalanobis"]
    people = ScalarResponse(cost, actions)
    found = people.respond(score, X)
    weight, now = score.weight.detach().numpy(), score(torch.from_numpy(X)).detach()
    with torch.no_grad():
        utility = people.worth(score, score(torch.from_numpy(found.x_new))).numpy() - found.cost
    for i in range(len(X)):
        referee = Referee(actions.of_rows([i]), X[i])
        for gain in np.linspace(0.1, 3.0, 8):
            least = referee.solve(written, lambda D, gain=gain: [weight @ D >= gain])
            rival = people.worth(score, now[i : i + 1] + gain).item() - least
            assert utility[i] >= rival - 1e-7
    assert relaxed(actions).contains(X, found.x_new - X, 1e-6).all()


@pytest.mark.parametrize("what", ["reach", "crossing", "smooth", "gain"])
@pytest.mark.slow
def test_gradients_through_the_chosen_branch_follow_rule_and_cost(what):
    score, X, actions = crowd("credit", 4, seed=7)
    rows, d = torch.from_numpy(X), X.shape[1]
    matrix = torch.from_numpy(np.eye(d) + 0.1)
    prices = torch.from_numpy(np.random.default_rng(2).uniform(0.8, 1.5, d))

    def function(weight, bias, price):
        own = LinearScore(d)
        del own.weight, own.bias
        own.weight, own.bias = weight, bias
        if what == "gain":
            return GainResponse(WeightedQuadraticCost(price), actions).respond(own, rows).x_new
        cost = MahalanobisCost(matrix * price.sqrt()[:, None] * price.sqrt())
        if what == "reach":
            return BestResponse(cost, actions).scores_after(own, rows)
        if what == "crossing":
            return BestResponse(cost, actions).crossing(own, rows).cost
        return ScalarResponse(cost, actions).scores_after(own, rows)

    inputs = (
        score.weight.detach().clone().requires_grad_(),
        score.bias.detach().clone().requires_grad_(),
        prices.clone().requires_grad_(),
    )
    assert torch.autograd.gradcheck(
        function, inputs, eps=1e-4, atol=2e-4, rtol=1e-3, fast_mode=True
    )


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.slow
def test_people_who_want_score_stay_possible_and_nothing_pays_more(name):
    score, X, actions = crowd(name, 8, seed=3)
    found = GainResponse(QuadraticCost(0.3), actions).respond(score, X)
    weight = score.weight.detach().numpy()
    for i in range(len(X)):
        referee = Referee(actions.of_rows([i]), X[i])
        most = -referee.solve(lambda D: 0.3 * cp.sum_squares(D) - weight @ D, lambda D: [])
        assert weight @ (found.x_new[i] - X[i]) - found.cost[i] == pytest.approx(most, abs=1e-6)
    assert relaxed(actions).contains(X, found.x_new - X).all()


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.slow
def test_climbing_before_a_linear_score_ends_at_the_exact_response(name):
    score, X, actions = crowd(name, 60, seed=9)
    climbers, exact = AscentResponse(actions=actions), ScalarResponse(actions=actions)
    found, best = climbers.respond(score, X), exact.respond(score, X)
    here, there = (climbers.utility(score, X, each.x_new) for each in (found, best))
    assert relaxed(actions).contains(X, found.x_new - X).all()
    assert (here <= there + 1e-9).all()
    assert (here >= there - 1e-6).mean() >= 0.95


def little_network() -> MLPScore:
    """Return a network of two features that some of the little people fail."""
    return MLPScore(2, hidden=(8,), dropout=0.0, generator=torch.Generator().manual_seed(3))


def little_crowd():
    """Return forty possible people on two columns; the first moves by whole steps off zero."""
    draws = np.random.default_rng(3)
    a = draws.integers(-2, 2, 40).astype(float)
    b = np.where(a == 0.0, draws.uniform(0.0, 1.0, 40), a + draws.uniform(0.0, 1.0, 40))
    return np.column_stack([a, np.round(b, 2)])


@pytest.mark.slow
def test_climbing_a_network_finds_what_a_fine_grid_of_possible_places_has():
    actions, X, score = little_people(), little_crowd(), little_network()
    people = AscentResponse(QuadraticCost(0.2), actions)
    found = people.respond(score, X, on_failure="mask")
    assert relaxed(actions).contains(X, found.x_new - X).all()
    fine = np.round(np.arange(-3.0, 3.005, 0.02), 2)
    places = np.stack(np.meshgrid(fine, fine, indexing="ij"), axis=-1).reshape(-1, 2)
    first, second = places.T
    possible = (
        (first <= second)
        & ((first != 0.0) | (second <= 1.0))
        & ~((np.abs(first) < 1.0) & (first != 0.0))
    )
    mine = people.utility(score, X, found.x_new)
    for i, x in enumerate(X):
        best = people.utility(score, np.tile(x, (possible.sum(), 1)), places[possible]).max()
        assert mine[i] >= best - 1e-3


@pytest.mark.slow
def test_gradients_of_climbers_follow_the_network_inside_their_branch():
    actions, X = little_people(), little_crowd()[:12]
    rows = torch.from_numpy(X)
    people = AscentResponse(QuadraticCost(0.2), actions, unit=1.0, tolerance=1e-9)
    score = little_network()
    last = list(score.parameters())[-2]

    def function(value):
        with torch.no_grad():
            last.copy_(value)
        after = people.scores_after(score, rows)
        (slope,) = torch.autograd.grad(after.sum(), last)
        return after.detach(), slope

    start = last.detach().clone()
    _, slope = function(start)
    for place in range(start.numel()):
        ahead, back = start.clone().ravel(), start.clone().ravel()
        ahead[place] += 1e-5
        back[place] -= 1e-5
        rise = (
            function(ahead.reshape(start.shape))[0].sum()
            - function(back.reshape(start.shape))[0].sum()
        ) / 2e-5
        assert slope.ravel()[place].item() == pytest.approx(rise.item(), abs=1e-4)


@pytest.mark.parametrize("kind", ["best", "smooth"])
def test_relations_move_nothing_that_the_score_holds_fixed(kind):
    actions, X = little_people(), little_crowd()
    score = PartlyLinearScore(2, movable=[0])
    people = BestResponse(actions=actions) if kind == "best" else ScalarResponse(actions=actions)
    with torch.no_grad():
        next(iter(score.parameters()))[:] = 1.0
    found = people.respond(score, X)
    assert (found.x_new[:, 1] == X[:, 1]).all()
    with torch.no_grad():
        after = score(torch.from_numpy(found.x_new)).numpy()
    assert ((after >= 0.0) == people.decisions_after(score, X)).all()
