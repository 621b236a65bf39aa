"""Responses of people who stay possible, against convex programs written branch by branch."""

from __future__ import annotations

import itertools
from dataclasses import replace

import cvxpy as cp
import numba
import numpy as np
import pytest
import torch

from countermove.data.cleaning import clean
from countermove.data.rows import fit_standardiser, rows_of, standardised_table
from countermove.data.schema import load_schema
from countermove.data.sources import read_embedded
from countermove.errors import CostError, ParameterError
from countermove.learning.classifier import StrategicClassifier
from countermove.people import (
    ActionSet,
    MahalanobisCost,
    QuadraticCost,
    WeightedQuadraticCost,
)
from countermove.people.feasible import feasible_actions
from countermove.people.possible import Possible
from countermove.response import (
    AscentResponse,
    BestResponse,
    ConicResponse,
    GainResponse,
    Population,
    ScalarResponse,
)
from countermove.response.exact.cheapest import cheapest_exact
from countermove.response.response_set import kinds_of, obeying, warn_once
from countermove.response.training_signal import reach_around
from countermove.scores import LinearScore
from countermove.training import Loss
from countermove.training.curvature import risk_derivatives

pytestmark = pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
TABLES = ("credit", "german")


def crowd(name: str, count: int, seed: int = 0):
    """Return people of a table, their action set, and a rule about half of them fail."""
    schema = load_schema(name, "conf/base/schemas")
    table = clean(read_embedded(name), schema)
    units = fit_standardiser(table, schema, divide_by_root_d=False)
    rows = rows_of(standardised_table(table, schema, units), schema)
    draws = np.random.default_rng(seed)
    who = draws.permutation(len(rows.X))[:count]
    actions = ActionSet.from_schema(schema, units).with_windows(rows.X, rows.windows).of_rows(who)
    actions = actions.obeyed_in_responses()
    X = np.ascontiguousarray(rows.X[who])
    # Along the label, and something of everything, so that histories and premises matter.
    weight = (rows.X * rows.y[:, None]).mean(axis=0) + draws.normal(scale=0.15, size=X.shape[1])
    return rule(weight, -float(np.quantile(X @ weight, 0.6))), X, actions


def rule(weight, bias) -> LinearScore:
    """Return a linear score."""
    score = LinearScore(len(weight))
    with torch.no_grad():
        score.weight[:] = torch.from_numpy(np.asarray(weight))
        score.bias.fill_(float(bias))
    return score


