"""Three samples: whoever is in both tables counts once, and nothing odd gets in."""

import numpy as np
import pytest

from countermove.errors import DataError, NotEnoughRowsError, ParameterError
from countermove.people import QuadraticCost
from countermove.production.drift._samples import PeopleTable, answers, drift_samples, read
from countermove.production.drift.known_answers import NAMES, deployed, known_case
from countermove.response import BestResponse, NoResponse, Population
from countermove.response.response_set import RobustResponse

SCORE = deployed().score


def table(n, ids=None, **more):
    rng = np.random.default_rng(n)
    return PeopleTable(rng.normal(size=(n, 5)), ids=ids, **more)


def test_people_in_both_tables_count_in_one_of_them():
    first, second = table(400, np.arange(400)), table(300, np.arange(200, 500))
    samples = drift_samples(first, second, SCORE, NoResponse(), 1_000, seed=0)
    kept, new = first.ids[samples.kept], second.ids[samples.new]
    assert not set(kept) & set(new)
    assert set(kept) | set(new) == set(range(500))
    assert 60 < np.isin(kept, new).sum() + np.sum(kept >= 200) < 140


def test_prediction_is_the_answer_of_those_kept():
    case = known_case("people answer as modelled", 300, 200, 0)
    samples = drift_samples(case.reference, case.observed, SCORE, case.response, 100, seed=0)
    assert len(samples.reference.X) == len(samples.observed.X) == 100
    expected = case.response.respond(SCORE, case.reference.X[samples.kept]).x_new
    np.testing.assert_array_equal(samples.induced.X, expected)
    crossed = np.any(samples.induced.X != samples.reference.X, axis=1)
    assert crossed.any()
    assert (samples.induced.score[crossed] == 0.0).all()


def test_kinds_of_people_are_drawn_by_their_shares():
    X = np.random.default_rng(0).normal(size=(2_000, 5))
    cost = QuadraticCost(2.0)
    mixed = RobustResponse([BestResponse(cost), NoResponse(cost)], [0.25, 0.75])
    moved = np.any(answers(mixed, SCORE, X, np.random.default_rng(1)) != X, axis=1).mean()
    whole = np.any(BestResponse(cost).respond(SCORE, X).x_new != X, axis=1).mean()
    assert moved == pytest.approx(0.25 * whole, abs=0.03)
    with pytest.raises(ParameterError, match="one prediction"):
        answers(RobustResponse(mixed.members), SCORE, X, np.random.default_rng(1))


def test_people_who_differ_go_where_the_type_drawn_for_them_goes():
    X = np.random.default_rng(0).normal(size=(4_000, 5))
    people = Population(BestResponse(QuadraticCost(2.0)), never=0.4, log_sd=0.5)
    moved = np.any(answers(people, SCORE, X, np.random.default_rng(1)) != X, axis=1)
    expected = people.chance_after(SCORE, X) - NoResponse().chance_after(SCORE, X)
    assert moved.mean() == pytest.approx(expected.mean(), abs=0.02)
    again = np.any(answers(people, SCORE, X, np.random.default_rng(2)) != X, axis=1)
    assert (again != moved).any()


def test_rows_with_missing_values_are_not_compared():
    holes = table(200)
    holes.X[:120, 2] = np.nan
    samples = drift_samples(holes, table(100), SCORE, NoResponse(), 1_000, seed=0)
    assert len(samples.reference.X) == 80


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
        read(given, "observed", SCORE, NAMES)


def test_an_empty_batch_is_refused_with_how_many_are_needed():
    with pytest.raises(NotEnoughRowsError, match=r"observed table has 0 complete rows.* 50"):
        drift_samples(table(100), PeopleTable(np.empty((0, 5))), SCORE, NoResponse(), 1_000, seed=0)
