"""The compiled search finds what trying everything finds, and its proofs are true."""

from __future__ import annotations

from itertools import product

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from countermove.errors import NotConvergedError
from countermove.people import (
    ActionSet,
    LinearCost,
    MahalanobisCost,
    MixtureCost,
    WeightedQuadraticCost,
)
from countermove.people.feasible import (
    FeasibleActions,
    ListedStates,
    Premise,
    feasible_actions,
)
from countermove.recourse import recommend
from countermove.recourse.mixed_integer import cheapest_action, squares_of
from countermove.response.exact import cheapest_exact, highest_gain

from ..response.test_possible import crowd
from .conftest import assert_agrees_with_highs, linear, town_actions, town_people

PEOPLE, WIDTH = 3, 8
GROUP, PATH = np.array([3, 4, 5]), np.array([6, 7])


def lattice_people(draws: np.random.Generator, rows: int) -> FeasibleActions:
    """Three whole numbers, a one-hot group of three and a history of two columns.

    Of more than one row, the first is in force only where column 1 ends a step up, the second
    only in the third state of the history.
    """
    step = np.array([*draws.uniform(0.2, 1.0, 3), *np.zeros(5)])
    low, high = np.zeros((2, PEOPLE, WIDTH))
    low[:, :3] = -draws.integers(0, 4, (PEOPLE, 3)) * step[:3]
    high[:, :3] = draws.integers(0, 4, (PEOPLE, 3)) * step[:3]
    now = draws.integers(0, 3, PEOPLE)
    unit = draws.uniform(0.5, 2.0, 3)
    bits = (np.eye(3)[None] - np.eye(3)[now][:, None]) / unit
    change = draws.normal(size=(PEOPLE, 4, 2))
    change[:, 0] = 0.0
    listed = []
    for columns, moves, present, metric in (
        (GROUP, bits, now, unit), (PATH, change, np.zeros(PEOPLE, int), np.ones(2)),
    ):  # fmt: skip
        allowed = draws.uniform(size=moves.shape[:2]) < 0.75
        allowed[np.arange(PEOPLE), present] = True
        part = ListedStates(columns, moves, allowed, present, metric)
        low[:, columns], high[:, columns] = part.end
        listed.append(part)
    A = draws.normal(size=(rows, WIDTH)) * (draws.uniform(size=(rows, WIDTH)) < 0.5)
    b = draws.uniform(-0.3, 1.5, (PEOPLE, rows))
    premises = ()
    if rows > 1:
        premises = (
            Premise(1, np.full(PEOPLE, step[1]), A[:1], b[:, :1]),
            Premise(6, change[:, 2, 0].copy(), A[1:2], b[:, 1:2]),
        )
        A, b = A[2:], b[:, 2:]
    shut = np.zeros((PEOPLE, WIDTH), bool)
    return FeasibleActions(
        low, high, step, tuple(listed), 1, A if len(A) else None, b if len(A) else None,
        premises, shut, shut,
    )  # fmt: skip


def everything(feasible: FeasibleActions, i: int) -> np.ndarray:
    """Return every action of one person that steps, states and rows allow, without `meets`."""
    numbers = [
        np.arange(
            round(feasible.low[i, j] / feasible.step[j]),
            round(feasible.high[i, j] / feasible.step[j]) + 1,
        )
        * feasible.step[j]
        for j in range(3)
    ]
    states = [part.change[i][part.allowed[i]] for part in feasible.listed]
    actions = np.array([np.concatenate([n, s, p]) for *n, s, p in product(*numbers, *states)])
    good = np.ones(len(actions), bool)
    if feasible.A is not None:
        good &= (actions @ feasible.A.T + feasible.b[i] >= 0.0).all(axis=1)
    for premise in feasible.premises:
        met = (actions @ premise.A.T + premise.b[i] >= 0.0).all(axis=1)
        good &= met | (np.abs(actions[:, premise.column] - premise.value[i]) > 1e-7)
    return actions[good]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), rows=st.integers(0, 3), bent=st.booleans())
