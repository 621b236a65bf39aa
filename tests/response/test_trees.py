"""The search before a sum of trees against all combinations, and what it says of itself."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from countermove.people import (
    ActionSet,
    LinearCost,
    MixtureCost,
    QuadraticCost,
    WeightedQuadraticCost,
)
from countermove.people.feasible import FeasibleActions, feasible_actions
from countermove.response import BestResponse
from countermove.response.tree_best import TreeBest, UnprovenWarning
from countermove.response.trees import TreeMoves, cheapest_crossing, highest_score
from countermove.scores.trees import TreeEnsemble, TreeScore

D = 5
"""Two numbers, a whole number, and a one-hot group of two."""


def random_trees(
    rng: np.random.Generator, n_trees: int = 4, depth: int = 3, width: int = D, coded: bool = False
) -> TreeScore:
    """Return random trees; some ask for a set of the group's categories."""
    feature, split, left, right, missing, value, root = ([] for _ in range(7))
    codes: dict[int, tuple[int, ...]] = {}

    def grow(level: int) -> int:
        node = len(feature)
        for part in (feature, split, left, right, missing, value):
            part.append(0)
        left[node] = right[node] = -1
        value[node] = float(rng.normal())
        if level < depth and rng.random() < 0.9:
            j = int(rng.integers(width))
            if coded and j >= 3:
                feature[node], codes[node] = 0, (int(rng.integers(2)),)
            else:
                feature[node] = j
                split[node] = 0.5 if j >= 3 else float(np.round(rng.normal(), 1))
            left[node] = grow(level + 1)
            right[node] = grow(level + 1)
        return node

    for _ in range(n_trees):
        root.append(len(feature))
        grow(0)
    ensemble = TreeEnsemble(
        width, np.array(feature), np.array(split, float), np.array(left), np.array(right),
        np.array(missing, bool), np.array(value), np.array(root), codes,
        ((3, 4),) if coded else (), float(rng.normal() - 1.0),
    )  # fmt: skip
    return TreeScore(ensemble)


def random_people(rng: np.random.Generator, n: int) -> np.ndarray:
    X = rng.normal(size=(n, D))
    X[:, 2] = rng.integers(-2, 3, size=n)
    X[:, 3] = rng.integers(2, size=n)
    X[:, 4] = 1.0 - X[:, 3]
    return X


def random_actions(rng: np.random.Generator, n: int) -> ActionSet:
    arguments: dict[str, object] = {"integer": [2], "groups": [(3, 4)]}
    low, high = np.full(D, -3.0), np.full(D, 3.0)
    if rng.random() < 0.5:
        low, high = -rng.uniform(0.5, 2.0, (n, D)), rng.uniform(0.5, 2.0, (n, D))
        low[:, 3:], high[:, 3:] = -1.0, 1.0
    arguments |= {"lower": low, "upper": high}
    kind = rng.integers(4)
    if kind == 1:
        arguments["only_increase"] = [0]
    elif kind == 2:
        arguments["immutable"] = [1]
    elif kind == 3:
        arguments |= {"only_decrease": [2], "min_value": np.array([-2.0, -2, -3, 0, 0])}
        arguments["min_value"] = np.where(np.arange(D) < 3, -5.0, 0.0)
    return ActionSet(**arguments)


def random_cost(rng: np.random.Generator) -> QuadraticCost | WeightedQuadraticCost | LinearCost:
    kind = rng.integers(3)
    if kind == 0:
        return QuadraticCost(float(rng.uniform(0.5, 2.0)))
    if kind == 1:
        return WeightedQuadraticCost(rng.uniform(0.5, 2.0, D))
    return LinearCost(rng.normal(size=D))


def all_places(score: TreeScore, x: np.ndarray, feasible: FeasibleActions) -> np.ndarray:
    """Return actions that meet every cell of every column at its cheapest places and its ends."""
    low, high = feasible.low[0], feasible.high[0]
    ways = []
    for j in (0, 1):
        nodes = (score.ensemble.left >= 0) & (score.arrays.feature == j) & (score.arrays.words < 0)
        cuts = np.unique(score.arrays.split[nodes]) - x[j]
        slack = 2e-9 * (1.0 + np.abs(cuts + x[j]))
        near = np.concatenate([[0.0, low[j], high[j]], cuts - slack, cuts + slack])
        ways.append(np.unique(near[(near >= low[j]) & (near <= high[j])]))
    ways.append(np.arange(np.ceil(low[2] - 1e-9), np.floor(high[2] + 1e-9) + 1.0))
    part = feasible.listed[0]
    states = part.change[0][part.allowed[0]]
    return np.array([[*a, *state] for a in product(*ways) for state in states])


