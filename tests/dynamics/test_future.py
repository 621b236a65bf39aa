"""What becomes of a deployed rule: retraining, and applicants who act together."""

from __future__ import annotations

import copy
import json

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from countermove.data.rows import Rows
from countermove.data.synthetic import GaussianPopulation
from countermove.dynamics import (
    Crowd,
    FutureTerms,
    LogisticLearner,
    RespondingPopulation,
    ThreatTerms,
    TorchLearner,
    collective_threat,
    linearise,
    retraining_future,
    settle,
)
from countermove.dynamics.deployed import schema_segments
from countermove.dynamics.future import own_learner
from countermove.dynamics.threat import EVERYBODY, NETWORK_APPLICANTS, REFITTED, ThreatSearch
from countermove.people import ActionSet, QuadraticCost
from countermove.response import AscentResponse, BestResponse, GainResponse, NoResponse, Population
from countermove.scores import LinearScore, MLPScore, NearestCentroidScore, PartlyLinearScore

POPULATION = GaussianPopulation(centre=(0.8, 0.4))
MADE, JUDGED = POPULATION.sample(1500, 1), POPULATION.sample(2000, 2)
PEOPLE = BestResponse(QuadraticCost(4.0))
QUICK = FutureTerms(rounds=10, map_people=300)


def rule_of(raised=0.0):
    weights, bias = POPULATION.best_rule()
    score = LinearScore(2)
    with torch.no_grad():
        score.weight.copy_(torch.from_numpy(weights))
        score.bias.fill_(bias - raised)
    return score


@pytest.fixture(scope="module")
def future():
    return retraining_future(rule_of(), MADE, JUDGED, PEOPLE, terms=QUICK)


def test_the_accuracy_is_that_of_an_independent_loop(future):
    """scikit-learn's logistic regression, refitted to people moved by hand."""
    (X, y), cost = MADE, 4.0

    def moved(rows, w, b):
        distance = -(rows @ w + b) / np.linalg.norm(w)
        near = (distance > 0.0) & (cost * distance**2 <= 2.0)
        return rows + np.where(near, distance, 0.0)[:, None] * w / np.linalg.norm(w), near

    w, b = POPULATION.best_rule()
    for _ in range(future.course.rounds + 4):
        fitted = LogisticRegression(C=1.0, tol=1e-10, max_iter=500).fit(moved(X, w, b)[0], y)
        w, b = fitted.coef_[0], fitted.intercept_[0]
    judged, near = moved(JUDGED[0], w, b)
    approved = near | (judged @ w + b >= 0.0)
    right = np.mean(approved == (JUDGED[1] > 0))
    assert future.accuracy.value == pytest.approx(right, abs=0.01)
    assert future.accuracy.low < future.accuracy.value < future.accuracy.high
    assert future.accuracy.n == 2000


def test_it_says_the_sentence_and_is_json(future):
    written = json.loads(json.dumps(future.to_json(), allow_nan=False))
    course = future.course
    assert course.course == "settles"
    assert f"settles within {course.rounds} rounds at accuracy" in written["words"]
    assert f"contraction {course.contraction:.2f} a round" in written["words"]
    assert len(written["map"]) == 12
    assert {cell["looking_ahead"] for cell in written["map"]} == {0.0, 0.5, 1.0}
    assert written["majority"] == pytest.approx(
        max(np.mean(JUDGED[1] > 0), 1 - np.mean(JUDGED[1] > 0))
    )


def test_the_contraction_is_the_linearised_one():
    """People who want a higher score respond smoothly: the rate is the radius at the end."""
    people = GainResponse(QuadraticCost(0.25))
    # The learner rests where its penalty and people's moves balance.
    learner = LogisticLearner(0.05, penalise_intercept=True)
    terms = FutureTerms(rounds=12, tolerated=-1.0, map_people=200)
    found = retraining_future(rule_of(), MADE, JUDGED, people, learner=learner, terms=terms)
    population = RespondingPopulation(Crowd(MADE[0], (MADE[1] > 0) * 1.0), people)
    stable = settle(learner, population, learner.fit(population.base))
    radius = linearise(learner, population, getattr(stable, "theta", stable)).radius
    assert found.course.contraction == pytest.approx(radius, rel=0.2)


def test_where_it_does_not_apply_it_says_so():
    still = retraining_future(rule_of(), MADE, JUDGED, NoResponse(), terms=QUICK)
    assert not still.applies
    assert "Nobody moves" in still.words
    network = retraining_future(
        MLPScore(2, hidden=(3,), dropout=0.0), MADE, JUDGED, PEOPLE, terms=QUICK
    )
    assert not network.applies
    assert "best responses to such a rule are not known" in network.words
    centroids = NearestCentroidScore(2)
    other = retraining_future(centroids, MADE, JUDGED, PEOPLE, terms=QUICK)
    assert not other.applies
    assert f"kind {centroids.kind}" in other.words
    assert json.dumps(other.to_json(), allow_nan=False)


