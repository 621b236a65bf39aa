"""What no answer can change stays, however much a move costs."""

import numpy as np
import pytest

from countermove.people import ActionSet, LinearCost, MixtureCost, QuadraticCost
from countermove.production.drift._comparison import scaled, unaffected_tests, untouched
from countermove.production.drift._samples import PeopleTable, drift_samples
from countermove.production.drift.known_answers import NAMES, best, deployed, known_case
from countermove.production.drift.terms import DriftTerms
from countermove.response import BestResponse, NoResponse

SCORE = deployed().score
TERMS = DriftTerms(level=1e-3, permutations=9_999)


def samples_of(response, n=600):
    X = np.random.default_rng(0).normal(size=(2 * n, 5))
    return drift_samples(PeopleTable(X[:n]), PeopleTable(X[n:]), SCORE, response, n, seed=0)


@pytest.mark.parametrize("scale", [0.3, 2.0, 9.0])
def test_coordinates_are_those_before_whatever_the_cost(scale):
    samples = samples_of(best())
    stays = untouched(samples, SCORE, NAMES, 0)
    X = samples.reference.X
    moved = best(scale).respond(SCORE, X).x_new
    assert np.any(moved != X)
    np.testing.assert_allclose(moved @ stays.basis, X @ stays.basis, atol=1e-9)
    assert "owner" in stays.names
    assert "savings (answers taken out)" in stays.names


def test_nobody_moves_so_everything_stays():
    assert untouched(samples_of(NoResponse()), SCORE, NAMES, 0).names == NAMES


def test_bounds_turn_people_and_leave_less():
    """People stopped by bounds spread over more directions: less is sure to stay."""
    free = untouched(samples_of(best()), SCORE, NAMES, 0)
    narrow = ActionSet(lower=np.full(5, -0.2), upper=np.full(5, 0.2), immutable=[3])
    stopped = untouched(samples_of(BestResponse(QuadraticCost(0.5), narrow)), SCORE, NAMES, 0)
    assert np.linalg.matrix_rank(stopped.basis, 1e-6) < np.linalg.matrix_rank(free.basis, 1e-6)


def test_only_natural_drift_raises_an_alarm():
    for name, expected in (
        ("a move costs half as much", set()),
        ("as modelled, and savings grow by 0.2", {"savings (answers taken out)"}),
    ):
        case = known_case(name, 2_000, 2_000, 1)
        samples = drift_samples(case.reference, case.observed, SCORE, case.response, 2_000, 0)
        tests = unaffected_tests(samples, SCORE, NAMES, TERMS, 0)
        assert {test.name for test in tests if test.alarm} == expected


@pytest.mark.parametrize(
    "cost", [QuadraticCost(2.0), LinearCost([1.0, 2.0]), MixtureCost([1.0, 0.5], 0.3, 2.0)]
)
def test_a_scaled_response_pays_a_multiple(cost):
    X, X_new = np.zeros((1, 2)), np.array([[1.0, 2.0]])
    paid = scaled(BestResponse(cost), 3.0).cost.price(X, X_new)
    assert paid == pytest.approx(3.0 * cost.price(X, X_new))