def check_against_all(seed: int, coded: bool) -> tuple[int, int]:
    """Compare one random rule and its people; return how many cross, and how many do not."""
    rng = np.random.default_rng(seed)
    n = 3
    score, X, cost = random_trees(rng, coded=coded), random_people(rng, n), random_cost(rng)
    actions = random_actions(rng, n)
    feasible = feasible_actions(actions, X)
    most = np.inf if rng.random() < 0.5 else float(rng.uniform(0.2, 3.0))
    found = cheapest_crossing(score, X, feasible, cost, 0.0, most)
    top = highest_score(score, X, feasible, cost, most)
    assert found.proven.all()
    assert top.proven.all()
    crossed = 0
    for i in range(n):
        one = feasible.rows(np.array([i]))
        ways = all_places(score, X[i], one)
        sums, price = score.raw(X[i] + ways), cost.price(np.zeros_like(ways), ways)
        forced = price.min()
        affordable = price <= max(forced, 0.0) + most + 1e-7
        good = (sums >= 0.0) & affordable
        best = price[good].min() if good.any() else np.inf
        assert found.cost[i] == pytest.approx(best, abs=1e-6)
        assert top.score[i] == pytest.approx(sums[affordable].max(), abs=1e-9)
        if np.isfinite(best):
            crossed += 1
            assert score.raw(X[i : i + 1] + found.action[i])[0] >= 0.0
            assert actions.of_rows([i]).contains(X[i : i + 1], found.action[i : i + 1])[0]
    return crossed, n - crossed


@pytest.mark.parametrize("coded", [False, True])
def test_the_cheapest_crossing_and_the_highest_score_are_those_of_all_combinations(
    coded: bool,
) -> None:
    counts = np.array([check_against_all(seed, coded) for seed in range(60)]).sum(axis=0)
    assert counts.min() > 10  # both answers are met


@pytest.mark.slow
def test_three_thousand_cases_equal_all_combinations() -> None:
    for seed in range(1_000, 2_000):
        check_against_all(seed, coded=bool(seed % 2))


def lattice_case(seed: int) -> None:
    """Compare on whole steps alone, where rows and kinked costs can be counted out."""
    rng = np.random.default_rng(seed)
    n = 3
    score, X = random_trees(rng, n_trees=5, depth=4), random_people(rng, n)
    A = rng.normal(size=(2, D)) * [1, 1, 1, 0, 0]
    actions = ActionSet(
        np.where(np.arange(D) < 3, -2.0, -1.0), np.where(np.arange(D) < 3, 2.0, 1.0),
        integer=[0, 1, 2], groups=[(3, 4)], A=A, b=rng.uniform(0.0, 1.0, 2),
    )  # fmt: skip
    cost = MixtureCost(rng.normal(size=D), 0.6) if seed % 2 else QuadraticCost()
    feasible = feasible_actions(actions, X)
    found = cheapest_crossing(score, X, feasible, cost, 0.0)
    top = highest_score(score, X, feasible, cost, 1.5)
    steps = np.array(list(product(*[np.arange(-2.0, 3.0)] * 3)))
    assert found.proven.all()
    assert top.proven.all()
    for i in range(n):
        part = feasible.listed[0]
        states = part.change[i][part.allowed[i]]
        ways = np.array([[*step, *state] for step in steps for state in states])
        ways = ways[actions.contains(np.repeat(X[i : i + 1], len(ways), axis=0), ways)]
        sums, price = score.raw(X[i] + ways), cost.price(np.zeros_like(ways), ways)
        good = sums >= 0.0
        best = price[good].min() if good.any() else np.inf
        assert found.cost[i] == pytest.approx(best, abs=1e-6)
        assert top.score[i] == pytest.approx(sums[price <= 1.5].max(), abs=1e-9)
        if np.isfinite(best):
            assert actions.contains(X[i : i + 1], found.action[i : i + 1])[0]


def test_rows_between_columns_and_kinked_costs_are_searched_exactly() -> None:
    for seed in range(40):
        lattice_case(seed)


def test_a_row_that_binds_is_met_with_equality_by_whoever_saves_by_it() -> None:
    # One split at x0 > 1; moving x0 takes x1 along: x1 >= x0.
    ensemble = TreeEnsemble(
        2, np.zeros(3, np.int64), np.array([1.0, 0.0, 0.0]), np.array([1, -1, -1]),
        np.array([2, -1, -1]), np.zeros(3, bool), np.array([0.0, -1.0, 1.0]), np.array([0]), {},
    )  # fmt: skip
    actions = ActionSet(A=[[-1.0, 1.0]], b=[0.0])
    X = np.zeros((1, 2))
    found = cheapest_crossing(
        TreeScore(ensemble), X, feasible_actions(actions, X), QuadraticCost(), 0.0
    )
    assert found.action[0] == pytest.approx([1.0, 1.0], abs=1e-6)
    assert found.proven.all()


