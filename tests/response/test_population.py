"""Populations: chances and costs against draws and brute quadrature; prices person by person."""

import json

import numpy as np
import pytest
import torch
from scipy.special import ndtri

from countermove import Population
from countermove.errors import NotConvergedError, ParameterError
from countermove.people import (
    ActionSet,
    ConicCost,
    MahalanobisCost,
    MixtureCost,
    QuadraticCost,
    WeightedQuadraticCost,
)
from countermove.response import (
    AscentResponse,
    BestResponse,
    ConicResponse,
    NoResponse,
    Response,
    Responses,
    RobustResponse,
    ScalarResponse,
    response_from_description,
)
from countermove.response.response_set import kinds_of, members_of

D, N = 5, 160
RNG = np.random.default_rng(20)
COSTS = {
    "quadratic": QuadraticCost(0.7),
    "weighted": WeightedQuadraticCost(RNG.uniform(0.2, 4.0, D)),
    "mixture": MixtureCost(RNG.normal(size=D), 0.3),
    "mahalanobis": MahalanobisCost(np.diag(RNG.uniform(0.5, 2.0, D)) + 0.2),
}
BOXES = {
    "free": {"immutable": [4]},
    "values": {"min_value": np.full(D, -0.5), "max_value": np.full(D, 0.5), "immutable": [4]},
    "short steps": {"lower": np.full(D, -0.3), "upper": np.full(D, 0.2), "immutable": [4]},
    "one way": {"only_increase": [0, 3], "only_decrease": [2], "immutable": [1, 4]},
    "own": {"upper": RNG.uniform(0.0, 0.6, (N, D)), "immutable": [4]},
    "constrained": {"A": RNG.normal(size=(2, D)), "b": np.array([0.2, 0.3]), "immutable": [4]},
}
PRICE = np.array([0.0, 0.0, 0.0, 0.0, 1.5])
# A mixture cost under extra constraints needs a conic solver; see the test of conic costs.
PAIRS = {
    f"{box}-{cost}": (COSTS[cost], BOXES[box])
    for box in BOXES
    for cost in COSTS
    if (box, cost) != ("constrained", "mixture")
}
pairs = pytest.mark.parametrize(("cost", "box"), PAIRS.values(), ids=PAIRS)
boxes = pytest.mark.parametrize("box", BOXES.values(), ids=BOXES)


@pytest.fixture
def people():
    X = np.random.default_rng(9).normal(size=(N, D)) * 0.4
    X[:, 4] = np.clip(X[:, 4], -0.487, 0.4613)  # no corner of a box lies on the boundary
    return X


@pytest.fixture
def score(make_score):
    return make_score(np.array([0.8, -0.5, 0.6, 0.3, 0.4]), -0.6)


def levels(count):
    return (np.arange(count) + 0.5) / count


def brute(kind, log_sd, score, X, count=200):
    """Return chance and mean cost over equally likely prices, each solved at its own cost."""
    chance, cost = np.zeros(len(X)), np.zeros(len(X))
    for factor in np.exp(log_sd * ndtri(levels(count))):
        at = kind.with_cost(kind.cost.times(float(factor)))
        chance += at.decisions_after(score, X) / count
        cost += at.respond(score, X).cost / count
    return chance, cost


@pairs
def test_chance_and_cost_of_rational_people_are_those_of_brute_quadrature(score, people, cost, box):
    kind = BestResponse(cost, ActionSet(**box))
    for log_sd in (0.3, 1.0):
        wanted, paid = brute(kind, log_sd, score, people)
        population = Population(kind, never=0.25, log_sd=log_sd)
        now = NoResponse().chance_after(score, people)
        mixed = 0.25 * now + 0.75 * wanted
        np.testing.assert_allclose(population.chance_after(score, people), mixed, atol=1.5 / 200)
        # The midpoints miss what the people with the highest prices pay.
        np.testing.assert_allclose(
            population.expected_cost(score, people), 0.75 * paid, rtol=0.02, atol=0.02
        )


