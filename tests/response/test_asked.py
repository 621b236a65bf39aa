"""The best response to a black box: searched for within a budget of rows, never proven."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from countermove.people import ActionSet, QuadraticCost
from countermove.recourse import Settings, recommend
from countermove.response import (
    AscentResponse,
    BestResponse,
    RepresentationResponse,
    ScalarResponse,
)
from countermove.response.tree_best import UnprovenWarning
from countermove.scores import LinearScore, MLPScore, RepresentationScore
from countermove.scores.adopted import adopt
from countermove.scores.base import values
from countermove.transfer.induced import at

pytestmark = pytest.mark.filterwarnings("ignore::countermove.response.tree_best.UnprovenWarning")
HELD = ActionSet(immutable=[3])


@pytest.fixture(scope="module")
def both():
    """A linear rule, exact and as a black box, and people."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4)) * [1.0, 3.0, 0.5, 1.0] + [0.0, 5.0, 1.0, 0.0]
    y = X @ [1.0, 0.4, -1.0, 0.5] + rng.logistic(size=500) > 1.5
    fitted = LogisticRegression().fit(X, y)
    exact = adopt(fitted, X)
    black = adopt(lambda rows: fitted.predict_proba(rows)[:, 1], X)
    return exact, black, exact.standardiser_.transform(X[:120])


def test_it_crosses_where_the_exact_response_does(both):
    exact, black, Z = both
    people = BestResponse(QuadraticCost(2.0), HELD)
    wanted = people.decisions_after(exact.standardised_score_, Z)
    found = people.decisions_after(black.standardised_score_, Z)
    assert not (found & ~wanted).any()
    assert (found == wanted).mean() >= 0.98
    assert wanted.mean() > (values(exact.standardised_score_, Z) >= 0.0).mean()
    assert people.unproven(black.standardised_score_, Z) == pytest.approx((~found).mean())


def test_moves_are_approved_allowed_and_worth_it(both):
    exact, black, Z = both
    people = BestResponse(QuadraticCost(2.0), HELD)
    moved = people.respond(black.standardised_score_, Z)
    best = people.respond(exact.standardised_score_, Z)
    went = moved.moved
    assert (values(black.standardised_score_, moved.x_new[went]) >= 0.0).all()
    assert (moved.cost[went] < 2.0).all()
    assert (moved.x_new[:, 3] == Z[:, 3]).all()
    assert (moved.cost[went] >= best.cost[went] * (1.0 - 1e-6)).all()
    assert np.median(moved.cost[went] / best.cost[went]) < 1.1
    # Nobody who stayed refused is known to have no crossing.
    stayed = ~went & (values(black.standardised_score_, Z) < 0.0)
    assert not moved.converged[stayed].any()


def test_one_search_answers_every_threshold(both):
    _, black, Z = both
    people, score = BestResponse(QuadraticCost(2.0), HELD), black.standardised_score_
    asked: list[int] = []
    own, score.function = score.function, lambda rows: asked.append(len(rows)) or own(rows)
    try:
        shares = [people.decisions_after(at(score, t), Z).mean() for t in (-0.5, 0.0, 0.5, 1.0)]
    finally:
        score.function = own
    assert sorted(shares, reverse=True) == shares
    assert sum(asked) <= 1_000 * len(Z)


def test_it_warns_of_those_it_could_not_decide(both):
    _, black, Z = both
    with pytest.warns(UnprovenWarning, match="limited number of rows"):
        BestResponse(QuadraticCost(2.0), HELD).decisions_after(black.standardised_score_, Z)


def test_recourse_says_how_often_the_model_was_asked(both):
    _, black, Z = both
    X = black.standardiser_.inverse(Z)
    actions = ActionSet(lower=[-0.2] * 4, upper=[0.2] * 4, immutable=[3])
    few = recommend(black, X, "auto", 0.5, actions, settings=Settings(calls=200))
    refused = int((few.status != "NOT_NEEDED").sum())
    assert "NOT_FOUND" in few.status
    assert "PROVEN_NONE" not in few.status
    assert (few.cost_bound == 0.0).all()
    # Besides the search: everybody as they are, and every action again.
    assert 100 * refused < few.asked <= 200 * refused + 10 * len(X)
    more = recommend(black, X, "auto", 0.5, actions, settings=Settings(calls=800))
    assert more.asked > few.asked


def test_responses_know_which_scores_they_answer():
    network, linear = MLPScore(3, (4,)), LinearScore(3)
    rows = np.random.default_rng(0).normal(size=(40, 3))
    black = adopt(lambda X: np.full(len(X), 0.3), rows).standardised_score_
    neighbours = KNeighborsClassifier().fit(rows, rows[:, 0] > 0)
    with pytest.warns(UserWarning, match="black box"):
        other = adopt(neighbours, rows).standardised_score_
    for score, climbs, best in (
        (network, True, False),
        (linear, True, True),
        (black, False, True),
        (other, False, True),
    ):
        assert AscentResponse().answers(score) is climbs
        assert BestResponse().answers(score) is best
    assert not ScalarResponse().answers(network)
    hidden = RepresentationScore(3, (4, 2))
    assert RepresentationResponse().answers(hidden)
    assert not RepresentationResponse().answers(network)
