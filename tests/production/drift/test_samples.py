"""Three samples: whoever is in both tables counts once, and nothing odd gets in."""

from dataclasses import replace

import numpy as np
import pytest

from countermove.errors import DataError, NotEnoughRowsError, ParameterError
from countermove.people import QuadraticCost
from countermove.production.drift import DriftTerms, PeopleTable, drift_report
from countermove.response import BestResponse, NoResponse, Population
from countermove.response.response_set import RobustResponse
from countermove.scores.base import values

from .known_answers import NAMES, deployed, known_case

MODEL = deployed()
TERMS = DriftTerms(permutations=111, bootstrap=50)


def table(n, ids=None, **more):
    rng = np.random.default_rng(n)
    return PeopleTable(rng.normal(size=(n, 5)), ids=ids, **more)


def report(reference, observed, response=None, terms=TERMS, seed=0):
    response = NoResponse() if response is None else response
    return drift_report(reference, observed, MODEL, response, terms, seed)


def test_people_in_both_tables_count_in_one_of_them():
    rows = report(table(400, np.arange(400)), table(300, np.arange(200, 500))).rows
    assert rows["shared"] == 200
    assert rows["compared_reference"] + rows["compared_observed"] == 500
    assert 60 < rows["compared_reference"] - 200 < 140


def test_larger_tables_are_drawn_from():
    case = known_case("people answer as modelled", 300, 200, 0)
    terms = replace(TERMS, max_rows=100)
    rows = report(case.reference, case.observed, case.response, terms).rows
    assert (rows["reference"], rows["observed"]) == (300, 200)
    assert rows["compared_reference"] == rows["compared_observed"] == 100


def predicted_advance(X, response):
    """Return by how much a report predicts the mean score to rise, in score units."""
    found = report(PeopleTable(X), PeopleTable(X), response).shifts[-1]
    return found.predicted * found.per_spread


def test_the_prediction_is_the_response_of_those_in_the_reference():
    X, score = table(400).X, MODEL.rule
    best = BestResponse(QuadraticCost(2.0))
    moved = best.respond(score, X).x_new
    wanted = float(np.mean(values(score, moved) - values(score, X)))
    assert predicted_advance(X, best) == pytest.approx(wanted, abs=1e-9)


def test_kinds_of_people_are_drawn_by_their_shares():
    X, cost = np.random.default_rng(0).normal(size=(4_000, 5)), QuadraticCost(2.0)
    mixed = RobustResponse([BestResponse(cost), NoResponse(cost)], [0.25, 0.75])
    whole = predicted_advance(X, BestResponse(cost))
    assert predicted_advance(X, mixed) == pytest.approx(0.25 * whole, rel=0.15)
    with pytest.raises(ParameterError, match="one prediction"):
        predicted_advance(X, RobustResponse(mixed.members))


def test_people_who_differ_go_where_the_type_drawn_for_them_goes():
    X, score = np.random.default_rng(0).normal(size=(4_000, 5)), MODEL.rule
    people = Population(BestResponse(QuadraticCost(2.0)), never=0.4, log_sd=0.5)
    drawn = [people.with_seed(seed).respond(score, X).x_new for seed in range(5)]
    wanted = np.mean([values(score, moved) - values(score, X) for moved in drawn])
    assert predicted_advance(X, people) == pytest.approx(wanted, rel=0.1)
    rows = PeopleTable(X), PeopleTable(X)
    found = {report(*rows, people, seed=seed).shifts[-1].predicted for seed in (1, 2)}
    assert len(found) == 2


def test_rows_with_missing_values_are_not_compared():
    holes = table(200)
    holes.X[:120, 2] = np.nan
    assert report(holes, table(100)).rows["compared_reference"] == 80


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (PeopleTable(np.zeros((60, 4))), DataError, "reads 5 features"),
        (PeopleTable(np.full((60, 5), np.inf)), DataError, "infinite"),
        (PeopleTable(np.zeros((60, 5)), names=NAMES[::-1]), DataError, "in this order"),
        (PeopleTable(np.zeros((60, 5)), y=np.zeros(60)), DataError, "other than ±1"),
        (PeopleTable(np.zeros((60, 5)), y=np.ones(9)), DataError, "60 rows but 9 labels"),
        (PeopleTable(np.zeros((60, 5)), ids=np.zeros(60)), DataError, "twice"),
    ],
)
def test_tables_that_must_not_be_compared_are_refused(given, error, words):
    with pytest.raises(error, match=words):
        report(table(100), given)


def test_an_empty_batch_is_refused_with_how_many_are_needed():
    with pytest.raises(NotEnoughRowsError, match=r"observed table has 0 complete rows.* 50"):
        report(table(100), PeopleTable(np.empty((0, 5))))
