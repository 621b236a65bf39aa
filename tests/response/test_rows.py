"""Responses of many people, free and in boxes, do not depend on how their bounds are written."""

import numpy as np
import pytest

from countermove.people import ActionSet, MixtureCost, QuadraticCost, WeightedQuadraticCost
from countermove.response import BestResponse, ScalarResponse
from countermove.response.step import rise

D, N = 6, 1543
FAR = 60.0
RNG = np.random.default_rng(8)
WEIGHTS, DIRECTION, RULE = RNG.uniform(0.2, 4.0, D), RNG.normal(size=D), np.linspace(-1.0, 1.5, D)
COSTS = {
    "quadratic": QuadraticCost(0.7),
    "weighted": WeightedQuadraticCost(WEIGHTS),
    "mixture": MixtureCost(DIRECTION, 0.3),
    "steep mixture": MixtureCost(DIRECTION, 0.05, 2.0),
    "against the rule": MixtureCost(RULE, 0.5),
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


def person_by_person(box):
    """Return the same box with bounds for everybody apart, far away where there were none."""
    wide = {"lower": np.full(D, -FAR), "upper": np.full(D, FAR)} | box
    wide["lower"] = np.where(
        np.isin(np.arange(D), box.get("only_increase", [])), 0.0, wide["lower"]
    )
    bounds = {end: np.broadcast_to(wide[end], (N, D)).copy() for end in ("lower", "upper")}
    return ActionSet(**(wide | bounds))


def agree(response, score, people, box, tolerance):
    apart = response(person_by_person(box))
    found, wanted = response(ActionSet(**box)).respond(score, people), apart.respond(score, people)
    np.testing.assert_allclose(found.x_new, wanted.x_new, atol=tolerance)
    np.testing.assert_allclose(found.cost, wanted.cost, atol=tolerance)
    few = np.arange(0, N, 97)
    alone = [apart.of_rows([i]).respond(score, people[[i]]).x_new for i in few]
    np.testing.assert_array_equal(np.vstack(alone), wanted.x_new[few])
    np.testing.assert_array_equal(
        response(ActionSet(**box)).decisions_after(score, people),
        apart.decisions_after(score, people),
    )


@costs
@boxes
def test_best_responses_do_not_depend_on_how_bounds_are_written(make_score, people, cost, box):
    agree(lambda a: BestResponse(cost, a), make_score(RULE, -0.2), people, box, 1e-10)


@costs
@boxes
@pytest.mark.parametrize("temperature", [0.05, 0.2, 0.5, 2.0])
@pytest.mark.parametrize("start", ["global", "stay"])
def test_smooth_responses_do_not_depend_on_how_bounds_are_written(
    make_score, people, cost, box, temperature, start
):
    score = make_score(RULE, -0.2)
    agree(lambda a: ScalarResponse(cost, a, temperature, start), score, people, box, 1e-9)


def test_the_slope_of_the_step_keeps_its_digits_far_out():
    """For large y the slope is y**-3 (1 + 1/2 y**-2 ...): no difference of roots is taken."""
    for y in (1e3, 1e5, 1e8):
        assert rise(y) == pytest.approx(y**-3 * (1.0 + 0.5 * y**-2), rel=1e-11)
        assert rise(-y) == pytest.approx(rise(y), rel=1e-15)
