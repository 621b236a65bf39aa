"""The smoothed response: stationary, and global where promised."""

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from countermove.people import ActionSet, LinearCost, MixtureCost, QuadraticCost
from countermove.response import BestResponse, ScalarResponse
from countermove.response.step import smoothed_step
from countermove.scores import LinearScore

from .conftest import linear_score

starts = pytest.mark.parametrize("start", ["global", "stay"])


def worth(case, response: ScalarResponse, x: np.ndarray, x_new: np.ndarray) -> np.ndarray:
    """Return the smoothed objective of moving from ``x`` to ``x_new``."""
    unit = response.reduction(case.score, len(x)).unit_value if response.normalised else 1.0
    y = (x_new @ case.w + case.b) / (response.temperature * unit)
    return smoothed_step(torch.from_numpy(y)).numpy() - case.cost.price(x, x_new)


def best_over_levels(case, response: ScalarResponse, levels: np.ndarray) -> np.ndarray:
    """Return each person's best worth when going to one of these scores for what that costs."""
    unit = response.reduction(case.score, len(case.X)).unit_value if response.normalised else 1.0
    payers, best = BestResponse(case.cost, case.actions), np.full(len(case.X), -np.inf)
    for level in levels:
        lowered = linear_score(case.w, case.b - level)
        y = torch.tensor(level / (response.temperature * unit))
        gained = float(smoothed_step(y)) - payers.crossing_cost(lowered, case.X)
        best = np.maximum(best, gained)
    return best


@starts
def test_responses_are_allowed_priced_and_stationary(make_case, cost_name, boxed, start):
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
def test_the_global_response_beats_a_fine_grid(make_case, cost_name, boxed, temperature):
    """Figure to reach: never worse than a fine grid by more than 1e-8."""
    for seed in range(2):
        case = make_case(cost_name, seed, boxed, n=10)
        response = ScalarResponse(case.cost, case.actions, temperature)
        found = response.respond(case.score, case.X)
        values = worth(case, response, case.X, found.x_new)
        there, now = found.x_new @ case.w + case.b, case.X @ case.w + case.b
        near = (there[:, None] + np.array([-1e-2, -1e-4, 1e-4, 1e-2])).ravel()
        levels = np.concatenate([np.linspace(now.min(), now.max() + 5.0, 100), near])
        assert (values >= best_over_levels(case, response, levels) - 1e-8).all()


@settings(max_examples=40, deadline=None)
@example([7e-45, -2.80078125], -1.0, 1.0, 3.25, True)  # a weight below the other's rounding
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
    """Algorithm 1 run literally converges to the polished response of ``start="stay"``."""
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
def test_a_normalised_response_depends_on_the_rule_and_not_on_its_scale(
    make_case, cost_name, factor
):
    case = make_case(cost_name, 3, True)
    response = ScalarResponse(case.cost, case.actions)
    before = response.respond(case.score, case.X).x_new
    with torch.no_grad():
        case.score.weight *= factor
        case.score.bias *= factor
    np.testing.assert_allclose(response.respond(case.score, case.X).x_new, before, atol=1e-7)


def test_the_published_response_is_gamed_by_scale(make_case):
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


def test_results_do_not_depend_on_the_partition(make_case, cost_name, boxed):
    case = make_case(cost_name, 5, boxed, n=101)
    response = ScalarResponse(case.cost, case.actions)
    whole = response.respond(case.score, case.X)
    for size in (1, 7, 50):
        parts = [
            response.respond(case.score, case.X[i : i + size]) for i in range(0, len(case.X), size)
        ]
        np.testing.assert_array_equal(np.vstack([part.x_new for part in parts]), whole.x_new)


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