@pytest.mark.slow
def test_a_network_goes_on_from_its_own_weights():
    """Its linear part moves, its network does not: exact responses, and the whole map."""
    people = BestResponse(QuadraticCost(4.0), ActionSet(immutable=(1,)))
    rule = PartlyLinearScore(2, movable=[0], hidden=(3,))
    trained = own_learner(rule, 400).fit(Crowd(MADE[0][:400], (MADE[1][:400] > 0) * 1.0))
    rule = own_learner(rule, 400).score(trained)
    terms = FutureTerms(rounds=7, people=400)
    found = retraining_future(rule, MADE, JUDGED, people, terms=terms)
    assert found.applies
    assert found.learner == "torch"
    assert (found.n, found.map_n) == (400, 400)
    assert len(found.map) == 12
    assert found.accuracy.value > found.majority
    assert "looks one retraining ahead it" in found.words


CLIMB = AscentResponse(QuadraticCost(4.0), random_starts=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "people",
    [GainResponse(QuadraticCost(4.0)), Population(CLIMB, never=0.2)],
    ids=["people who want a higher score", "people who differ"],
)
def test_every_response_that_has_a_meaning_for_a_network_is_followed(people):
    few, terms = tuple(part[:60] for part in MADE), FutureTerms(rounds=1)
    found = retraining_future(trained_network(60), few, few, people, terms=terms)
    assert found.applies
    assert found.response == people.name
    assert found.accuracy.value > 0.5


@pytest.mark.slow
def test_a_network_that_people_climb_is_followed_at_the_stated_price():
    rule = MLPScore(2, hidden=(4,), dropout=0.0)
    crowd = Crowd(MADE[0], (MADE[1] > 0) * 1.0)
    learner = own_learner(rule, crowd.n)
    people = AscentResponse(QuadraticCost(4.0), random_starts=0)
    found = retraining_future(learner.score(learner.fit(crowd)), MADE, JUDGED, people)
    assert found.applies
    assert {cell.price for cell in found.map} == {1.0}
    assert found.settles_above is None
    assert "times what is assumed" not in found.words


@pytest.mark.slow
def test_a_network_is_retrained_by_the_learner_given():
    learner = TorchLearner(MLPScore(2, hidden=(3,), dropout=0.0))
    rule = learner.score(learner.fit(Crowd(MADE[0][:200], (MADE[1][:200] > 0) * 1.0)))
    few = tuple(part[:200] for part in MADE)
    people = AscentResponse(QuadraticCost(4.0), random_starts=0)
    terms = FutureTerms(rounds=2, map_people=60)
    found = retraining_future(rule, few, few, people, learner=learner, terms=terms)
    assert found.applies
    assert 0.4 < found.accuracy.value <= 1.0


THREAT = ThreatTerms(people=600, audits=40)


@pytest.fixture(scope="module")
def threat():
    segments = {"left": MADE[0][:, 1] < 0.0, "everybody but one": np.arange(1500) > 0}
    return collective_threat(rule_of(), MADE, PEOPLE, segments, terms=THREAT)


def test_the_smallest_collectives_by_segment(threat):
    assert json.dumps(threat.to_json(), allow_nan=False)
    named = {(each.segment, each.outcome): each for each in threat.segments}
    assert set(named) == {(EVERYBODY, "group"), (EVERYBODY, "person"), ("left", "group")}
    for each in threat.segments:
        if each.share is None:
            assert "Not even" in each.words
            continue
        assert 0.0 < each.share <= each.of_segment <= 1.0
        assert 0.0 < each.mean_cost <= each.worth + 1e-9
        assert each.approved >= 0.5
        assert 0.0 <= each.audit_power <= 1.0
    able = [each for each in threat.segments if each.share is not None]
    assert able
    assert min(able, key=lambda each: each.share).words in threat.words


def test_cheaper_moves_need_fewer_members():
    shares = []
    terms = ThreatTerms(people=600, audits=10, flipped=0.1)
    for price in (4.0, 0.5):
        people = BestResponse(QuadraticCost(price))
        found = collective_threat(rule_of(), MADE, people, terms=terms)
        shares.append(found.segments[0].share or 2.0)
    assert shares[1] < shares[0]


def test_a_flip_holds_for_an_independent_refit():
    """Members count by their share, where they moved to; scikit-learn fits the rest."""
    crowd = Crowd(MADE[0][:600], (MADE[1][:600] > 0) * 1.0)
    search = ThreatSearch(
        crowd, BestResponse(QuadraticCost(1.0)), LogisticLearner(1 / 600), THREAT, 0
    )
    everybody = np.ones(600, dtype=bool)
    wanted = search.wanted_people(everybody, "group")
    share = 0.7
    ask = search.collective_of(np.arange(600), wanted).of_size(share)
    acted = search.acted(ask, wanted, None)
    X = np.concatenate([acted.X, crowd.X])
    weight = np.repeat([share, 1.0 - share], 600)
    fitted = LogisticRegression(C=1.0, tol=1e-10).fit(X, np.tile(crowd.y, 2), sample_weight=weight)
    approved = np.mean(fitted.decision_function(wanted) >= 0.0)
    assert acted.approved == pytest.approx(approved, abs=0.02)
    assert acted.approved > 0.0