@boxes
def test_draws_follow_the_chances(score, people, box):
    kinds = [BestResponse(COSTS["weighted"], ActionSet(**box)), ScalarResponse(COSTS["quadratic"])]
    population = Population(
        [kinds[0], ScalarResponse(COSTS["quadratic"], ActionSet(**box), 0.3)],
        [0.7, 0.3],
        never=0.2,
        log_sd=0.5,
        log_price=PRICE,
    )
    draws = 100
    approved, paid = np.zeros(N), np.zeros(N)
    for seed in range(draws):
        drawn = population.with_seed(seed)
        approved += drawn.decisions_after(score, people) / draws
        paid += drawn.respond(score, people).cost / draws
    chance = population.chance_after(score, people)
    error = np.sqrt(np.maximum(chance * (1.0 - chance), 1e-3) / draws)
    assert (np.abs(approved - chance) < 5.0 * error + 1e-3).all()
    assert abs(float((approved - chance).mean())) < 5.0 * float(error.mean()) / np.sqrt(N)
    expected = population.expected_cost(score, people)
    assert abs(float((paid - expected).mean())) < 0.016


@pytest.mark.parametrize("start", ["global", "stay"])
def test_chance_of_smooth_people_is_that_of_brute_quadrature(score, people, start):
    box = ActionSet(**BOXES["values"])
    kind = ScalarResponse(COSTS["weighted"], box, 0.3, start=start)
    chance, cost = brute(kind, 0.6, score, people, 500)
    population = Population(kind, log_sd=0.6)
    np.testing.assert_allclose(population.chance_after(score, people), chance, atol=0.003)
    np.testing.assert_allclose(population.expected_cost(score, people), cost, atol=0.02)


@pairs
@pytest.mark.parametrize("kind", [BestResponse, ScalarResponse])
def test_prices_by_person_are_the_response_of_each_at_their_own_cost(
    score, people, cost, box, kind
):
    response = kind(cost, ActionSet(**box)).with_log_price(PRICE)
    found = response.respond(score, people)
    decided = response.decisions_after(score, people)
    after = response.scores_after(score, torch.from_numpy(people))
    for i in range(0, N, 8):
        own = kind(cost.times(float(np.exp(people[i] @ PRICE))), ActionSet(**box)).of_rows([i])
        alone = own.respond(score, people[[i]])
        np.testing.assert_allclose(found.x_new[i], alone.x_new[0], atol=1e-9)
        np.testing.assert_allclose(found.cost[i], alone.cost[0], atol=1e-9)
        assert found.moved[i] == alone.moved[0]
        assert decided[i] == own.decisions_after(score, people[[i]])[0]
        lone = own.scores_after(score, torch.from_numpy(people[[i]]))
        np.testing.assert_allclose(after[i].item(), lone.item(), atol=1e-9)
    if kind is BestResponse:
        plain = kind(cost, ActionSet(**box)).crossing_cost(score, people)
        wanted = plain * np.exp(people @ PRICE)
        np.testing.assert_allclose(response.crossing_cost(score, people), wanted, rtol=1e-12)


@pytest.mark.parametrize("kind", [BestResponse, ScalarResponse])
@pytest.mark.parametrize("box", ["free", "values", "own"])
def test_scores_after_at_own_prices_have_the_gradient_of_differences(score, people, kind, box):
    response = kind(COSTS["weighted"], ActionSet(**BOXES[box])).with_log_price(PRICE)
    X = torch.from_numpy(people).requires_grad_()
    signs = torch.from_numpy(np.random.default_rng(3).normal(size=N))
    total = (response.scores_after(score, X) * signs).sum()
    by_weight, by_X = torch.autograd.grad(total, [score.weight, X])
    weight, step = score.weight.detach().clone(), 1e-6

    def value(w, rows):
        with torch.no_grad():
            score.weight.copy_(w)
            return float((response.scores_after(score, rows) * signs).sum())

    for j in range(D):
        e = torch.zeros(D, dtype=torch.float64)
        e[j] = step
        up, down = value(weight + e, X.detach()), value(weight - e, X.detach())
        assert by_weight[j].item() == pytest.approx((up - down) / (2 * step), rel=1e-4, abs=1e-4)
        shift = torch.zeros_like(X.detach())
        shift[:8, j] = step
        if j != 4 and box != "free":
            continue  # a bound on the place makes kinks; the price's own feature is smooth
        up, down = value(weight, X.detach() + shift), value(weight, X.detach() - shift)
        wanted = (up - down) / (2 * step)
        assert by_X[:8, j].sum().item() == pytest.approx(wanted, rel=1e-4, abs=1e-4)