def test_equals_trying_everything(seed, rows, bent):
    draws = np.random.default_rng(seed)
    feasible = lattice_people(draws, rows)
    slope, weights = draws.normal(size=(PEOPLE, WIDTH)), draws.uniform(0.2, 3.0, WIDTH)
    need = draws.uniform(0.1, 5.0, PEOPLE)
    kink = draws.normal(size=WIDTH) if bent else None
    found = cheapest_exact(feasible, slope, need, weights, kink)
    assert not found.unsolved.any()
    for i in range(PEOPLE):
        actions = everything(feasible, i)
        good = actions @ slope[i] >= need[i]
        cost = actions**2 @ weights + (np.maximum(actions @ kink, 0.0) if bent else 0.0)
        assert found.proven_none[i] == (not good.any())
        if good.any():
            gap = np.abs(actions[good] - found.action[i]).max(axis=1)
            assert gap.min() < 1e-9
            assert cost[good][gap.argmin()] == pytest.approx(cost[good].min(), rel=1e-9, abs=1e-12)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), rows=st.integers(0, 3))
def test_the_highest_gain_is_allowed_and_all_but_the_highest(seed, rows):
    draws = np.random.default_rng(seed)
    feasible = lattice_people(draws, rows)
    slope = draws.normal(size=(PEOPLE, WIDTH))
    everybody = [everything(feasible, i) for i in range(PEOPLE)]
    assume(all(len(actions) for actions in everybody))
    # Somewhere allowed: the first of all actions.
    found = highest_gain(feasible, slope, np.array([actions[0] for actions in everybody]))
    assert feasible.meets(found).all()
    for i, actions in enumerate(everybody):
        gains = actions @ slope[i]
        assert np.abs(actions - found[i]).max(axis=1).min() < 1e-9
        assert slope[i] @ found[i] >= gains.max() - 0.05 * (gains.max() - gains.min())


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), rows=st.integers(0, 3))
def test_highs_finds_the_same_among_states_and_premises(seed, rows):
    draws = np.random.default_rng(seed)
    feasible = lattice_people(draws, rows)
    slope, weights = draws.normal(size=(PEOPLE, WIDTH)), draws.uniform(0.2, 3.0, WIDTH)
    need = draws.uniform(0.1, 3.0, PEOPLE)
    assert_agrees_with_highs(
        cheapest_exact(feasible, slope, need, weights), feasible, slope, need, weights
    )


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("constrained", [False, True])
def test_agrees_with_highs_on_mixed_people(whole, constrained):
    draws = np.random.default_rng(4 + whole + 2 * constrained)
    A = np.array([[-1.0, -0.4, 0.5, 0, 0, 0, 0], [0.0, -1.0, -0.5, 0, -0.2, 0, 0.3]])
    limits = {"A": A, "b": draws.uniform(0.0, 1.5, (6, 2))} if constrained else {}
    actions, X = town_actions(6, **limits), town_people(6, 2)
    if whole:
        actions.integer = (0, *actions.integer)
    feasible = feasible_actions(actions, X)
    slope, need = draws.normal(size=(6, 7)), draws.uniform(0.2, 4.0, 6)
    weights = draws.uniform(0.3, 3.0, 7)
    found = cheapest_exact(feasible, slope, need, weights)
    assert not found.unsolved.any()
    assert_agrees_with_highs(found, feasible, slope, need, weights)
    assert actions.contains(X, np.nan_to_num(found.action))[~found.proven_none].all()