class Referee:
    """One person's branches, read off the action set's own sentences, solved by CVXPY."""

    def __init__(self, actions: ActionSet, x):
        self.x, self.d = x, len(x)
        self.actions = actions.for_response()
        self.low, self.high = (part[0] for part in self.actions.box(x[None]))
        self.possible = self.actions.possible
        self.relations = self.possible.relations
        self.free = [j for j in range(self.d) if self.low[j] < self.high[j]]

    def branches(self):
        """Yield boxes and rows (a, least) with a · x_new >= least."""
        changes = [part[0] for part in self.possible.changes(self.x[None])]
        pairs = sorted(
            set(zip(self.relations.premise_columns, self.relations.premise_values, strict=True))
        )
        for states in itertools.product(*changes):
            low, high = self.low.copy(), self.high.copy()
            for history, change in zip(self.possible.histories, states, strict=True):
                low[list(history.columns)] = high[list(history.columns)] = change
            if (low < self.low - 1e-9).any() or (high > self.high + 1e-9).any():
                continue
            for sides in itertools.product((-1, 0, 1), repeat=len(pairs)):
                box = self._sided(low.copy(), high.copy(), pairs, sides)
                if box is not None:
                    force = {pair for pair, side in zip(pairs, sides, strict=True) if side == 0}
                    yield (*box, self._rows(force))

    def _sided(self, low, high, pairs, sides):
        for (j, value), side in zip(pairs, sides, strict=True):
            at = value - self.x[j]
            step = 1e-6
            if j in self.actions.integer:
                step = self.actions.step_sizes(self.d)[j] / self.actions.unit[j]
            if low[j] == high[j]:  # a settled history is where it is
                away = low[j] - at
                if side != (0 if abs(away) <= 1e-6 else np.sign(away)):
                    return None
                continue
            if side == 0:
                low[j], high[j] = max(low[j], at), min(high[j], at)
                if low[j] > high[j] + 1e-9:
                    return None
                low[j] = high[j] = at
            elif side > 0:
                low[j] = max(low[j], at + step)
            else:
                high[j] = min(high[j], at - step)
            if low[j] > high[j] + 1e-9:
                return None
        return low, np.maximum(low, high)

    def _rows(self, force):
        """Return rows of everybody, and those whose premise holds."""
        rows, kinds = [], []
        relations = self.relations
        for r in range(len(relations.rows.A)):
            kinds.append((relations.rows, r, True))
        for r in range(len(relations.conditional.A)):
            pair = (relations.premise_columns[r], relations.premise_values[r])
            if pair in force:
                kinds.append((relations.conditional, r, relations.in_force(self.x[None])[0, r]))
        for family, r, stands in kinds:
            a, now = family.A[r], float(family.A[r] @ self.x)
            # Whoever breaks it may stay as far from it as they are.
            if np.isfinite(family.lower[r]):
                least = min(family.lower[r], now) if stands else family.lower[r]
                rows.append((a, least - now))
            if np.isfinite(family.upper[r]):
                most = max(family.upper[r], now) if stands else family.upper[r]
                rows.append((-a, now - most))
        return rows

    def solve(self, objective, constraints):
        """Return the best value over the branches; ``objective`` of (δ) is minimised."""
        best = np.inf
        for low, high, rows in self.branches():
            delta = cp.Variable(self.d)
            cut = [a @ delta >= least for a, least in rows]
            finite_low, finite_high = np.isfinite(low), np.isfinite(high)
            cut += [delta[finite_low] >= low[finite_low], delta[finite_high] <= high[finite_high]]
            problem = cp.Problem(cp.Minimize(objective(delta)), cut + constraints(delta))
            tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-9)
            try:
                problem.solve(solver="CLARABEL", **tight)
            except cp.error.SolverError:
                problem.solve(solver="SCS", eps=1e-10, max_iters=100_000)
            if problem.status in ("optimal", "optimal_inaccurate"):
                best = min(best, problem.value)
        return best