def test_prices_reach_the_conic_solver(score, people):
    import cvxpy as cp

    cost = ConicCost(lambda x, x_new: 0.7 * cp.sum_squares(x_new - x))
    box, rows = ActionSet(immutable=[4]), people[:12]
    conic = BestResponse(cost, box).with_log_price(PRICE)
    scalar = BestResponse(QuadraticCost(0.7), box).with_log_price(PRICE)
    np.testing.assert_array_equal(
        conic.decisions_after(score, rows), scalar.decisions_after(score, rows)
    )
    found, wanted = conic.respond(score, rows), scalar.respond(score, rows)
    np.testing.assert_allclose(found.x_new, wanted.x_new, atol=1e-4)
    np.testing.assert_allclose(found.cost, wanted.cost, atol=1e-4)
    chance = Population(scalar.with_log_price(None), log_sd=0.5, log_price=PRICE)
    same = Population(conic.with_log_price(None), log_sd=0.5, log_price=PRICE)
    np.testing.assert_allclose(
        same.chance_after(score, rows), chance.chance_after(score, rows), atol=1e-4
    )


def test_the_scale_of_the_score_changes_nothing(make_score, people):
    w, b = np.array([0.8, -0.5, 0.6, 0.3, 0.4]), -0.6
    once, larger = make_score(w, b), make_score(50.0 * w, 50.0 * b)
    box = ActionSet(**BOXES["values"])
    population = Population(
        [BestResponse(COSTS["weighted"], box), ScalarResponse(COSTS["weighted"], box)],
        [0.5, 0.5],
        never=0.1,
        log_sd=0.4,
        log_price=PRICE,
    )
    np.testing.assert_allclose(
        population.chance_after(once, people), population.chance_after(larger, people), atol=1e-9
    )
    np.testing.assert_allclose(
        population.respond(once, people).x_new, population.respond(larger, people).x_new, atol=1e-9
    )


def test_members_are_the_population_at_a_few_prices(score, people):
    best = BestResponse(QuadraticCost(0.7), ActionSet(immutable=[4]))
    population = Population([best, NoResponse()], [0.8, 0.2], never=0.25, log_sd=0.5)
    assert sum(population.weights) == pytest.approx(1.0)
    assert [member.name for member in population.members] == ["none", *["best"] * 8, "none"]
    assert all(type(member) in (BestResponse, NoResponse) for member in population.members)
    scales = np.array([float(m.cost.scale) for m in population.members[1:-1]])
    weights = np.array(population.weights[1:-1]) / sum(population.weights[1:-1])
    # Exact for polynomials of the log-price up to degree 15.
    logs = np.log(scales / 0.7)
    assert weights @ logs == pytest.approx(0.0, abs=1e-12)
    assert weights @ logs**2 == pytest.approx(0.25)
    assert weights @ logs**4 == pytest.approx(3 * 0.25**2)
    many = Population(best, log_sd=0.5, nodes=200)
    parts = [m.decisions_after(score, people) for m in many.members]
    joined = np.average(parts, axis=0, weights=many.weights)
    np.testing.assert_allclose(joined, many.chance_after(score, people), atol=0.12)
    alike = Population(best, never=0.5)
    assert alike.members[1] is best
    assert alike.weights == (0.5, 0.5)


