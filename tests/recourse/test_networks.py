"""Proofs before networks: sound on sampled moves, exact where everything can be tried."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.optimize import Bounds, LinearConstraint, milp
from torch import nn

from countermove.people import (
    ActionSet,
    Cost,
    LinearCost,
    MahalanobisCost,
    MixtureCost,
    QuadraticCost,
    WeightedQuadraticCost,
)
from countermove.recourse import Settings, recommend
from countermove.recourse.networks import network_of, prove
from countermove.recourse.networks._bounds import KINDS, relaxed, tangents, value_of
from countermove.recourse.problem import search_problem
from countermove.scores import MLPScore
from countermove.scores._layers import ACTIVATIONS
from countermove.scores.adopted import adopt
from countermove.scores.base import values
from countermove.scores.dense import dense_network

D = 6


def network(activation: str, hidden: tuple[int, ...] = (20, 20), seed: int = 0) -> MLPScore:
    """Return a bent network: drawn, with weights twice as large as a start's."""
    score = MLPScore(
        D, hidden, activation, dropout=0.0, generator=torch.Generator().manual_seed(seed)
    )
    with torch.no_grad():
        for weight in (*score.weights, score.weight):
            weight.mul_(3.0)
        score.bias.sub_(score(torch.randn(500, D, dtype=torch.float64)).mean())
    return score


def people(n: int = 60) -> np.ndarray:
    rows = np.random.default_rng(1).standard_normal((n, D))
    rows[:, :3] = np.clip(rows[:, :3], -1.2, 1.2)
    rows[:, 4:] = 0.0
    rows[np.arange(n), 4 + np.arange(n) % 2] = 1.0
    return rows


WIDE = {"lower": [-1.0] * D, "upper": [1.0] * D}
HELD = {"immutable": [3, 4, 5]}
ACTIONS = {
    "box": ActionSet(**WIDE, **HELD),
    "one way": ActionSet(**WIDE, **HELD, only_increase=[0], only_decrease=[1]),
    "whole steps": ActionSet(**WIDE, **HELD, integer=[0, 2]),
    "one-hot": ActionSet(**WIDE, immutable=[2, 3], groups=[(4, 5)]),
    "relations": ActionSet(**WIDE, **HELD, A=[[1.0, -1.0, 0.0, 0.0, 0.0, 0.0]], b=[0.3]),
    "values": ActionSet(
        **WIDE, **HELD, min_value=[-1.2] * 3 + [-9.0] * 3, max_value=[1.2] * 3 + [9.0] * 3
    ),
}
COSTS: dict[str, Cost] = {
    "quadratic": QuadraticCost(0.7),
    "weighted": WeightedQuadraticCost([0.5, 1.0, 2.0, 1.0, 0.3, 0.4]),
    "linear": LinearCost([1.0, 0.5, 2.0, 1.0, 0.3, 0.3]),
    "mixture": MixtureCost([1.0, -0.5, 2.0, 1.0, 0.2, 0.4], 0.5),
    "mahalanobis": MahalanobisCost(np.eye(D) + 0.3),
}


def threshold_of(score: MLPScore, X: np.ndarray, share: float = 0.75) -> float:
    return float(1.0 / (1.0 + np.exp(-np.quantile(values(score, X), share))))


def sampled(actions: ActionSet, X: np.ndarray, n: int, seed: int) -> np.ndarray:
    """Return allowed actions of every person, (people, n, d): numbers, steps and categories."""
    rng = np.random.default_rng(seed)
    low, high = actions.box(X)
    found = low[:, None] + rng.random((len(X), n, D)) * (high - low)[:, None]
    found *= rng.random((len(X), n, 1)) ** 0.5
    ends = rng.random((len(X), n, D))
    found = np.where(ends < 0.1, low[:, None], np.where(ends > 0.9, high[:, None], found))
    for j in actions.integer:
        found[:, :, j] = np.round(found[:, :, j])
    for group in actions.groups:
        now, then = X[:, None, list(group)], np.eye(len(group))[rng.integers(2, size=(len(X), n))]
        found[:, :, list(group)] = then - now
    return found