def quadratic(q):
    """Return Σ q_j δ_j²."""
    return lambda delta: cp.sum(cp.multiply(q, cp.square(delta)))


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("count", [6, 120])
@pytest.mark.slow
def test_reach_and_cheapest_crossing_equal_a_convex_program_per_branch(name, count):
    score, X, actions = crowd(name, count)
    q = np.random.default_rng(1).uniform(0.5, 2.0, X.shape[1])
    people = BestResponse(WeightedQuadraticCost(q), actions)
    weight = score.weight.detach().numpy()
    with torch.no_grad():
        now = score(torch.from_numpy(X)).numpy()
        reach = people.scores_after(score, torch.from_numpy(X)).numpy() - now
    cost = people.crossing_cost(score, X)
    for i in range(count):
        referee = Referee(actions.of_rows([i]), X[i])
        most = -referee.solve(lambda d: -weight @ d, lambda d: [quadratic(q)(d) <= 2.0])
        assert reach[i] == pytest.approx(most, abs=2e-7)
        if now[i] < 0.0:
            least = referee.solve(quadratic(q), lambda d, i=i: [weight @ d >= -now[i]])
            assert cost[i] == pytest.approx(least, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("start", ["global", "stay"])
@pytest.mark.parametrize("kind", ["best", "smooth"])
@pytest.mark.slow
def test_whoever_moves_stays_possible_and_ends_where_the_score_says(name, start, kind):
    score, X, actions = crowd(name, 400, seed=3)
    people = BestResponse(actions=actions)
    if kind == "smooth":
        people = ScalarResponse(actions=actions, start=start)
    found = people.respond(score, X)
    relaxed = actions._copy(integer=(), steps={})
    assert relaxed.contains(X, found.x_new - X).all()
    assert found.moved.any()
    with torch.no_grad():
        after = score(torch.from_numpy(found.x_new)).numpy()
        trained = people.scores_after(score, torch.from_numpy(X)).numpy()
    assert ((after >= 0.0) == people.decisions_after(score, X)).all()
    if kind == "best":
        assert ((trained >= 0.0) == (after >= 0.0)).all()
    else:
        np.testing.assert_allclose(trained, after, atol=1e-9)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.slow
def test_no_smoothed_response_is_beaten_in_any_branch(name):
    score, X, actions = crowd(name, 4, seed=5)
    people = ScalarResponse(actions=actions)
    found = people.respond(score, X)
    weight, now = score.weight.detach().numpy(), score(torch.from_numpy(X)).detach()
    after = score(torch.from_numpy(found.x_new)).detach()
    utility = people.worth(score, after).detach().numpy() - found.cost
    for i in range(len(X)):
        referee = Referee(actions.of_rows([i]), X[i])
        for gain in np.linspace(0.1, 3.0, 8):
            least = referee.solve(
                quadratic(np.ones(X.shape[1])), lambda d, gain=gain: [weight @ d >= gain]
            )
            rival = people.worth(score, now[i : i + 1] + gain).item() - least
            assert utility[i] >= rival - 1e-7


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("what", ["reach", "crossing", "smooth", "moved"])
@pytest.mark.slow
def test_gradients_follow_rule_and_cost(name, what):
    score, X, actions = crowd(name, 12, seed=7)
    rows, d = torch.from_numpy(X), X.shape[1]
    q = torch.from_numpy(np.random.default_rng(2).uniform(0.8, 1.5, d))

    def function(weight, bias, price):
        own = LinearScore(d)
        del own.weight, own.bias
        own.weight, own.bias = weight, bias
        cost = WeightedQuadraticCost(price)
        if what == "reach":
            return BestResponse(cost, actions).scores_after(own, rows)
        if what == "crossing":
            return BestResponse(cost, actions).crossing(own, rows).cost
        people = ScalarResponse(cost, actions)
        return (
            people.scores_after(own, rows) if what == "smooth" else people.respond(own, rows).x_new
        )

    inputs = (
        score.weight.detach().clone().requires_grad_(),
        score.bias.detach().clone().requires_grad_(),
        q.clone().requires_grad_(),
    )
    assert torch.autograd.gradcheck(function, inputs, eps=1e-6, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.slow
def test_newton_sees_the_curvature_of_the_loss_among_possible_people(name):
    score, X, actions = crowd(name, 300, seed=11)
    people = BestResponse(actions=actions)
    rows, y = (
        torch.from_numpy(X),
        torch.from_numpy(np.sign(np.random.default_rng(4).normal(size=300))),
    )

    def derivatives(point):
        return risk_derivatives(
            Loss("logistic"), rule(point[:-1], point[-1]), rows, y, [(1.0, people)]
        )

    point = np.append(score.weight.detach().numpy(), score.bias.item())
    here, draws = derivatives(point), np.random.default_rng(6)
    assert here.exact
    for _ in range(5):
        way = draws.normal(size=len(point))
        ahead, back = derivatives(point + 1e-6 * way), derivatives(point - 1e-6 * way)
        assert here.gradient @ way == pytest.approx((ahead.value - back.value) / 2e-6, abs=1e-6)
        bent = (ahead.gradient - back.gradient) / 2e-6
        np.testing.assert_allclose(here.hessian @ way, bent, atol=1e-4)


@pytest.mark.parametrize("name", TABLES)
def test_scores_after_response_to_rules_nearby_are_known_to_second_order(name):
    score, X, actions = crowd(name, 300, seed=12)
    people = BestResponse(actions=actions)
    around = reach_around(people, score, X)
    way = np.random.default_rng(7).normal(size=X.shape[1])
    missed = []
    for far in (4e-3, 2e-3):
        other = rule(score.weight.detach().numpy() + far * way, score.bias.item() + far)
        with torch.no_grad():
            exact = people.scores_after(other, torch.from_numpy(X)).numpy()
        missed.append(np.abs(around.scores_nearby(other) - exact))
    # Half as far away the error is an eighth, but for those who meet another bound on the way.
    assert np.median(missed[0]) < 1e-5
    assert np.median(missed[1]) < np.median(missed[0]) / 6.0
    assert (missed[0] < 1e-3).all()


def test_rules_nearby_say_nothing_where_each_is_as_quickly_known():
    score, X, _ = crowd("credit", 5)
    assert reach_around(BestResponse(), score, X) is None
    assert reach_around(ScalarResponse(), score, X) is None


def test_what_cannot_be_done_is_refused():
    score, X, actions = crowd("credit", 5)
    d = X.shape[1]
    moving = torch.from_numpy(X).requires_grad_()
    for people in (
        BestResponse(actions=actions),
        BestResponse(MahalanobisCost(np.eye(d)), actions),
        ConicResponse(QuadraticCost(), actions),
        AscentResponse(actions=actions),
        GainResponse(actions=actions),
    ):
        with pytest.raises(ParameterError, match="not the people"):
            people.scores_after(score, moving)
    with pytest.raises(ParameterError, match="polish=True"):
        ScalarResponse(actions=actions, polish=False, start="stay").respond(score, X)
    with pytest.raises(ParameterError, match="quadratic or weighted cost"):
        ScalarResponse(MahalanobisCost(np.eye(d)), actions).with_factors(np.ones(5)).respond(
            score, X
        )
    with pytest.raises(CostError, match="weighted quadratic"):
        GainResponse(MahalanobisCost(np.eye(d)), actions).respond(score, X)
    pushed = actions._copy(lower=np.where(np.arange(d) == 2, 0.1, -np.inf))
    with pytest.raises(ParameterError, match="may stay"):
        BestResponse(actions=pushed).respond(score, X)
    with pytest.raises(ParameterError, match="bounds of 5 people"):
        BestResponse(actions=actions).respond(score, X[:3])


@pytest.mark.parametrize("size", [2.0**-72, 2.0**60])
@pytest.mark.slow
def test_tiny_and_huge_rules_are_met_as_rules_of_usual_size(size):
    """A rule whose weights all but vanish used to end a training run."""
    score, X, actions = crowd("credit", 400)
    large = rule(score.weight.detach().numpy() * size, score.bias.item() * size)
    people = BestResponse(actions=actions)
    np.testing.assert_array_equal(
        people.decisions_after(large, X), people.decisions_after(score, X)
    )
    with torch.no_grad():
        one, other = (people.scores_after(each, torch.from_numpy(X)) for each in (score, large))
    np.testing.assert_allclose(other / size, one, rtol=1e-9, atol=1e-9)
    known, new = people.respond(score, X), people.respond(large, X)
    np.testing.assert_allclose(new.x_new, known.x_new, rtol=1e-7, atol=1e-7)


def test_everybody_responds_to_rules_that_all_but_ignore_a_feature():
    """A hundred people stopped a training run where one weight was 1e-8 of another."""
    _, X, actions = crowd("credit", 6_000)
    movable = np.flatnonzero((actions.box(X)[0] < 0.0).any(axis=0))
    main, budget = movable[0], np.array([2.0])
    people = BestResponse(actions=actions).plan(X.shape[1]).people(X)
    ones, slope = np.ones(X.shape[1]), np.zeros(X.shape[1])
    slope[main] = -1.0
    alone = people.reach(slope, ones, budget).gain
    for other, little in itertools.product(movable[1:], [1e-4, 1e-7, 1e-10]):
        slope[:] = 0.0
        slope[main], slope[other] = -1.0, -little
        found = people.reach(slope, ones, budget)
        assert found.converged.all()
        # The other feature adds nothing to speak of, and takes nothing away.
        more = found.gain - alone
        assert more.min() > -1e-8
        assert more.max() < little * np.sqrt(2.0) + 1e-8
        assert found.cost.max() < 2.0 + 1e-5
        assert actions.for_response().possible.allows(X, people.full(found.action)).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_rules_of_weights_of_every_size_equal_a_convex_program_per_branch(name):
    _, X, actions = crowd(name, 40)
    draws, d = np.random.default_rng(3), X.shape[1]
    people = BestResponse(actions=actions).plan(d).people(X)
    for i in range(40):
        weight = draws.choice([-1.0, 1.0], d) * 10.0 ** -draws.uniform(0.0, 7.0, d)
        found = people.reach(weight, np.ones(d), np.array([2.0]))
        assert found.converged.all()
        referee = Referee(actions.of_rows([i]), X[i])
        most = -referee.solve(
            lambda delta, weight=weight: -weight @ delta,
            lambda delta: [quadratic(np.ones(d))(delta) <= 2.0],
        )
        assert found.gain[i] == pytest.approx(most, abs=2e-7)


@pytest.mark.slow
def test_nobody_s_response_depends_on_who_else_responds():
    score, X, actions = crowd("credit", 50)
    together = BestResponse(actions=actions).respond(score, X)
    for rows in (np.arange(25), np.arange(25, 50), np.array([7])):
        alone = BestResponse(actions=actions).of_rows(rows).respond(score, X[rows])
        assert (alone.x_new == together.x_new[rows]).all()


def little_people():
    """Return an action set on two columns: a <= b, and b <= 1 where a is 0; a by whole steps."""
    rows = {"A": [[-1.0, 1.0]], "lower": [0.0], "upper": [np.inf], "texts": ["a <= b"]}
    then = {"A": [[0.0, 1.0]], "lower": [-np.inf], "upper": [1.0], "texts": ["if a == 0"]}
    said = {
        "columns": ["a", "b"], "rows": rows, "conditional": then, "histories": [],
        "premise_columns": [0], "premise_values": [0.0], "mean": [0.0, 0.0], "scale": [1.0, 1.0],
        "low": [-np.inf, -np.inf], "high": [np.inf, np.inf],
    }  # fmt: skip
    actions = ActionSet(integer=[0], min_value=[-3.0, -3.0], max_value=[3.0, 3.0], possible=said)
    return actions.obeyed_in_responses()


@pytest.mark.slow
def test_two_threads_find_to_the_last_digit_what_one_finds(monkeypatch):
    score, X, actions = crowd("credit", 2_100)
    feasible = feasible_actions(actions, X)
    need = 0.3 - (X @ score.weight.detach().numpy() + score.bias.item())

    def answers():
        for response in (BestResponse, ScalarResponse):
            found = response(QuadraticCost(1.0), actions).respond(score, X)
            yield from (found.x_new, found.cost)
        people = BestResponse(QuadraticCost(1.0), actions)
        yield people.scores_after(score, torch.from_numpy(X)).detach().numpy()
        yield cheapest_exact(
            feasible, score.weight.detach().numpy(), need, np.ones(X.shape[1])
        ).action

    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 1)
    alone = list(answers())
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 2)
    together = list(answers())
    for one, two in zip(alone, together, strict=True):
        np.testing.assert_array_equal(two, one)