def test_a_population_without_differences_is_its_kind(score, people):
    best = BestResponse(QuadraticCost(0.7), ActionSet(immutable=[4]))
    population = Population(best)
    np.testing.assert_array_equal(
        population.chance_after(score, people), best.decisions_after(score, people)
    )
    np.testing.assert_array_equal(
        population.respond(score, people).x_new, best.respond(score, people).x_new
    )
    assert best.chance_after(score, people).dtype == np.float64


def test_people_keep_their_type_however_the_table_is_cut(score, people):
    box = {"upper": np.random.default_rng(2).uniform(0.2, 0.9, (N, D)), "immutable": [4]}
    best = BestResponse(QuadraticCost(0.7), ActionSet(**box))
    population = Population(best, never=0.3, log_sd=0.8, log_price=PRICE)
    whole = population.respond(score, people)
    types = population.drawn(N)
    assert 0.2 < types.never.mean() < 0.4
    assert not whole.moved[types.never].any()
    for rows in (np.arange(40, 90), np.flatnonzero(people[:, 0] > 0)):
        part = population.of_rows(rows)
        np.testing.assert_array_equal(part.respond(score, people[rows]).x_new, whole.x_new[rows])
        again = part.of_rows(np.arange(5, 9))
        np.testing.assert_array_equal(again.drawn(4).factor, types.factor[rows[5:9]])
    with pytest.raises(ParameterError, match="50 rows"):
        population.of_rows(np.arange(50)).respond(score, people)


def test_types_are_drawn_as_stated():
    population = Population([BestResponse(), ScalarResponse()], [0.6, 0.4], never=0.25, log_sd=0.7)
    types = population.drawn(40_000, seed=3)
    shares = [np.mean(types.kind == k) for k in (-1, 0, 1)]
    np.testing.assert_allclose(shares, [0.25, 0.45, 0.3], atol=0.01)
    logs = np.log(types.factor[~types.never])
    assert logs.mean() == pytest.approx(0.0, abs=0.02)
    assert logs.std() == pytest.approx(0.7, abs=0.02)
    assert abs(np.corrcoef(types.kind[~types.never], logs)[0, 1]) < 0.03
    assert abs(np.corrcoef(logs[1:], logs[:-1])[0, 1]) < 0.03
    np.testing.assert_array_equal(types.kind, population.drawn(40_000, seed=3).kind)
    assert (types.kind != population.drawn(40_000, seed=4).kind).mean() > 0.3


def test_kinds_with_one_cost_for_everybody_draw_among_the_nodes(score, people):
    conic = ConicResponse(QuadraticCost(0.7), ActionSet(immutable=[4]))
    population = Population(conic, log_sd=0.5, nodes=3)
    rows = people[:10]
    factors = population.drawn(10).factor
    assert len(np.unique(factors)) <= 3
    found = population.respond(score, rows)
    for i, factor in enumerate(factors):
        alone = conic.with_price(float(factor)).respond(score, rows[[i]])
        np.testing.assert_allclose(found.x_new[i], alone.x_new[0], atol=1e-5)
    with pytest.raises(ParameterError, match="one cost for everybody"):
        Population(AscentResponse(), log_price=PRICE)


def test_responses_carry_gradients(score, people):
    X = torch.from_numpy(people).requires_grad_()
    best = BestResponse(QuadraticCost(0.7), ActionSet(immutable=[4]))
    found = Population(best, never=0.3, log_sd=0.4).respond(score, X)
    (by_weight,) = torch.autograd.grad(found.x_new.sum(), [score.weight])
    assert by_weight.abs().sum() > 0.0


def test_a_population_says_itself_and_is_read_back(score, people):
    box = ActionSet(**BOXES["values"])
    population = Population(
        [BestResponse(COSTS["weighted"], box), ScalarResponse(COSTS["mixture"], box, 0.2)],
        [0.5, 0.5],
        never=0.1,
        log_sd=0.4,
        log_price=PRICE,
        nodes=5,
    )
    for said in (population, population.with_seed(3), RobustResponse([population, BestResponse()])):
        text = json.dumps(said.describe())
        read = response_from_description(json.loads(text))
        assert json.dumps(read.describe()) == text
    read = response_from_description(population.describe())
    np.testing.assert_array_equal(
        read.chance_after(score, people), population.chance_after(score, people)
    )