def crossings(score, X, actions, cost, most, threshold, advice, n, seed=0) -> tuple[int, int]:  # type: ignore[no-untyped-def]
    """Return how many sampled moves of people proven to have none cross, of how many."""
    who = np.flatnonzero(advice.cost_bound >= most * (1.0 - 1e-9))
    assert not np.isin(advice.status[who], ("FOUND", "NOT_NEEDED")).any()
    assert np.isin(np.flatnonzero(advice.status == "PROVEN_NONE"), who).all()
    if not who.size:
        return 0, 0
    moves = sampled(actions.of_rows(who), X[who], n, seed).reshape(-1, D)
    start = np.repeat(X[who], n, axis=0)
    good = actions.of_rows(np.repeat(who, n)).contains(start, moves)
    good &= cost.price(start, start + moves) <= most
    aim = np.log(threshold / (1.0 - threshold))
    return int((values(score, (start + moves)[good]) >= aim).sum()), int(good.sum())


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
@pytest.mark.parametrize("allowed", list(ACTIONS))
def test_nobody_proven_to_have_none_has_an_allowed_move(activation: str, allowed: str) -> None:
    score, X, actions = network(activation), people(), ACTIONS[allowed]
    threshold, ceiling = threshold_of(score, X), 0.4
    proven = 0
    for name, cost in COSTS.items():
        advice = recommend(score, X, "linear_program", threshold, actions, cost, ceiling=ceiling)
        crossed, tried = crossings(score, X, actions, cost, ceiling, threshold, advice, 300)
        assert crossed == 0, name
        beyond = advice.status == "BEYOND_REACH"
        assert (advice.cost_bound[beyond] <= advice.cost[beyond] * (1.0 + 1e-9)).all()
        proven += tried
    assert proven > 1_000


