"""What users rely on in every named population."""

import copy
import pickle

import numpy as np
import pytest
import torch

import countermove.people
import countermove.response
import countermove.scores
from countermove.people import ActionSet, QuadraticCost
from countermove.response import RobustResponse, named_response
from countermove.response.named import NAMES
from countermove.scores import MLPScore, RepresentationScore

from .conftest import linear_score

X = np.random.default_rng(5).normal(size=(30, 4))
RULE = linear_score([1.0, -0.8, 0.5, 0.3], -0.4)
ACTIONS = ActionSet(only_increase=[0], only_decrease=[1], immutable=[3], upper=[0.7] * 4)
GAIN = 2.0

by_name = pytest.mark.parametrize("name", NAMES)


def respond(name, X=X, cost=0.6, actions=ACTIONS):
    return named_response(name, QuadraticCost(cost), actions).respond(RULE, X)


@by_name
def test_nobody_makes_a_move_that_is_not_allowed(name):
    action = respond(name).x_new - X
    assert ACTIONS.contains(X, action).all()
    assert (action[:, 3] == 0.0).all()


@by_name
def test_the_cost_is_the_price_of_the_move_and_no_decision_is_worth_more(name):
    found = respond(name)
    np.testing.assert_allclose(found.cost, QuadraticCost(0.6).price(X, found.x_new), atol=1e-12)
    assert (found.cost[~found.moved] == 0.0).all()
    assert (found.cost <= GAIN + 1e-12).all()
    assert found.converged.all()


@by_name
def test_a_person_responds_alike_alone_and_in_any_order(name):
    order = np.random.default_rng(0).permutation(len(X))
    together = respond(name).x_new
    np.testing.assert_array_equal(respond(name, X[order]).x_new, together[order])
    np.testing.assert_array_equal(respond(name, X[:1]).x_new, together[:1])


@by_name
def test_the_score_rises_and_more_expensive_moves_are_shorter(name):
    weight = RULE.weight.detach().numpy()
    gains = [(respond(name, cost=cost).x_new - X) @ weight for cost in (0.3, 0.6, 5.0)]
    assert all((gain >= -1e-9).all() for gain in gains)
    if name in ("smooth", "published", "ascent"):
        assert gains[2].sum() <= gains[1].sum() <= gains[0].sum()
    favoured = [
        named_response(name, QuadraticCost(cost), ACTIONS).decisions_after(RULE, X)
        for cost in (0.3, 0.6, 5.0)
    ]
    assert (favoured[1] >= favoured[2]).all()
    assert (favoured[0] >= favoured[1]).all()


@by_name
def test_decisions_are_those_of_the_places_people_move_to(name):
    found = respond(name)
    with torch.no_grad():
        after = RULE(torch.from_numpy(found.x_new)).numpy()
    decided = named_response(name, QuadraticCost(0.6), ACTIONS).decisions_after(RULE, X)
    clear = np.abs(after) > 1e-6
    np.testing.assert_array_equal(decided[clear], after[clear] >= 0.0)


@by_name
def test_copies_and_what_travels_to_another_process_respond_alike(name):
    response = named_response(name, QuadraticCost(0.6), ACTIONS)
    there = response.respond(RULE, X).x_new
    for other in (copy.copy(response), pickle.loads(pickle.dumps(response))):
        np.testing.assert_array_equal(other.respond(RULE, X).x_new, there)
        assert other.describe() == response.describe()


@by_name
def test_another_cost_leaves_the_first_response_as_it_was(name):
    response = named_response(name, QuadraticCost(0.6), ACTIONS)
    before = response.respond(RULE, X).x_new
    costlier = response.with_cost(QuadraticCost(5.0))
    np.testing.assert_array_equal(costlier.respond(RULE, X).x_new, respond(name, cost=5.0).x_new)
    np.testing.assert_array_equal(response.respond(RULE, X).x_new, before)


@pytest.mark.parametrize(
    "room", [countermove.response, countermove.people, countermove.scores], ids=lambda r: r.__name__
)
def test_every_public_name_is_there_and_documented(room):
    for name in room.__all__:
        assert getattr(room, name).__doc__


class TestRational:
    """Best responders with the means of another population."""

    def test_they_share_its_cost_and_its_actions(self):
        from countermove.response.response_set import rational

        smooth = named_response("smooth", QuadraticCost(0.6), ACTIONS)
        best = named_response("best", QuadraticCost(0.6), ACTIONS)
        np.testing.assert_array_equal(
            rational(smooth).respond(RULE, X).x_new, best.respond(RULE, X).x_new
        )
        assert rational(best) is best
        assert rational(RobustResponse([best, smooth])) is best

    def test_unscaled_people_pay_squared_length(self):
        from countermove.response.response_set import rational

        people = rational(named_response("best", QuadraticCost(9.0), ACTIONS), unscaled=True)
        found = people.respond(RULE, X)
        np.testing.assert_allclose(found.cost, ((found.x_new - X) ** 2).sum(axis=1), atol=1e-12)

    def test_they_see_the_head_of_a_representation(self):
        from countermove.response import RepresentationResponse
        from countermove.response.response_set import rational_people

        score = RepresentationScore(4, (6, 3))
        known = rational_people(RepresentationResponse(), score, X)
        assert known.rows.shape == (30, 3)
        assert known.score.n_features == 3

    def test_no_closed_form_knows_them_where_the_score_has_no_slope(self):
        from countermove.response.response_set import rational_people

        assert rational_people(named_response("ascent"), MLPScore(4, (5,)), X) is None
