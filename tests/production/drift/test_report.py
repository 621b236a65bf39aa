"""What the whole report says about tables whose cause is known."""

import json
from functools import cache

import numpy as np
import pytest

from countermove.learning.people_estimation import Noise, simulate_deployment
from countermove.people import ActionSet, LinearCost, QuadraticCost, WeightedQuadraticCost
from countermove.production.drift import DriftTerms, PeopleTable, drift_report, unexpected
from countermove.response import BestResponse, NoResponse
from countermove.scores import MLPScore
from countermove.scores.storage import PublishedModel

from .known_answers import CAUSES, best, deployed, known_case

TERMS = DriftTerms(permutations=199, bootstrap=50)
QUICK = (
    "nobody answers, none expected",
    "people answer as modelled",
    "a move costs twice as much",
    "nobody answers",
    "savings grow by 0.2",
    "debts are no longer recorded",
)


@cache
def explained(name, n, seed=3):
    case = known_case(name, n, n, seed)
    return drift_report(case.reference, case.observed, case.model, case.response, TERMS, seed)


def check(name, n):
    report = explained(name, n)
    assert report.recommendation == CAUSES[name].answer
    assert report.alarm == (report.recommendation != "keep")
    assert report.words.startswith(f"Recommendation: {report.recommendation}, because ")
    case = known_case(name, n, n, 3)
    tables = case.reference, case.observed
    assert unexpected(*tables, case.model, case.response, TERMS, 3) == report.alarm
    said = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert said["recommendation"] == report.recommendation


@pytest.mark.parametrize("name", QUICK)
def test_causes_are_found(name):
    check(name, 1_000)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(CAUSES) - set(QUICK)))
def test_every_other_cause_is_found(name):
    check(name, 4_000)


def test_costs_are_estimated_anew_with_their_interval():
    report = explained("a move costs twice as much", 1_000)
    people = report.findings.people
    assert people.configured == pytest.approx(2.0)
    assert people.estimate.scale_interval.contains(4.0)
    assert not people.estimate.scale_interval.contains(2.0)
    assert not report.findings.against_estimate.alarms


def test_people_in_both_tables_are_matched_by_id():
    """Half of them do not answer: pairs show it, and the tables count each person once."""
    model, response = deployed(), best()
    X = known_case("people answer as modelled", 800, 60, 0).reference.X
    after = simulate_deployment(model.score, X, response, Noise(non_movers=0.5))
    ids = np.arange(len(X))
    report = drift_report(
        PeopleTable(X, ids=ids), PeopleTable(after, ids=ids), model, response, TERMS, 0
    )
    people = report.findings.people.estimate
    assert people.matched
    assert people.non_movers == pytest.approx(0.5, abs=0.1)
    assert report.rows["shared"] == 800
    assert report.rows["compared_reference"] + report.rows["compared_observed"] == 800
    assert report.recommendation == "re-estimate costs"
    assert any("do not" in reason for reason in report.reasons)


def test_late_and_absent_labels():
    case = known_case("nobody answers, none expected", 200, 200, 3)
    late = np.where(np.arange(200) < 190, np.nan, case.observed.y)
    for y in (None, late):
        seen = PeopleTable(case.observed.X, y)
        report = drift_report(case.reference, seen, case.model, case.response, TERMS, 0)
        assert report.findings.against_prediction.labels is None
        assert "Too few labels" in report.words


def test_labels_that_follow_the_features():
    """Movers whose labels improve with their features are no alarm, if that is what we expect."""
    model, response = deployed(), best(0.5)
    rng = np.random.default_rng(0)
    before, after = rng.normal(size=(2, 2_000, 5))
    after = response.respond(model.score, after).x_new

    def labels(X):
        score = X @ model.score.weight.detach().numpy()
        return np.where(rng.logistic(size=len(X)) < score, 1.0, -1.0)

    tables = PeopleTable(before, labels(before)), PeopleTable(after, labels(after))
    found = {}
    for reading in ("kept", "follow"):
        terms = DriftTerms(permutations=199, bootstrap=50, labels=reading)
        found[reading] = unexpected(*tables, model, response, terms, 0)
    assert found == {"kept": True, "follow": False}


def test_a_score_without_slope_is_compared_but_not_estimated():
    score = MLPScore(5, hidden=(4,))
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(2, 300, 5))
    model = PublishedModel(score, deployed().standardiser, "")
    report = drift_report(
        PeopleTable(X), PeopleTable(Z + 0.6 * np.eye(5)[0]), model, NoResponse(), TERMS, 0
    )
    assert report.recommendation == "retrain"
    assert "not linear" in report.findings.people.reason


def configured_scale(cost):
    """Return the price of a unit of advance that a report states beside the estimated one."""
    X, Z = np.random.default_rng(0).normal(size=(2, 100, 5))
    tables = PeopleTable(X), PeopleTable(Z + 1.5 * np.eye(5)[0])
    within = ActionSet(lower=np.full(5, -9.0), upper=np.full(5, 9.0))
    report = drift_report(*tables, deployed(), BestResponse(cost, within), TERMS, 0)
    return report.findings.people.configured


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        (QuadraticCost(3.0), 3.0),
        (WeightedQuadraticCost([3.0] * 5), 3.0),
        (LinearCost(np.ones(5)), None),
    ],
)
def test_configured_scale_is_the_price_of_a_unit_of_advance(cost, expected):
    assert configured_scale(cost) == (None if expected is None else pytest.approx(expected))


def test_configured_scale_under_unequal_prices():
    """The cheapest unit of advance, found by trying many moves."""
    score, prices = deployed().score, np.array([1.0, 2.0, 0.5, 4.0, 3.0])
    unit = score.weight.detach().numpy()
    unit = unit / np.linalg.norm(unit)
    moves = np.random.default_rng(0).normal(size=(20_000, 5)) + 2.0 * unit / prices
    moves = moves / (moves @ unit)[:, None]
    cheapest = float(((moves**2) @ prices).min())
    scale = configured_scale(WeightedQuadraticCost(prices))
    assert scale <= cheapest
    assert scale == pytest.approx(cheapest, rel=0.1)
