"""Three samples: whoever is in both tables counts once, and nothing odd gets in."""

import numpy as np
import pytest

from countermove.errors import DataError, NotEnoughRowsError, ParameterError
from countermove.people import QuadraticCost
from countermove.production.drift.known_answers import NAMES, deployed, known_case
from countermove.production.drift.samples import Seen, answers, read, three_samples
from countermove.response import BestResponse, NoResponse
from countermove.response.robust import RobustResponse

SCORE = deployed().score


def table(n, ids=None, **more):
    rng = np.random.default_rng(n)
    return Seen(rng.normal(size=(n, 5)), ids=ids, **more)


def test_people_in_both_tables_count_in_one_of_them():
    first, second = table(400, np.arange(400)), table(300, np.arange(200, 500))
    three = three_samples(first, second, SCORE, NoResponse(), 1_000, seed=0)
    kept, new = first.ids[three.kept], second.ids[three.new]
    assert not set(kept) & set(new)
    assert set(kept) | set(new) == set(range(500))
    assert 60 < np.isin(kept, new).sum() + np.sum(kept >= 200) < 140


def test_prediction_is_the_answer_of_those_kept():
    case = known_case("people answer as modelled", 300, 200, 0)
    three = three_samples(case.reference, case.observed, SCORE, case.response, 100, seed=0)
    assert len(three.reference.X) == len(three.observed.X) == 100
    expected = case.response.respond(SCORE, case.reference.X[three.kept]).x_new
    np.testing.assert_array_equal(three.induced.X, expected)
    crossed = np.any(three.induced.X != three.reference.X, axis=1)
    assert crossed.any()
    assert (three.induced.score[crossed] == 0.0).all()


def test_kinds_of_people_are_drawn_by_their_shares():
    X = np.random.default_rng(0).normal(size=(2_000, 5))
    cost = QuadraticCost(2.0)
    mixed = RobustResponse([BestResponse(cost), NoResponse(cost)], [0.25, 0.75])
    moved = np.any(answers(mixed, SCORE, X, np.random.default_rng(1)) != X, axis=1).mean()
    whole = np.any(BestResponse(cost).respond(SCORE, X).x_new != X, axis=1).mean()
    assert moved == pytest.approx(0.25 * whole, abs=0.03)
    with pytest.raises(ParameterError, match="one prediction"):
        answers(RobustResponse(mixed.members), SCORE, X, np.random.default_rng(1))


def test_rows_with_missing_values_are_not_compared():
    holes = table(200)
    holes.X[:120, 2] = np.nan
    three = three_samples(holes, table(100), SCORE, NoResponse(), 1_000, seed=0)
    assert len(three.reference.X) == 80


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (Seen(np.zeros((60, 4))), DataError, "reads 5 features"),
        (Seen(np.full((60, 5), np.inf)), DataError, "infinite"),
        (Seen(np.zeros((60, 5)), names=NAMES[::-1]), DataError, "in this order"),
        (Seen(np.zeros((60, 5)), y=np.zeros(60)), DataError, "other than ±1"),
        (Seen(np.zeros((60, 5)), y=np.ones(9)), DataError, "60 rows but 9 labels"),
        (Seen(np.zeros((60, 5)), ids=np.zeros(60)), DataError, "twice"),
    ],
)
def test_tables_that_must_not_be_compared_are_refused(given, error, words):
    with pytest.raises(error, match=words):
        read(given, "observed", SCORE, NAMES)


def test_an_empty_batch_is_refused_with_how_many_are_needed():
    with pytest.raises(NotEnoughRowsError, match=r"observed table has 0 complete rows.* 50"):
        three_samples(table(100), Seen(np.empty((0, 5))), SCORE, NoResponse(), 1_000, seed=0)