def test_cheapest_crossings_equal_trying_every_place_of_a_fine_grid():
    actions, draws = little_people(), np.random.default_rng(3)
    a = draws.integers(-2, 2, 40).astype(float)
    b = np.where(a == 0.0, draws.uniform(0.0, 1.0, 40), a + draws.uniform(0.0, 1.0, 40))
    X = np.column_stack([a, np.round(b, 2)])
    score = rule([1.0, 0.6], -3.1)
    cost = BestResponse(actions=actions).crossing_cost(score, X)
    fine = np.round(np.arange(-3.0, 3.005, 0.01), 2)
    places = np.stack(np.meshgrid(fine, fine, indexing="ij"), axis=-1).reshape(-1, 2)
    first, second = places.T
    # Whoever leaves 0 leaves it by a whole step; other steps are relaxed.
    possible = (
        (first <= second)
        & ((first != 0.0) | (second <= 1.0))
        & ~((np.abs(first) < 1.0) & (first != 0.0))
    )
    there = places[possible & (places @ [1.0, 0.6] >= 3.1 - 1e-9)]
    for x, found in zip(X, cost, strict=True):
        away = ((there - x) ** 2).sum(axis=1)
        assert found <= away.min() + 1e-9
        assert found == pytest.approx(away.min(), abs=0.06)