@pytest.mark.validity
@pytest.mark.quick_validity
def test_the_audit_sees_nobody_as_rarely_as_it_says_and_large_moves_always():
    crowd = Crowd(MADE[0][:600], (MADE[1][:600] > 0) * 1.0)
    search = ThreatSearch(crowd, PEOPLE, LogisticLearner(), ThreatTerms(people=600, audits=200), 0)
    rows = np.arange(600)
    assert search.audit_power(rows, 0.0, crowd.X) <= 0.06
    assert search.audit_power(rows, 1.0, crowd.X + 1.0) == 1.0


def test_where_nothing_can_be_done_together_it_says_so():
    fixed = BestResponse(QuadraticCost(1.0), ActionSet(immutable=(0, 1)))
    assert "lets nobody change" in collective_threat(rule_of(), MADE, fixed, terms=THREAT).words
    centroids = collective_threat(NearestCentroidScore(2), MADE, PEOPLE, terms=THREAT)
    assert not centroids.applies
    assert "takes its own learner" in centroids.words


def trained_network(people=400):
    rule = MLPScore(2, hidden=(3,), dropout=0.0, generator=torch.Generator().manual_seed(0))
    learner = own_learner(rule, people, 1e-6)
    return learner.score(learner.fit(Crowd(MADE[0][:people], (MADE[1][:people] > 0) * 1.0)))


@pytest.mark.slow
def test_a_collective_before_a_network_is_looked_for_through_its_own_refit():
    segments = {"left": MADE[0][:, 1] < 0.0, "right": MADE[0][:, 1] >= 0.0}
    people = BestResponse(QuadraticCost(0.5))
    found = collective_threat(trained_network(), MADE, people, segments, terms=THREAT)
    assert found.applies
    assert found.learner == "torch"
    assert found.n == NETWORK_APPLICANTS[1]
    assert len(found.segments) == 3  # everybody twice, and one segment
    assert any(each.share is not None for each in found.segments)
    assert json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.slow
def test_a_flip_of_a_network_holds_for_an_independent_refit():
    """Plain gradient descent by torch, from the published weights, on members and the rest."""
    n, share, rule = 150, 0.7, trained_network()
    crowd = Crowd(MADE[0][:n], (MADE[1][:n] > 0) * 1.0)
    learner = own_learner(rule, n, REFITTED)
    search = ThreatSearch(crowd, BestResponse(QuadraticCost(0.5)), learner, THREAT, 0)
    wanted = search.wanted_people(np.ones(n, dtype=bool), "group")
    acted = search.acted(search.collective_of(np.arange(n), wanted).of_size(share), wanted, None)
    assert acted.approved > 0.0
    X = torch.from_numpy(np.concatenate([acted.X, crowd.X]))
    y = torch.from_numpy(np.tile(crowd.y, 2))
    weight = torch.from_numpy(np.repeat([share / n, (1.0 - share) / n], n))
    module = copy.deepcopy(rule)
    descent = torch.optim.LBFGS(module.parameters(), max_iter=2_000, tolerance_grad=1e-6)

    def risk():
        descent.zero_grad()
        losses = torch.nn.functional.binary_cross_entropy_with_logits(
            module(X), y, weight=weight, reduction="sum"
        )
        value = losses + 0.5 / n * sum((part**2).sum() for part in module.parameters())
        value.backward()
        return value

    descent.step(risk)
    with torch.no_grad():
        approved = (module(torch.from_numpy(wanted)) >= 0.0).double().mean()
    assert acted.approved == pytest.approx(float(approved), abs=0.1)


@pytest.mark.slow
def test_a_network_that_cannot_be_refitted_says_so():
    learner = TorchLearner(trained_network(), tolerance=1e-15, max_steps=1)
    found = collective_threat(rule_of(), MADE, PEOPLE, learner=learner, terms=THREAT)
    assert not found.applies
    assert "cannot be refitted" in found.words


def test_segments_are_the_groups_of_the_sensitive_columns():
    groups = pd.DataFrame({"sex": ["f", "m", "f"]})
    rows = Rows(np.array(["0", "1", "2"]), np.zeros((3, 1)), np.ones(3), groups)
    found = schema_segments(rows)
    assert {name: mask.tolist() for name, mask in found.items()} == {
        "sex = f": [True, False, True],
        "sex = m": [False, True, False],
    }
