"""Responses read off the unbounded path and solved in blocks are those of the traced polyline."""

import numpy as np
import pytest

from countermove.people import ActionSet, MixtureCost, QuadraticCost, WeightedQuadraticCost
from countermove.response import BestResponse, ScalarResponse
from countermove.response._bounded_rows import BLOCK, safety_rows, score_rows
from countermove.response._polyline_solver import solve_best, solve_smooth
from countermove.response._rows import unbounded_path
from countermove.response.base import GAIN
from countermove.response.reduction import RowSolutions
from countermove.response.step import rise

D, N = 6, 3 * BLOCK + 7
RNG = np.random.default_rng(8)
WEIGHTS, DIRECTION = RNG.uniform(0.2, 4.0, D), RNG.normal(size=D)
COSTS = {
    "quadratic": QuadraticCost(0.7),
    "weighted": WeightedQuadraticCost(WEIGHTS),
    "mixture": MixtureCost(DIRECTION, 0.3),
    "steep mixture": MixtureCost(DIRECTION, 0.05, 2.0),
}
BOXES = {
    "free": {},
    "narrow": {"min_value": np.full(D, -0.5), "max_value": np.full(D, 0.5)},
    "short steps": {"lower": np.full(D, -0.1), "upper": np.full(D, 0.2)},
    "one way": {"only_increase": [0, 3], "immutable": [1]},
    "own": {"upper": RNG.uniform(0.0, 0.6, (N, D)), "max_value": np.full(D, 3.0)},
}
costs = pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS)
boxes = pytest.mark.parametrize("box", BOXES.values(), ids=BOXES)


@pytest.fixture
def people():
    # Some start outside the narrow box and have to come back.
    return np.random.default_rng(9).normal(size=(N, D)) * 0.4


def traced(response, score, X, gain=GAIN, **smooth):
    """Return everybody's response by the polyline solver."""
    arrays = response.reduction(score, len(X)).arrays
    w, b = score.weight.detach().numpy(), score.bias.item()
    solution = RowSolutions.empty(len(X), np.empty_like(X))
    now, who = score_rows(X, w, b), np.arange(len(X))
    if smooth:
        solve_smooth(arrays, X, now, **smooth, as_action=False, write=True, who=who,
                     solution=solution, factors=np.ones(1))  # fmt: skip
    else:
        margin = np.empty(len(X))
        safety_rows(X, w, b, now, False, margin)
        solve_best(arrays, X, now, margin, np.array([gain]), False, True, who, solution)
    return solution


@costs
@boxes
def test_best_responses_are_those_of_the_polyline(make_score, people, cost, box):
    score = make_score(RNG.normal(size=D), -0.2)
    response = BestResponse(cost, ActionSet(**box))
    found, wanted = response.respond(score, people), traced(response, score, people)
    np.testing.assert_allclose(found.x_new, wanted.out, atol=1e-10)
    np.testing.assert_allclose(found.cost, wanted.cost, atol=1e-10)
    np.testing.assert_array_equal(response.decisions_after(score, people), wanted.favoured)


@costs
@boxes
@pytest.mark.parametrize("temperature", [0.05, 0.2, 0.5, 2.0])
@pytest.mark.parametrize("start", ["global", "stay"])
def test_smooth_responses_are_those_of_the_polyline(
    make_score, people, cost, box, temperature, start
):
    score = make_score(np.linspace(-1.0, 1.5, D), -0.2)
    response = ScalarResponse(cost, ActionSet(**box), temperature, start)
    unit = response.reduction(score, len(people)).unit_value
    wanted = traced(response, score, people, sharpness=1.0 / (temperature * unit),
                    first=start == "stay")  # fmt: skip
    found = response.respond(score, people)
    np.testing.assert_allclose(found.x_new, wanted.out, atol=1e-9)
    np.testing.assert_allclose(found.cost, wanted.cost, atol=1e-9)


def test_a_cost_that_opposes_the_rule_has_no_closed_path(make_score):
    """On the kink nothing is left to gain when it points where the score does."""
    score = make_score([1.0, 2.0], 0.0)
    straight = BestResponse(MixtureCost([1.0, 2.0], 0.5)).reduction(score, 1)
    assert unbounded_path(straight) is None
    slanted = BestResponse(MixtureCost([1.0, 0.0], 0.5)).reduction(score, 1)
    path = unbounded_path(slanted)
    assert 0.0 < path.rate < path.beyond
    assert np.isfinite(path.turn)


def test_the_slope_of_the_step_keeps_its_digits_far_out():
    """For large y the slope is y**-3 (1 + 1/2 y**-2 ...): no difference of roots is taken."""
    for y in (1e3, 1e5, 1e8):
        assert rise(y) == pytest.approx(y**-3 * (1.0 + 0.5 * y**-2), rel=1e-11)
        assert rise(-y) == pytest.approx(rise(y), rel=1e-15)