@pytest.mark.slow
def test_reach_grows_with_the_budget_shrinks_with_relations_and_whoever_crossed_stays():
    score, X, actions = crowd("credit", 500, seed=13)
    rows = torch.from_numpy(X)
    with torch.no_grad():
        dear, fair, cheap = (
            BestResponse(QuadraticCost(price), actions).scores_after(score, rows).numpy()
            for price in (2.0, 1.0, 0.5)
        )
        alone = BestResponse(actions=actions.obeyed_in_responses(False))
        relaxed = alone.scores_after(score, rows).numpy()
    assert (dear <= fair + 1e-12).all()
    assert (fair <= cheap + 1e-12).all()
    assert (fair <= relaxed + 1e-12).all()
    assert (fair < relaxed - 1e-6).any()
    people = BestResponse(actions=actions)
    moved = people.respond(score, X)
    crossed = np.flatnonzero(moved.moved)
    again = people.of_rows(crossed).respond(score, moved.x_new[crossed])
    assert not again.moved.any()


@pytest.mark.slow
def test_training_among_possible_people_ends_at_one_optimum_from_six_starts():
    _, X, actions = crowd("credit", 3000, seed=17)
    rows = np.random.default_rng(5)
    y = np.where(X[:, 8] + 0.3 * X[:, 1] + rows.normal(size=len(X)) > 0.5, -1.0, 1.0)
    ends = []
    for start in range(6):
        score = rule(rows.normal(size=X.shape[1]), 0.0) if start else None
        fitted = StrategicClassifier(
            score=score, response=BestResponse(actions=actions), loss="logistic",
            selection="none", standardise=False, start="given" if start else None,
        ).fit(X, y)  # fmt: skip
        assert fitted.history_.converged
        ends.append(np.append(fitted.coef_, fitted.intercept_))
    for end in ends[1:]:
        cosine = end @ ends[0] / np.linalg.norm(end) / np.linalg.norm(ends[0])
        assert cosine == pytest.approx(1.0, abs=1e-6)