def test_other_costs_and_prices_reach_every_kind():
    kinds = [BestResponse(QuadraticCost(1.0)), ScalarResponse(QuadraticCost(2.0))]
    population = Population(kinds, [0.5, 0.5], log_sd=0.3)
    assert [float(k.cost.scale) for k in population.with_price(3.0).kinds] == [3.0, 6.0]
    assert [float(k.cost.scale) for k in population.with_cost(QuadraticCost(5.0)).kinds] == [5, 5]
    assert float(population.with_cost(QuadraticCost(5.0)).cost.scale) == 5.0
    assert kinds_of(RobustResponse([population, NoResponse()]))[:2] == population.kinds
    assert members_of(population) == (population,)


def test_training_is_referred_to_the_members(score, people):
    with pytest.raises(ParameterError, match="members"):
        Population(BestResponse(), never=0.1).scores_after(score, torch.from_numpy(people))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kinds": [BestResponse(), NoResponse()]}, "RobustResponse"),
        ({"kinds": [BestResponse(), NoResponse()], "shares": [0.5, 0.6]}, "sum to one"),
        ({"kinds": [BestResponse(), NoResponse()], "shares": [1.5, -0.5]}, "shares >= 0"),
        ({"kinds": [BestResponse(), NoResponse()], "shares": [1.0]}, "as many shares"),
        ({"kinds": []}, "at least one"),
        ({"kinds": Population(BestResponse())}, "plain responses"),
        ({"kinds": BestResponse(), "never": 1.0}, r"\[0, 1\)"),
        ({"kinds": BestResponse(), "never": -0.1}, r"\[0, 1\)"),
        ({"kinds": BestResponse(), "never": float("nan")}, r"\[0, 1\)"),
        ({"kinds": BestResponse(), "log_sd": -0.1}, "log_sd"),
        ({"kinds": BestResponse(), "log_sd": float("inf")}, "log_sd"),
        ({"kinds": BestResponse(), "nodes": 0}, "nodes"),
        ({"kinds": BestResponse(), "nodes": 2.5}, "nodes"),
        ({"kinds": BestResponse(), "log_price": PRICE}, "can move"),
        ({"kinds": BestResponse(), "log_price": [[0.0]]}, "shape"),
        ({"kinds": BestResponse(), "log_price": [np.nan, 0.0]}, "finite"),
    ],
)
def test_bad_populations_are_named(arguments, message):
    with pytest.raises(ParameterError, match=message):
        Population(**arguments)


def test_prices_of_another_length_are_named(score, people):
    price = np.array([0.0, 0.0, 1.0])
    response = BestResponse(actions=ActionSet(immutable=[2])).with_log_price(price)
    with pytest.raises(ParameterError, match="3 coefficients"):
        response.respond(score, people)
    with pytest.raises(ParameterError, match="both"):
        Population(response, log_price=price)
    loose = ScalarResponse(actions=ActionSet(immutable=[4]), start="stay", polish=False)
    with pytest.raises(ParameterError, match="polish"):
        loose.with_log_price(PRICE).respond(score, people)


class Fickle(Response):
    """Somebody whose decision flickers with the price."""

    name = "fickle"

    def respond(self, score, X, on_failure="raise"):
        after = self.scores_after(score, torch.from_numpy(X)).numpy()
        return Responses(X, 9.0 * np.abs(after), after > 2.0, after < 2.0)

    def scores_after(self, score, X):
        return torch.cos(torch.log(self.cost.scale) * 1e4 * (3.0 + X[:, 0]))


def test_quadrature_that_does_not_converge_is_named(score, people):
    with pytest.raises(NotConvergedError, match="to and fro") as error:
        Population(Fickle(), log_sd=1.0).chance_after(score, people)
    assert len(error.value.rows)
    with pytest.raises(NotConvergedError, match="mean cost"):
        Population(Fickle(), log_sd=1.0).expected_cost(score, people)
