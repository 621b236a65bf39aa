"""One situation described in two ways: nobody responds or is advised otherwise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from countermove.data.relations import LinearRows
from countermove.people import (
    ActionSet,
    Cost,
    LinearCost,
    MahalanobisCost,
    MixtureCost,
    QuadraticCost,
    WeightedQuadraticCost,
)
from countermove.recourse import recommend
from countermove.response import BestResponse, ScalarResponse

from ..response.conftest import COSTS, Case, linear_score, random_case
from ..response.test_possible import crowd

SEEDS = range(4)
PEOPLE = {"best": BestResponse, "smooth": ScalarResponse}
by_kind = pytest.mark.parametrize("kind", PEOPLE)
by_cost = pytest.mark.parametrize("cost_name", COSTS)
by_box = pytest.mark.parametrize("boxed", [False, True], ids=["free", "boxed"])


def answers(kind: str, case: Case):
    """Return where people go, what it costs them, and how they are decided about."""
    people = PEOPLE[kind](case.cost, case.actions)
    found = people.respond(case.score, case.X)
    return found.x_new, found.cost, people.decisions_after(case.score, case.X)


def check_same(kind: str, case: Case, other: Case, there) -> None:
    """Compare two descriptions; ``there`` brings places of the first into the second."""
    (x_new, cost, decided), (x_other, cost_other, decided_other) = (
        answers(kind, each) for each in (case, other)
    )
    np.testing.assert_allclose(x_other, there(x_new), atol=2e-7)
    np.testing.assert_allclose(cost_other, cost, atol=2e-7)
    np.testing.assert_array_equal(decided_other, decided)


def in_other_units(case: Case, scale: np.ndarray, offset: np.ndarray) -> Case:
    """Return the same people in columns ``scale * x + offset``; a negative scale turns one over."""
    d, flipped = len(scale), scale < 0.0
    actions = case.actions
    lower, upper, low, high = (
        np.broadcast_to(np.full(d, sign * np.inf) if bound is None else bound, (d,))
        for bound, sign in (
            (actions.lower, -1), (actions.upper, 1), (actions.min_value, -1), (actions.max_value, 1)
        )
    )  # fmt: skip
    lower, upper = scale * lower, scale * upper
    low, high = scale * low + offset, scale * high + offset
    rising, falling = set(actions.only_increase), set(actions.only_decrease)
    turned = {j for j in rising | falling if flipped[j]}
    other = ActionSet(
        np.where(flipped, upper, lower), np.where(flipped, lower, upper),
        np.where(flipped, high, low), np.where(flipped, low, high),
        sorted(rising - turned | falling & turned), sorted(falling - turned | rising & turned),
        actions.immutable,
        A=None if actions.A is None else actions.A / scale, b=actions.b,
    )  # fmt: skip
    score = linear_score(case.w / scale, case.b - float(case.w @ (offset / scale)))
    return Case(score, cost_in_other_units(case.cost, scale), other, case.X * scale + offset)


def cost_in_other_units(cost: Cost, scale: np.ndarray) -> Cost:
    d = len(scale)
    if isinstance(cost, MahalanobisCost):
        return MahalanobisCost(cost.matrix.numpy() / np.outer(scale, scale))
    if isinstance(cost, LinearCost):
        return LinearCost(cost.direction.numpy() / scale)
    if isinstance(cost, MixtureCost):
        direction, weights = cost.direction.numpy() / scale, cost.weights.numpy() / scale**2
        return MixtureCost(direction, cost.gamma, cost.scale, weights)
    weights = cost.canonical(d).weights
    assert weights is not None
    return WeightedQuadraticCost(weights.numpy() / scale**2)


@pytest.mark.parametrize("seed", SEEDS)
@by_cost
@by_box
def test_best_responses_are_the_same_in_any_units(seed, cost_name, boxed):
    """Metres or feet, a column turned over, zero elsewhere: the same people decide the same."""
    case, rng = random_case(cost_name, seed, boxed), np.random.default_rng(seed)
    scale = rng.choice([-1.0, 1.0], 5) * np.exp(rng.normal(size=5))
    offset = rng.normal(size=5)
    other = in_other_units(case, scale, offset)
    check_same("best", case, other, lambda x: x * scale + offset)


@pytest.mark.parametrize("seed", SEEDS)
@by_cost
@by_box
def test_advice_is_the_same_in_any_units(seed, cost_name, boxed):
    """And costs what the response that crosses at the least cost pays."""
    case, rng = random_case(cost_name, seed, boxed), np.random.default_rng(seed)
    scale = rng.choice([-1.0, 1.0], 5) * np.exp(rng.normal(size=5))
    other = in_other_units(case, scale, np.zeros(5))
    ours, theirs = (
        recommend(each.score, each.X, threshold=0.5, actions=each.actions, cost=each.cost)
        for each in (case, other)
    )
    np.testing.assert_array_equal(theirs.status, ours.status)
    found = ours.status == "FOUND"
    assert ours.proven_cheapest[found].all()
    least = BestResponse(case.cost, case.actions).crossing_cost(case.score, case.X)
    for advice in (ours, theirs):
        np.testing.assert_allclose(advice.cost[found], least[found], rtol=2e-6, atol=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
@by_kind
@by_cost
@by_box
def test_columns_turned_over_or_counted_from_elsewhere_change_nothing(seed, kind, cost_name, boxed):
    case, rng = random_case(cost_name, seed, boxed), np.random.default_rng(seed)
    scale, offset = rng.choice([-1.0, 1.0], 5), rng.normal(size=5)
    check_same(kind, case, in_other_units(case, scale, offset), lambda x: x * scale + offset)


@pytest.mark.parametrize("seed", SEEDS)
@by_kind
@by_box
def test_a_free_column_that_the_rule_ignores_is_left_alone(seed, kind, boxed):
    case = random_case("weighted", seed, boxed)
    wider = {
        name: None if bound is None else np.append(bound, end)
        for name, bound, end in (
            ("lower", case.actions.lower, -9.0), ("upper", case.actions.upper, 9.0),
            ("min_value", case.actions.min_value, -9.0), ("max_value", case.actions.max_value, 9.0),
        )
    }  # fmt: skip
    way = {name: getattr(case.actions, name) for name in ("only_increase", "only_decrease")}
    extra = np.random.default_rng(seed).normal(size=(len(case.X), 1))
    other = Case(
        linear_score(np.append(case.w, 0.0), case.b),
        WeightedQuadraticCost(np.append(case.cost.canonical(5).weights.numpy(), 0.7)),
        ActionSet(**wider, **way, immutable=case.actions.immutable),
        np.hstack([case.X, extra]),
    )
    check_same(kind, case, other, lambda x: np.hstack([x, extra]))


def with_rows(case: Case, A: np.ndarray, b: np.ndarray) -> Case:
    said = case.actions.describe() | {"A": A, "b": b}
    return replace(case, actions=ActionSet(**said))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("cost", ["quadratic", "weighted", "mahalanobis"])
@by_kind
def test_constraints_said_twice_or_following_from_others_change_nothing(seed, kind, cost):
    """Rows that depend on each other: a copy, a multiple, a sum, and one that never binds."""
    case, rng = random_case(cost, seed, boxed=True), np.random.default_rng(seed)
    A, b = rng.normal(size=(2, 5)), rng.uniform(0.1, 0.4, 2)
    more = np.vstack([A, A[0], 3.0 * A[1], A.sum(axis=0), A[0]])
    room = np.concatenate([b, b[:1], 3.0 * b[1:], [b.sum()], b[:1] + 5.0])
    check_same(kind, with_rows(case, A, b), with_rows(case, more, room), lambda x: x)


@pytest.mark.parametrize("name", ["credit", "german"])
@by_kind
def test_relations_said_twice_or_following_from_others_change_nothing(name, kind):
    score, X, actions = crowd(name, 60, seed=8)
    possible = actions.possible
    rows = possible.relations.rows
    assert rows.satisfied(X).all()  # else a sum of two rows asks for more than both
    doubled = LinearRows(
        np.vstack([rows.A, rows.A, rows.A[:1] + rows.A[-1:]]),
        np.concatenate([rows.lower, rows.lower, rows.lower[:1] + rows.lower[-1:]]),
        np.concatenate([rows.upper, rows.upper, rows.upper[:1] + rows.upper[-1:]]),
        (*rows.texts, *rows.texts, "a sum"),
    )
    relations = replace(possible.relations, rows=doubled)
    case = Case(score, QuadraticCost(0.5), actions, X)
    other = replace(case, actions=actions.with_possible(replace(possible, relations=relations)))
    check_same(kind, case, other, lambda x: x)
    relaxed = replace(case, actions=actions.with_possible(None))
    assert not np.allclose(answers(kind, case)[0], answers(kind, relaxed)[0])