@pytest.mark.parametrize("seed", range(4))
def test_continuous_columns_are_closed_exactly_under_rows(seed):
    """The optimum of a convex program: no other feasible point of a fine cloud is cheaper."""
    import cvxpy as cp

    draws = np.random.default_rng(seed)
    k, m = 6, 4
    A, b = draws.normal(size=(m, k)), draws.uniform(0.1, 1.0, m)
    w, q = draws.normal(size=k), draws.uniform(0.3, 3.0, k)
    actions = ActionSet(lower=-np.ones(k), upper=np.ones(k), A=A, b=b)
    feasible = feasible_actions(actions, np.zeros((1, k)))
    delta = cp.Variable(k)
    limits = [A @ delta + b >= 0, delta >= -1, delta <= 1]
    most = cp.Problem(cp.Maximize(w @ delta), limits).solve()
    for share in (0.3, 0.9, 1.1):
        need = share * most
        found = cheapest_exact(feasible, w, np.array([need]), q)
        assert not found.unsolved[0]
        assert found.proven_none[0] == (share > 1.0)
        if share <= 1.0:
            program = cp.Problem(cp.Minimize(q @ delta**2), [*limits, w @ delta >= need])
            program.solve(solver=cp.CLARABEL)
            assert q @ found.action[0] ** 2 == pytest.approx(program.value, rel=1e-6)
            assert found.action[0] @ w >= need - 1e-9


def test_constraints_change_answers_and_take_recourse_away():
    A = np.array([[-1.0, -0.4, 0.5, 0, 0, 0, 0], [0.0, -1.0, -0.5, 0, -0.2, 0, 0.3]])
    X, slope = town_people(40, 5), np.tile([1.0, 0.5, -0.4, 0.0, 0.2, 0.0, -0.3], (40, 1))
    need, weights = np.full(40, 1.0), np.ones(7)
    free, bound = (
        cheapest_exact(
            feasible_actions(town_actions(40, A=A, b=[room, room]), X), slope, need, weights
        )
        for room in (99.0, 0.8)
    )
    assert (free.proven_none <= bound.proven_none).all()
    assert bound.proven_none.sum() > free.proven_none.sum()
    both = ~bound.proven_none
    cost = [(np.nan_to_num(part.action)[both] ** 2).sum(axis=1) for part in (free, bound)]
    assert (cost[0] <= cost[1] + 1e-9).all()
    assert (cost[0] < cost[1] - 1e-6).any()


def gives_up(*asked):
    raise NotConvergedError("HiGHS gave up")


def test_whoever_exceeds_the_budget_is_left_unsolved_and_said_so(monkeypatch):
    monkeypatch.setattr("countermove.response.exact.cheapest.BUDGET", 1)
    monkeypatch.setattr("countermove.recourse.affine.cheapest_action", gives_up)
    score, X = linear([0.7, -0.3, 0.41], -1.0), np.zeros((1, 3))
    actions = ActionSet(lower=-np.full(3, 9.0), upper=np.full(3, 9.0), integer=range(3))
    advice = recommend(score, X, threshold=0.5, actions=actions)
    assert advice.status.tolist() == ["FOUND"]  # the best score reached, without proof
    assert advice.proven_cheapest.tolist() == [False]


def test_the_continuous_part_is_closed_for_every_need():
    """Prices near the answer were given up where a step raised the bound by less than rounding."""
    step, n = np.array([1.0, 1.0, 2.12, 1.27]), 100_000
    bounds = {"lower": [0.0, -3.07, 0.0, 0.0], "upper": [0.845, 1.95, 2.12, 1.27]}
    actions = ActionSet(**bounds, integer=[2, 3]).standardised(np.zeros(4), 1.0 / step)
    slope, need = np.array([1.98, 3.13, 1.26, 1.5]), np.linspace(3.0, 5.3, n)
    feasible, most = feasible_actions(actions, np.zeros((n, 4))), np.full(n, 2.0)
    found = cheapest_exact(feasible, slope, need, np.ones(4), None, most)
    assert not found.unsolved.any()  # 24 before, and a retraining of trees ended there
    here = ~found.proven_none
    assert (found.action[here] @ slope >= need[here] * (1.0 - 1e-10)).all()
    assert ((found.action[here] ** 2).sum(axis=1) < 2.0).all()


