"""The settings of a smoothed response: unit, stopping rules, and what it refuses."""

import numpy as np
import pytest
import torch

from countermove.errors import DataError, NotConvergedError, ParameterError
from countermove.people import ActionSet, MixtureCost, QuadraticCost
from countermove.response import BestResponse, ConicResponse, ScalarResponse
from countermove.scores import LinearScore


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


@pytest.mark.parametrize("kind", [ScalarResponse, ConicResponse])
def test_a_unit_is_the_score_per_distance(make_score, kind):
    """Twice the unit is the same as twice the temperature of the raw score."""
    score, X = make_score([3.0, 4.0], -1.0), np.array([[0.1, 0.0], [-0.3, 0.2]])
    by_unit = kind(temperature=0.5, unit=2.0).respond(score, X).x_new
    raw = kind(temperature=1.0, normalised=False).respond(score, X).x_new
    np.testing.assert_allclose(by_unit, raw, atol=1e-6)
    assert kind(unit=2.0).describe()["unit"] == 2.0


class Curved(LinearScore):
    """A score that is not affine in what moves."""

    def slope(self):
        return None


@pytest.mark.parametrize("response", [ScalarResponse(), ScalarResponse(unit=1.0), BestResponse()])
def test_a_score_without_slope_is_refused_with_the_ways_out(response):
    with pytest.raises(ParameterError, match=r"no slope.*unit=.*PartlyLinearScore"):
        response.respond(Curved(2), np.zeros((1, 2)))


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


@pytest.mark.parametrize(
    "settings",
    [
        {"temperature": 0.0},
        {"temperature": -1.0},
        {"start": "near"},
        {"gradient": "exact"},
        {"stopping": "never"},
        {"unit": 0.0},
        {"unit": -2.0},
        {"unit": np.inf},
        {"unit": "norm"},
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


def test_a_smoothed_response_describes_itself():
    described = ScalarResponse(temperature=0.2, start="stay").describe()
    assert described["kind"] == "smooth"
    assert described["temperature"] == 0.2
    assert described["start"] == "stay"
