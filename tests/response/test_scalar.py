"""The smoothed response: stationary, global where promised, differentiated as stated."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from countermove.errors import DataError, NotConvergedError, ParameterError
from countermove.people import ActionSet, LinearCost, MixtureCost, QuadraticCost
from countermove.response import ScalarResponse
from countermove.response.smoothing import smoothed_step
from countermove.scores import LinearScore, PartlyLinearScore


def worth(case, response: ScalarResponse, x: np.ndarray, x_new: np.ndarray) -> np.ndarray:
    """Return the smoothed objective of moving from ``x`` to ``x_new``."""
    unit = response.reduction(case.score, len(x)).unit_value if response.normalised else 1.0
    y = (x_new @ case.w + case.b) / (response.temperature * unit)
    return smoothed_step(torch.from_numpy(y)).numpy() - case.cost.price(x, x_new)


def best_on_a_fine_path(case, response, i: int, n: int = 4001) -> float:
    """Return the best worth among a fine grid of prices: every stationary point has a price."""
    from countermove.response.engine import Chunk

    trade = response.reduction(case.score, len(case.X)).trade
    person = Chunk(trade, case.X, np.array([i]))
    unit = response.reduction(case.score, len(case.X)).unit_value if response.normalised else 1.0
    highest = np.sqrt(0.5) / (response.temperature * unit)
    person.trace(highest, np.inf)
    gains = np.linspace(person.G[0, 0], person.G[0, person.count[0] - 1] + 5.0, n)
    act = person.act(gains, np.linspace(0.0, highest, n))
    x = np.repeat(case.X[i : i + 1], n, axis=0)
    return float(worth(case, response, x, x + act.action).max())


COEFFICIENTS = ("scale", "weights", "matrix", "direction", "gamma")
starts = pytest.mark.parametrize("start", ["global", "stay"])


@starts
def test_answers_are_allowed_priced_and_stationary(make_case, cost_name, boxed, start):
    case = make_case(cost_name, 0, boxed, n=100)
    response = ScalarResponse(case.cost, case.actions, temperature=0.3, start=start)
    found = response.respond(case.score, case.X)
    assert found.converged.all()
    assert found.moved.any()
    assert case.actions.contains(case.X, found.x_new - case.X, tolerance=1e-9).all()
    np.testing.assert_allclose(case.cost.price(case.X, found.x_new), found.cost, atol=1e-12)
    here = worth(case, response, case.X, found.x_new)
    rng = np.random.default_rng(0)
    for size in (1e-2, 1e-4):
        nudge = case.actions.project(
            case.X, found.x_new - case.X + size * rng.normal(size=case.X.shape)
        )
        assert (worth(case, response, case.X, case.X + nudge) <= here + 1e-9).all()


@pytest.mark.parametrize("temperature", [0.1, 0.5, 1.5])
def test_the_global_answer_beats_a_fine_grid(make_case, cost_name, boxed, temperature):
    """Figure to reach: never worse than a fine grid by more than 1e-8."""
    for seed in range(2):
        case = make_case(cost_name, seed, boxed, n=10)
        response = ScalarResponse(case.cost, case.actions, temperature)
        found = response.respond(case.score, case.X)
        values = worth(case, response, case.X, found.x_new)
        for i in range(len(case.X)):
            assert values[i] >= best_on_a_fine_path(case, response, i) - 1e-8


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(-3.0, 3.0), min_size=2, max_size=2),
    st.floats(-4.0, 4.0),
    st.floats(0.05, 3.0),
    st.floats(0.05, 5.0),
    st.booleans(),
)
def test_two_features_beat_a_grid_of_actions(w, b, temperature, scale, mixed):
    score = LinearScore(2)
    with torch.no_grad():
        score.weight.copy_(torch.tensor(w))
        score.bias.fill_(b)
    cost = MixtureCost([1.0, -0.5], 0.4, scale) if mixed else QuadraticCost(scale)
    actions = ActionSet(lower=[-1.0, -0.5], upper=[0.8, 1.0])
    response = ScalarResponse(cost, actions, temperature, normalised=False)
    found = response.respond(score, np.zeros((1, 2)))
    side = [np.linspace(lo, hi, 201) for lo, hi in ((-1.0, 0.8), (-0.5, 1.0))]
    grid = np.stack(np.meshgrid(*side), axis=-1).reshape(-1, 2)
    y = torch.from_numpy((grid @ np.array(w) + b) / temperature)
    best = (smoothed_step(y).numpy() - cost.price(np.zeros_like(grid), grid)).max()
    place = torch.from_numpy((found.x_new @ np.array(w) + b) / temperature)
    mine = smoothed_step(place).numpy()[0] - found.cost[0]
    assert mine >= best - 1e-8


def test_staying_is_where_the_procedure_ends(make_case, cost_name, boxed):
    """Algorithm 1 run literally converges to the polished answer of ``start="stay"``."""
    case = make_case(cost_name, 1, boxed, n=60)
    polished = ScalarResponse(case.cost, case.actions, 0.6, "stay", False)
    literal = ScalarResponse(
        case.cost, case.actions, 0.6, "stay", False,
        polish=False, tolerance=1e-11, max_iterations=20_000,
    )  # fmt: skip
    wanted = polished.respond(case.score, case.X).x_new
    found = literal.respond(case.score, case.X, on_failure="mask")
    assert found.converged.mean() > 0.9
    np.testing.assert_allclose(found.x_new[found.converged], wanted[found.converged], atol=1e-6)


def test_global_is_never_worse_than_staying_and_sometimes_better(make_case):
    case = make_case("quadratic", 2, False, n=400)
    both = [ScalarResponse(case.cost, temperature=0.1, start=start) for start in ("global", "stay")]
    there, near = (worth(case, r, case.X, r.respond(case.score, case.X).x_new) for r in both)
    assert (there >= near - 1e-12).all()
    assert (there > near + 1e-3).any()


@pytest.mark.parametrize("factor", [1e-3, 50.0])
def test_a_normalised_answer_depends_on_the_rule_and_not_on_its_scale(make_case, cost_name, factor):
    case = make_case(cost_name, 3, True)
    response = ScalarResponse(case.cost, case.actions)
    before = response.respond(case.score, case.X).x_new
    with torch.no_grad():
        case.score.weight *= factor
        case.score.bias *= factor
    np.testing.assert_allclose(response.respond(case.score, case.X).x_new, before, atol=1e-7)


def test_the_published_answer_is_gamed_by_scale(make_case):
    """reference: serm.md 0.3: fifty times the score, and people stay where they stand."""
    case = make_case("quadratic", 4, False, n=200)
    published = ScalarResponse(case.cost, None, 0.2, "stay", False, "last_proxy")
    moved = published.respond(case.score, case.X).cost.mean()
    with torch.no_grad():
        case.score.weight *= 50.0
        case.score.bias *= 50.0
    assert published.respond(case.score, case.X).cost.mean() < 0.2 * moved
    assert published.name == "published"
    assert ScalarResponse().name == "smooth"


def test_distance_is_measured_over_movable_directions(make_score):
    score = make_score([3.0, 4.0, -5.0, 6.0], 0.0)
    actions = ActionSet(only_increase=[0, 2], only_decrease=[1], immutable=[3])
    assert ScalarResponse(actions=actions).reduction(score, 1).unit_value == pytest.approx(3.0)
    assert ScalarResponse().reduction(score, 1).unit_value == pytest.approx(np.sqrt(86.0))
    still = ActionSet(only_decrease=[0, 1], only_increase=[2], immutable=[3])
    found = ScalarResponse(actions=still).respond(score, np.zeros((2, 4)))
    assert not found.moved.any()


def test_an_explicit_unit_replaces_the_norm(make_score):
    score = make_score([3.0, 4.0], -1.0)
    X = np.array([[0.1, 0.0]])
    given_unit = ScalarResponse(temperature=0.5, unit=5.0).respond(score, X).x_new
    np.testing.assert_array_equal(
        given_unit, ScalarResponse(temperature=0.5).respond(score, X).x_new
    )


def test_results_do_not_depend_on_the_partition(make_case, cost_name, boxed):
    case = make_case(cost_name, 5, boxed, n=101)
    response = ScalarResponse(case.cost, case.actions)
    whole = response.respond(case.score, case.X)
    for size in (1, 7, 50):
        parts = [
            response.respond(case.score, case.X[i : i + size]) for i in range(0, len(case.X), size)
        ]
        np.testing.assert_array_equal(np.vstack([part.x_new for part in parts]), whole.x_new)


def graph(case, **settings):
    """Return (function, inputs): places and scores as functions of all they depend on."""
    names = [
        n for n in ("scale", "weights", "matrix", "direction", "gamma") if hasattr(case.cost, n)
    ]
    given = [getattr(case.cost, name).detach().clone() for name in names]

    def function(w, b, X, *values):
        values = [0.5 * (v + v.T) if v.dim() == 2 else v for v in values]
        cost = type(case.cost)(**dict(zip(names, values, strict=True)))
        score = LinearScore(len(case.w))
        del score.weight, score.bias
        score.weight, score.bias = w, b
        response = ScalarResponse(cost, case.actions, 0.4, **settings)
        return response.respond(score, X).x_new, response.scores_after(score, X)

    inputs = [case.score.weight.detach().clone(), case.score.bias.detach().clone()]
    inputs += [torch.from_numpy(case.X * 0.7), *given]
    return function, tuple(tensor.requires_grad_() for tensor in inputs)


@starts
@pytest.mark.parametrize("normalised", [True, False])
def test_the_fixed_point_gradient_is_the_derivative(make_case, cost_name, boxed, start, normalised):
    case = make_case(cost_name, 6, boxed, n=6, d=4)
    function, inputs = graph(case, start=start, normalised=normalised)
    assert torch.autograd.gradcheck(function, inputs, atol=2e-5, rtol=1e-3)


def proxy_answer(case, cost, w, b, X, at):
    """Return the scores after one proxy linearised at the scores ``at``."""
    from countermove.response.engine import Chunk
    from countermove.response.polyline import proxy_rows

    score = LinearScore(len(w))
    with torch.no_grad():
        score.weight.copy_(w)
        score.bias.copy_(b)
    trade = ScalarResponse(cost, case.actions).reduction(score, len(X)).trade
    chunk = Chunk(trade, X, np.arange(len(X)))
    chunk.trace(10.0, np.inf)
    s = X @ w.numpy() + float(b)
    gain, price = np.empty(len(X)), np.empty(len(X))
    proxy_rows(chunk.G, chunk.U, chunk.count, chunk.rate, s, 1 / 0.4, at, gain, price)
    return s + chunk.act(gain, price).reached


def test_the_last_proxy_gradient_is_that_of_the_proxy(make_case, cost_name, boxed):
    """Finite differences of: linearise at the fixed last point, solve, read the score."""
    case = make_case(cost_name, 7, boxed, n=6, d=4)
    case.X[:] *= 0.7
    response = ScalarResponse(case.cost, case.actions, 0.4, "stay", False, "last_proxy")
    X = torch.from_numpy(case.X)
    last = response.respond(case.score, case.X).x_new
    response.scores_after(case.score, X).sum().backward()
    w, b = case.score.weight.detach().clone(), case.score.bias.detach().clone()

    def signal(w, b):
        at = last @ w.numpy() + float(b)
        return proxy_answer(case, case.cost, w, b, case.X, at).sum()

    step = 1e-6
    for j in range(len(w)):
        up, down = w.clone(), w.clone()
        up[j] += step
        down[j] -= step
        slope = (signal(up, b) - signal(down, b)) / (2 * step)
        assert float(case.score.weight.grad[j]) == pytest.approx(slope, rel=1e-4, abs=1e-6)
    slope = (signal(w, b + step) - signal(w, b - step)) / (2 * step)
    assert float(case.score.bias.grad) == pytest.approx(slope, rel=1e-4, abs=1e-6)


@starts
@pytest.mark.parametrize("gradient", ["fixed_point", "last_proxy"])
@pytest.mark.parametrize("normalised", [True, False])
@pytest.mark.parametrize("name", ["quadratic", "weighted"])
def test_the_one_call_training_signal_equals_the_general_one(
    make_case, name, boxed, start, gradient, normalised
):
    case = make_case(name, 8, boxed, n=80)
    response = ScalarResponse(case.cost, case.actions, 0.4, start, normalised, gradient)
    found = []
    for wants_features in (False, True):
        case.score.zero_grad()
        X = torch.from_numpy(case.X.copy()).requires_grad_(wants_features)
        signal = response.scores_after(case.score, X)
        (signal * torch.linspace(-1.0, 2.0, 80).double()).sum().backward()
        found.append(
            (signal.detach(), case.score.weight.grad.clone(), case.score.bias.grad.clone())
        )
    for fast, general in zip(*found, strict=True):
        np.testing.assert_allclose(fast.numpy(), general.numpy(), rtol=1e-9, atol=1e-11)


def test_signal_places_and_decisions_agree(make_case, cost_name, boxed):
    case = make_case(cost_name, 9, boxed, n=200)
    response = ScalarResponse(case.cost, case.actions)
    places = response.respond(case.score, case.X).x_new @ case.w + case.b
    signal = response.scores_after(case.score, torch.from_numpy(case.X)).detach().numpy()
    np.testing.assert_allclose(signal, places, atol=1e-10)
    sure = np.abs(places) > 1e-9
    decided = response.decisions_after(case.score, case.X)
    np.testing.assert_array_equal(decided[sure], (places >= 0.0)[sure])


def test_stopping_rules_of_figure_4(make_case):
    case = make_case("quadratic", 10, False, n=50)

    def run(**rule):
        response = ScalarResponse(case.cost, None, 0.3, "stay", False, polish=False, **rule)
        return response.respond(case.score, case.X, on_failure="mask")

    exact = ScalarResponse(case.cost, None, 0.3, "stay", False).respond(case.score, case.X).x_new
    misses = [
        np.abs(run(stopping="increasing", max_iterations=k).x_new - exact).max()
        for k in (1, 5, 200)
    ]
    assert misses[0] > misses[1] > misses[2]
    assert run(stopping="batch", tolerance=1e-3).converged.all()
    assert not run(stopping="row", tolerance=1e-12, max_iterations=2).converged.all()
    with pytest.raises(NotConvergedError, match="stopped before") as caught:
        ScalarResponse(
            case.cost, None, 0.3, "stay", False, polish=False, tolerance=1e-12, max_iterations=2
        ).respond(case.score, case.X)
    assert len(caught.value.rows) > 0


def test_increasing_iterations_follow_the_epoch():
    response = ScalarResponse(start="stay", polish=False, stopping="increasing")
    assert response.for_epoch(0).max_iterations == 1
    assert response.for_epoch(6).max_iterations == 7
    plain = ScalarResponse()
    assert plain.for_epoch(3) is plain
    assert plain.at_temperature(0.2).temperature == 0.2


def test_unpolished_answers_train(make_case):
    case = make_case("quadratic", 11, True, n=40)
    response = ScalarResponse(
        case.cost, case.actions, 0.4, "stay", False, "last_proxy", polish=False
    )
    response.scores_after(case.score, torch.from_numpy(case.X)).sum().backward()
    assert torch.isfinite(case.score.weight.grad).all()


@pytest.mark.parametrize(
    "settings",
    [
        {"temperature": 0.0},
        {"temperature": -1.0},
        {"start": "near"},
        {"gradient": "exact"},
        {"stopping": "never"},
        {"unit": 0.0},
        {"polish": False},
        {"tolerance": 0.0},
    ],
)
def test_senseless_settings_are_refused(settings):
    with pytest.raises(ParameterError):
        ScalarResponse(**settings)


def test_bad_people_and_rules_are_refused(make_score):
    score = make_score([1.0, 0.0], 0.0)
    X = np.zeros((3, 2))
    X[1, 0] = np.nan
    for cost in (QuadraticCost(), MixtureCost([1.0, 1.0], 0.5)):
        with pytest.raises(DataError, match="rows 1"):
            ScalarResponse(cost).respond(score, X)
        with pytest.raises(DataError, match="rows 1"):
            ScalarResponse(cost).scores_after(score, torch.from_numpy(X))

    class Curved(LinearScore):
        def slope(self):
            return None

    with pytest.raises(ParameterError, match="affine"):
        ScalarResponse().respond(Curved(2), np.zeros((1, 2)))


def test_a_zero_rule_moves_nobody(make_case, cost_name, boxed):
    case = make_case(cost_name, 12, boxed)
    with torch.no_grad():
        case.score.weight.zero_()
    response = ScalarResponse(case.cost, case.actions)
    if cost_name != "linear":
        assert not response.respond(case.score, case.X).moved.any()
    response.scores_after(case.score, torch.from_numpy(case.X)).sum().backward()
    assert torch.isfinite(case.score.weight.grad).all()


def test_a_linear_cost_follows_its_knapsack(make_score):
    """Best ratio first: feature 0 buys score at half the price of feature 1."""
    score = make_score([2.0, 1.0], -10.0)
    response = ScalarResponse(
        LinearCost([1.0, 1.0]), ActionSet(lower=[0, 0], upper=[1, 1]), 5.0, normalised=False
    )
    action = response.respond(score, np.zeros((1, 2))).x_new[0]
    assert action[0] >= action[1]


def test_network_scores_keep_their_gradients():
    score = PartlyLinearScore(4, [0, 1], hidden=(5,), generator=torch.Generator().manual_seed(0))
    X = torch.randn(6, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    parameters = [p.detach().clone().requires_grad_() for p in score.parameters()]
    names = [name for name, _ in score.named_parameters()]
    for gradient in ("fixed_point",):
        response = ScalarResponse(QuadraticCost(0.7), None, 0.5, gradient=gradient)

        def signal(X, *values, response=response):
            values = dict(zip(names, values, strict=True))

            class Bound(PartlyLinearScore):
                def forward(self, X):
                    return torch.func.functional_call(score, values, (X,))

                def slope(self):
                    return (
                        values["weight"]
                        .new_zeros(4)
                        .index_put((torch.tensor([0, 1]),), values["weight"])
                    )

            return response.scores_after(Bound(4, [0, 1], hidden=(5,)), X)

        assert torch.autograd.gradcheck(
            signal, (X.clone().requires_grad_(), *parameters), atol=1e-5
        )


def test_a_smoothed_response_describes_itself():
    described = ScalarResponse(temperature=0.2, start="stay").describe()
    assert described["kind"] == "smooth"
    assert described["temperature"] == 0.2
    assert described["start"] == "stay"