@pytest.mark.parametrize(
    "cost",
    [MixtureCost([0.5, -1.0, 0.3], 0.4), LinearCost([0.5, 0.2, 0.3])],
    ids=["kink and squares", "kink alone"],
)
def test_kinked_costs_are_proven_cheapest(cost):
    score, X = linear([0.7, -0.3, 0.41], -1.0), np.zeros((1, 3))
    actions = ActionSet(lower=-np.full(3, 3.0), upper=np.full(3, 3.0), integer=range(3))
    advice = recommend(score, X, threshold=0.5, actions=actions, cost=cost)
    referee = recommend(score, X, "exhaustive", 0.5, actions, cost)
    assert advice.proven_cheapest.all()
    assert referee.proven_cheapest.all()
    assert advice.cost == pytest.approx(referee.cost, abs=1e-6)


def test_costs_that_do_not_separate_are_solved_exactly():
    # In the plane with one constraint active: minimise d'Md over w.d = need, M^{-1} w scaled.
    matrix = np.array([[2.0, 0.8], [0.8, 1.0]])
    slope, need = np.array([1.0, 0.5]), 1.0
    feasible = feasible_actions(ActionSet(lower=[-9.0, -9.0], upper=[9.0, 9.0]), np.zeros((1, 2)))
    found = cheapest_action(feasible, MahalanobisCost(matrix), slope, need)
    inverse = np.linalg.solve(matrix, slope)
    exact = inverse * need / (slope @ inverse)
    np.testing.assert_allclose(found, exact, atol=1e-9)


@pytest.mark.parametrize("kind", ["squares", "kink"])
@pytest.mark.parametrize("size", [1e-3, 0.1, 30.0])
def test_costs_that_do_not_separate_are_proven_cheapest_whatever_their_size(kind, size):
    """HiGHS has absolute tolerances: an action of a cost of 1e-5 was 5 % too expensive."""
    draws = np.random.default_rng([int(1e3 * size), kind == "kink"])
    for _ in range(4):
        factor, slope = draws.normal(size=(4, 4)), draws.normal(size=4)
        direction = draws.normal(size=4)
        cost = MahalanobisCost(factor @ factor.T / 4 + 0.3 * np.eye(4))
        cost = LinearCost(direction) if kind == "kink" else cost
        # Two columns in whole steps of ``size``, two of any amount, and a row across them.
        bounds = ActionSet(
            lower=np.full(4, -2.0), upper=np.full(4, 2.0), integer=[0, 1],
            A=draws.normal(size=(1, 4)), b=[0.5],
        )  # fmt: skip
        feasible = feasible_actions(
            bounds.rescaled(np.full(4, 1.0 / size), np.zeros(4)), np.zeros((1, 4))
        )
        need = 0.7 * size * float(np.abs(slope).max())
        found, squares = cheapest_action(feasible, cost, slope, need), squares_of(cost, 4)
        least = np.inf
        for steps in product(range(-2, 3), repeat=2):
            move = cp.Variable(4)
            price = cp.sum_squares(squares.rows @ move) if len(squares.rows) else 0.0
            price += cp.pos(squares.kink @ move) / size
            inside = [move[:2] == steps, cp.abs(move) <= 2.0, slope @ move >= need / size]
            inside += [size * feasible.A @ move + feasible.b[0] >= 0.0]
            problem = cp.Problem(cp.Minimize(price), inside)
            problem.solve(solver="CLARABEL", tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10)
            least = min(least, problem.value if problem.status == "optimal" else np.inf)
        assert np.isfinite(least) == (found is not None)
        if found is not None:
            assert squares.price(found) == pytest.approx(least * size**2, rel=2e-6, abs=1e-9 * size)