@pytest.mark.slow
@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_a_hundred_thousand_sampled_moves_cross_for_nobody_proven(activation: str) -> None:
    score, X = network(activation, (100, 100)), people(200)
    actions = ActionSet(lower=[-1.5] * D, upper=[1.5] * D, immutable=[3, 4, 5])
    threshold = threshold_of(score, X, 0.9)
    advice = recommend(score, X, "linear_program", threshold, actions, ceiling=2.0)
    n = -(-300_000 // max((advice.cost_bound >= 2.0).sum(), 1))
    found = crossings(score, X, actions, QuadraticCost(), 2.0, threshold, advice, n)
    assert found[0] == 0
    assert found[1] >= 100_000


@pytest.mark.parametrize("kind", list(KINDS))
def test_lines_enclose_every_activation(kind: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(400):
        low = rng.normal() * 10.0 ** rng.uniform(-3, 1.5)
        high = low + 10.0 ** rng.uniform(-9, 1.5)
        leak = rng.choice([0.0, 0.1]) if kind == "relu" else 0.0
        up, above, down, below = relaxed(KINDS[kind], leak, low, high, tangents())
        z = np.linspace(low, high, 200)
        value = np.array([value_of(KINDS[kind], leak, float(one)) for one in z])
        room = 1e-13 * (1.0 + np.abs(z))
        assert (up * z + above >= value - room).all()
        assert (down * z + below <= value + room).all()
        assert up >= 0.0
        assert down >= 0.0


def highest_by_milp(score: MLPScore, x: np.ndarray, low: np.ndarray, high: np.ndarray) -> float:
    """Return the largest score over a box of a network of ramps, as a mixed-integer program."""
    sizes = [D, *score.hidden]
    n_h = sum(score.hidden)
    # Variables: the row, then every neuron, then whether it is on.
    total, big = D + 2 * n_h, 1e3
    rows, lows, highs = [], [], []
    before, at = 0, D
    for (n_in, n_out), weight, offset in zip(
        pairwise(sizes), score.weights, score.offsets, strict=True
    ):
        W, c = weight.detach().numpy(), offset.detach().numpy()
        for k in range(n_out):
            row = np.zeros(total)
            row[at + k], row[before : before + n_in] = 1.0, -W[k]
            on = np.zeros(total)
            on[n_h + at + k] = big
            off = np.zeros(total)
            off[at + k], off[n_h + at + k] = 1.0, -big
            rows += [row, row + on, off]
            lows += [c[k], -np.inf, -np.inf]
            highs += [np.inf, c[k] + big, 0.0]
        before, at = at, at + n_out
    bounds = Bounds(
        np.concatenate([x + low, np.zeros(2 * n_h)]),
        np.concatenate([x + high, np.full(n_h, big), np.ones(n_h)]),
    )
    goal = np.zeros(total)
    goal[before : before + sizes[-1]] = -score.weight.detach().numpy()
    whole = np.concatenate([np.zeros(D + n_h), np.ones(n_h)])
    found = milp(goal, integrality=whole, bounds=bounds,
                 constraints=LinearConstraint(np.array(rows), lows, highs))  # fmt: skip
    assert found.success
    return float(-found.fun + score.bias.detach())


def test_the_highest_score_is_that_of_a_mixed_integer_program() -> None:
    score, X = network("relu", (6, 5), seed=3), people(12)
    actions = ACTIONS["box"]
    low, high = actions.box(X)
    for i, x in enumerate(X):
        top = highest_by_milp(score, x, low[i], high[i])
        for target, exists in ((top + 0.02, False), (top - 0.02, True)):
            problem = search_problem(score, X[[i]], actions, QuadraticCost(), target)
            net = network_of(problem)
            assert net is not None
            found = prove(problem, net, np.inf, 20_000)
            assert bool(found.proven_none[0]) is not exists
            if exists:
                assert problem.values(found.action)[0] >= target


@pytest.mark.parametrize("cost", list(COSTS))
def test_the_cheapest_action_is_that_of_a_fine_grid(cost: str) -> None:
    score, X = network("tanh", (8, 8), seed=2), people(30)
    actions = ActionSet(**WIDE, immutable=[2, 3, 4, 5])
    threshold, price = threshold_of(score, X, 0.6), COSTS[cost]
    exact = Settings(network_nodes=20_000, cheapest_nodes=4_000)
    advice = recommend(score, X, "linear_program", threshold, actions, price, settings=exact)
    axis = np.linspace(-1.0, 1.0, 201)
    grid = np.zeros((201 * 201, D))
    grid[:, 0], grid[:, 1] = (part.ravel() for part in np.meshgrid(axis, axis))
    aim = np.log(threshold / (1.0 - threshold))
    refused = np.flatnonzero(advice.status != "NOT_NEEDED")
    assert len(refused) > 10
    for i in refused:
        there = values(score, X[i] + grid) >= aim
        least = price.price(np.zeros_like(grid), grid)[there].min(initial=np.inf)
        assert advice.cost_bound[i] <= least * (1.0 + 1e-6) + 1e-9
        if advice.status[i] == "PROVEN_NONE":
            assert least == np.inf
        else:
            assert advice.status[i] == "FOUND"
            if cost != "mahalanobis":  # bounded from below by a weighted cost, so not to the end
                assert advice.cost[i] <= least * (1.0 + 1e-6) + 1e-9
    if cost == "quadratic":
        found = advice.status == "FOUND"
        assert advice.proven_cheapest[found].mean() > 0.9


def test_statuses_say_what_is_proven() -> None:
    score, X, endless = network("tanh"), people(40), ActionSet(immutable=[3, 4, 5])
    most = float(score.bias.detach() + score.weight.detach().abs().sum())  # of any row
    above = 1.0 / (1.0 + np.exp(-most - 0.1))
    without = recommend(score, X, "linear_program", above, endless)
    assert (without.status == "NOT_FOUND").all()  # nothing bounds what people may do
    assert (without.cost_bound == 0.0).all()
    within = recommend(score, X, "linear_program", above, endless, ceiling=0.05)
    assert (within.status == "PROVEN_NONE").all()
    assert within.cost_bound == pytest.approx(0.05)
    bounded = recommend(score, X, "linear_program", above, ACTIONS["box"])
    assert (bounded.status == "PROVEN_NONE").all()
    assert np.isinf(bounded.cost_bound).all()
    few = Settings(network_nodes=0)
    unproven = recommend(score, X, "linear_program", above, ACTIONS["box"], settings=few)
    assert (unproven.status == "NOT_FOUND").all()
    usual = recommend(score, X, "linear_program", 0.6, ACTIONS["box"], ceiling=0.01)
    beyond = usual.status == "BEYOND_REACH"
    assert beyond.any()
    assert usual.cost_bound[beyond] == pytest.approx(0.01)


def test_alternatives_of_people_without_recourse_are_as_proven() -> None:
    score, X = network("tanh"), people(20)
    advice = recommend(score, X, "linear_program", 0.9999, ACTIONS["box"], options=2)
    none = advice.status == "PROVEN_NONE"
    assert none.any()
    assert (advice.alternatives[0].status[none] == "PROVEN_NONE").all()


class Chain(nn.Module):
    """A module of one's own, as they are usually written."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(D, 12), nn.BatchNorm1d(12), nn.Linear(12, 1)

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        return self.last(torch.tanh(self.norm(self.first(X)))).squeeze(-1)


class Skips(Chain):
    """A module that is no chain."""

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        return super().forward(X) + X[:, 0]


@pytest.mark.parametrize(
    ("module", "output"),
    [
        (nn.Sequential(nn.Linear(D, 12), nn.LeakyReLU(0.1), nn.Linear(12, 2)), "log_odds"),
        (nn.Sequential(nn.Linear(D, 12), nn.Sigmoid(), nn.Linear(12, 1), nn.Sigmoid()),
         "probability"),
        (nn.Sequential(nn.Linear(D, 8), nn.Sequential(nn.ELU(), nn.Linear(8, 8)), nn.Softplus(),
                       nn.Dropout(), nn.Linear(8, 1)), "log_odds"),
        (Chain(), "log_odds"),
    ],
)  # fmt: skip
def test_torch_modules_of_dense_layers_are_proven_about(module: nn.Module, output: str) -> None:
    rng = np.random.default_rng(0)
    background = rng.normal(size=(400, D)) * [1.0, 5.0, 0.1, 1.0, 2.0, 1.0] + 3.0
    model = adopt(module, background, output=output)
    X = background[:30]
    own = 1.0 / (1.0 + np.exp(-values(model.score_, X)))
    threshold, actions = float(np.quantile(own, 0.9)), ActionSet(**WIDE, **HELD)
    advice = recommend(model, X, "linear_program", threshold, actions, ceiling=0.02)
    who = np.flatnonzero(advice.status == "PROVEN_NONE")
    assert who.size
    scale = model.standardiser_.scale
    moves = rng.normal(size=(len(who), 500, D)) * [1, 1, 1, 0, 0, 0]
    moves *= np.sqrt(0.02) / np.linalg.norm(moves, axis=2, keepdims=True) * 0.999999
    there = (X[who][:, None] + moves * scale).reshape(-1, D)
    assert (model.probability(there) < threshold).all()


def test_a_module_that_is_no_chain_of_layers_is_searched_only() -> None:
    background = np.random.default_rng(0).normal(size=(100, D))
    model = adopt(Skips(), background)
    assert dense_network(model.score_) is None
    advice = recommend(model, background[:20], "linear_program", 0.99, ACTIONS["box"], ceiling=0.01)
    assert "PROVEN_NONE" not in advice.status