def many(seed: int = 0, n: int = 40) -> tuple[TreeScore, np.ndarray, FeasibleActions]:
    rng = np.random.default_rng(seed)
    score = random_trees(rng, n_trees=30, depth=6)
    X = random_people(rng, n)
    return score, X, feasible_actions(ActionSet(integer=[2], groups=[(3, 4)]), X)


def test_out_of_nodes_the_best_known_is_returned_with_a_bound_and_no_proof() -> None:
    score, X, feasible = many()
    whole: TreeMoves = cheapest_crossing(score, X, feasible, QuadraticCost())
    short: TreeMoves = cheapest_crossing(score, X, feasible, QuadraticCost(), budget=2)
    open_ = ~short.proven
    assert whole.proven.all()
    assert open_.any()
    assert (short.bound[open_] <= whole.cost[open_] + 1e-9).all()
    known = open_ & np.isfinite(short.cost)
    assert known.any()
    assert (short.cost[known] >= whole.cost[known] - 1e-9).all()
    assert (score.raw(X + np.nan_to_num(short.action))[known] >= 0.0).all()
    higher = highest_score(score, X, feasible, QuadraticCost(), 2.0, budget=2)
    truth = highest_score(score, X, feasible, QuadraticCost(), 2.0)
    assert (higher.bound >= truth.score - 1e-9).all()
    assert (higher.score <= truth.score + 1e-9).all()


def test_trees_of_more_leaves_than_a_word_has_bits_are_searched_exactly() -> None:
    rng = np.random.default_rng(3)
    score = random_trees(rng, n_trees=2, depth=9)
    assert score.ensemble.n_leaves.max() > 64
    X = random_people(rng, 4)
    actions = ActionSet(np.full(D, -1.0), np.full(D, 1.0), integer=[2], groups=[(3, 4)])
    feasible = feasible_actions(actions, X)
    found = cheapest_crossing(score, X, feasible, QuadraticCost())
    for i in range(4):
        ways = all_places(score, X[i], feasible.rows(np.array([i])))
        good = score.raw(X[i] + ways) >= 0.0
        best = (ways[good] ** 2).sum(axis=1).min() if good.any() else np.inf
        assert found.cost[i] == pytest.approx(best, abs=1e-6)


def test_nobody_depends_on_who_else_is_searched() -> None:
    score, X, feasible = many(1)
    together = cheapest_crossing(score, X, feasible, QuadraticCost())
    alone = cheapest_crossing(score, X[7:8], feasible.rows(np.array([7])), QuadraticCost())
    assert np.array_equal(together.action[7:8], alone.action, equal_nan=True)


def test_decisions_at_many_thresholds_are_those_of_one_at_a_time():
    rng = np.random.default_rng(8)
    score, X = random_trees(rng, n_trees=8), random_people(rng, 60)
    actions = ActionSet(
        integer=[2], groups=[(3, 4)], lower=-1.5 * np.ones(D), upper=1.5 * np.ones(D)
    )
    people, seen = BestResponse(QuadraticCost(0.7), actions), set()
    for threshold in np.linspace(0.05, 0.95, 9):
        rule = score.at_threshold(float(threshold))
        # People who were asked before know what they can afford; others look for a crossing.
        fresh = BestResponse(QuadraticCost(0.7), ActionSet(**actions.describe()))
        np.testing.assert_array_equal(
            people.decisions_after(rule, X), fresh.decisions_after(rule, X)
        )
        known, new = people.respond(rule, X), fresh.respond(rule, X)
        np.testing.assert_array_equal(known.x_new, new.x_new)
        np.testing.assert_array_equal(known.cost, new.cost)
        seen.add(int(known.moved.sum()))
    assert len(seen) > 2


def test_who_is_not_decided_is_refused_stays_and_is_counted(monkeypatch):
    rng = np.random.default_rng(8)
    score, X = random_trees(rng, n_trees=12), random_people(rng, 200)
    people = BestResponse(QuadraticCost(0.7), ActionSet(integer=[2], groups=[(3, 4)]))
    truth = people.decisions_after(score, X)
    assert people.unproven(score, X) == 0.0
    monkeypatch.setattr(TreeBest, "nodes", 1)
    hasty = BestResponse(QuadraticCost(0.7), ActionSet(integer=[2], groups=[(3, 4)]))
    with pytest.warns(UnprovenWarning, match=r"of 200 people .* count as refused"):
        found = hasty.decisions_after(score, X)
    unknown = hasty.unproven(score, X)
    assert 0.0 < unknown < 1.0
    assert not (found & ~truth).any()  # nobody is approved who does not cross
    assert (found != truth).mean() <= unknown
    with pytest.warns(UnprovenWarning):
        answer = hasty.respond(score, X)
    assert (~answer.converged).mean() == pytest.approx(unknown)
    assert not answer.moved[~answer.converged].any()