@pytest.mark.parametrize("wrong", ["none", "too expensive"])
def test_what_highs_says_is_held_against_another_search(wrong, monkeypatch):
    """On rows of very different sizes it has called actions cheapest that cost 16 times more."""
    score, X = linear([0.7, -0.3, 0.41], -1.0), np.zeros((2, 3))
    actions = ActionSet(lower=-np.full(3, 9.0), upper=np.full(3, 9.0), integer=range(3))
    cost = MahalanobisCost(np.eye(3) + 0.2)
    true = recommend(score, X, threshold=0.5, actions=actions, cost=cost)
    assert true.proven_cheapest.all()
    answer = None if wrong == "none" else np.array([9.0, 0.0, 0.0])
    monkeypatch.setattr("countermove.recourse.affine.cheapest_action", lambda *a: answer)
    found = recommend(score, X, threshold=0.5, actions=actions, cost=cost)
    assert found.status.tolist() == ["FOUND", "FOUND"]
    assert not found.proven_cheapest.any()
    assert (found.cost < 2.0 * true.cost).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["credit", "german"])
def test_mahalanobis_costs_on_real_tables_are_never_undercut(name):
    """By what is cheapest at the squares of the columns alone."""
    score, X, actions = crowd(name, 40, seed=2)
    factor = np.random.default_rng(0).normal(size=(X.shape[1], X.shape[1]))
    cost = MahalanobisCost(0.3 * factor @ factor.T / len(factor) + np.eye(len(factor)))
    advice = recommend(score, X, threshold=0.5, actions=actions, cost=cost)
    found = advice.status == "FOUND"
    assert found.sum() >= 5
    assert advice.proven_cheapest[found].all()
    alone = WeightedQuadraticCost(np.diag(cost.matrix.numpy()))
    other = recommend(score, X, threshold=0.5, actions=actions, cost=alone)
    there = cost.price(X[found], other.x_new(X)[found])
    assert (advice.cost[found] <= there * (1.0 + 1e-6)).all()


def test_a_row_that_nobody_can_move_does_not_cost_the_cheapest_action():
    """Asked again with a margin, HiGHS found nothing, and the best score reached stood in."""
    # The first row says 0 >= 0 of a column that cannot move: no margin is to be had there.
    rows = {"A": [[0.0, 0.0, 1.0], [-1.0, 1.0, 0.0]], "b": [0.0, 0.0]}
    actions = ActionSet(lower=[-9.0, -9.0, 0.0], upper=[9.0, 9.0, 0.0], **rows)
    feasible, slope = feasible_actions(actions, np.zeros((1, 3))), np.array([1.0, 0.5, 0.0])
    cost = MahalanobisCost(np.diag([2.0, 1.0, 1.0]))
    plain, further = (cheapest_action(feasible, cost, slope, 1.0, m) for m in (0.0, 1e-5))
    assert further == pytest.approx(plain, abs=1e-2)
    assert further @ slope >= 1.0
    assert feasible.meets(further[None])[0]


@pytest.mark.slow
def test_hundreds_of_people_per_second_under_constraints():
    """CPU seconds, and a fraction of what the benchmark measures, for slower machines."""
    import time

    draws = np.random.default_rng(0)
    n, size = 300, np.array([1.2, 12.0, 2800.0, 1.5, 1.1, 0.5])
    original = np.column_stack([draws.integers(0, top, n) for top in (4, 60, 9000, 5, 4, 2)])
    actions = ActionSet(
        min_value=np.zeros(6),
        max_value=[3.0, 120.0, 18000.0, 4.0, 4.0, 1.0],
        integer=range(6),
        A=[[-1.0, 0.0, 0.0, -1.0, 0.0, 0.0], [0.0, 1.0, -0.005, 0.0, 0.0, 0.0]],
        b=[2.0, 6.0],
    ).rescaled(size, np.zeros(6))
    score = linear([0.7, -0.5, -0.3, 0.4, -0.3, 0.1], -0.5)
    recommend(score, original[:2] / size, threshold=0.6, actions=actions)
    start = time.process_time()
    advice = recommend(score, original / size, threshold=0.6, actions=actions)
    spent = time.process_time() - start
    refused = int((advice.status != "NOT_NEEDED").sum())
    assert (advice.status == "FOUND").any()
    assert refused / spent > 400