def test_whoever_stands_where_nobody_ends_up_may_stay_or_move_inward():
    actions = little_people()
    X = np.array([[-1.0, 3.5], [-1.0, 0.5]])
    people = BestResponse(actions=actions).plan(2).people(X).people
    assert (people.low <= 0.0).all()
    assert (people.high >= 0.0).all()
    assert people.low[0, 1] == pytest.approx(-6.5)
    assert people.high[0, 1] == 0.0


def test_who_obeys_relations_and_who_relaxes_them_with_one_warning_or_is_refused(caplog):
    _, X, actions = crowd("credit", 5)
    d = X.shape[1]
    best = BestResponse(actions=actions)
    slow = BestResponse(MahalanobisCost(np.eye(d)), actions)
    for able in (best, AscentResponse(actions=actions), ConicResponse(QuadraticCost(), actions)):
        assert obeying(able) is able
    assert obeying(slow, strictly=True) is slow
    published = ScalarResponse(actions=actions, polish=False, start="stay")
    for other in (slow, Population([best, slow], [0.5, 0.5]), published):
        warn_once.cache_clear()
        caplog.clear()
        for _ in range(3):
            relaxed = obeying(other)
        assert caplog.text.count("do not bind these responses") == 1
        for kind in kinds_of(relaxed):
            assert not kind.actions.possible.in_responses
    with pytest.raises(ParameterError, match=r"serm\.actions\.responses: relax"):
        obeying(published, strictly=True)
    ranges = replace(actions.possible, relations=_no_relations(d), histories=(), states=None)
    boxed = AscentResponse(actions=actions.with_possible(ranges))
    assert obeying(boxed, strictly=True) is boxed


def _no_relations(d):
    none = {"A": [], "lower": [], "upper": [], "texts": []}
    said = {
        "columns": [str(j) for j in range(d)], "rows": none, "conditional": none, "derived": [],
        "histories": [], "premise_columns": [], "premise_values": [], "mean": [0.0] * d,
        "scale": [1.0] * d, "low": [-2.0] * d, "high": [2.0] * d,
    }  # fmt: skip
    return Possible.from_description(said).relations
