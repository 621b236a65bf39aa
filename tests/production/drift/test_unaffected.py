"""What no response can change stays, however much a move costs; other people are noticed."""

import numpy as np
import pytest

from countermove.people import ActionSet, QuadraticCost
from countermove.production.drift import DriftTerms, PeopleTable, drift_report
from countermove.response import BestResponse

from .known_answers import NAMES, best, deployed, known_case, people

TERMS = DriftTerms(permutations=199, bootstrap=50)
SURE = DriftTerms(level=1e-3, permutations=5_999, bootstrap=50)


def findings(reference, observed, response, terms=TERMS, seed=0):
    return drift_report(reference, observed, deployed(), response, terms, seed).findings


def boxed(scale):
    limits = {"lower": np.full(5, -0.7), "upper": np.full(5, 0.7)}
    return BestResponse(QuadraticCost(scale), ActionSet(immutable=[3], **limits))


@pytest.mark.parametrize("people_at", [best, boxed], ids=["free", "stopped by bounds"])
@pytest.mark.parametrize("scale", [0.3, 9.0])
def test_coordinates_are_those_before_whatever_the_cost(people_at, scale):
    """The same people again, who pay another price: all that is called unaffected is as it was."""
    X, _ = people(600, 0)
    moved = people_at(scale).respond(deployed().rule, X).x_new
    assert np.any(moved != X)
    found = findings(PeopleTable(X), PeopleTable(moved), people_at(2.0))
    assert found.alarm
    assert max(test.distance for test in found.untouched) <= 1 / 600
    names = {test.name for test in found.untouched}
    # People stopped by bounds spread over more directions: less is sure to stay.
    everything = {"owner", *(f"{name} (answers taken out)" for name in NAMES if name != "owner")}
    assert names < everything if people_at is boxed else names == everything


def test_nobody_moves_so_everything_stays():
    case = known_case("savings grow by 0.2", 2_000, 2_000, 1)
    found = findings(case.reference, case.observed, case.response)
    assert tuple(test.name for test in found.untouched) == NAMES
    assert found.natural == ("savings",)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a move costs half as much", ()),
        ("nobody answers", ()),
        ("as modelled, and savings grow by 0.2", ("savings (answers taken out)",)),
    ],
)
def test_only_natural_drift_raises_an_alarm(name, expected):
    case = known_case(name, 2_000, 2_000, 1)
    assert findings(case.reference, case.observed, case.response, SURE).natural == expected


def test_a_price_for_every_feature_leaves_people_approved_before_alone():
    case = known_case("features are priced otherwise", 2_000, 2_000, 1)
    found = findings(case.reference, case.observed, case.response)
    assert [test.name for test in found.settled] == [f"{n} (people approved before)" for n in NAMES]
    assert not found.others_came


def test_people_who_grew_richer_stand_out_among_those_approved_before():
    """Prices of their own would explain the growth, were it not for people with no reason."""
    (X, y), (Z, z) = people(3_000, 4), people(3_000, 5)
    moved = best().respond(deployed().rule, Z + 0.14 * np.eye(5)[1]).x_new
    found = findings(PeopleTable(X, y), PeopleTable(moved, z), best(), seed=1)
    assert not found.against_estimate.alarms
    named = [test.name for test in found.settled if test.alarm]
    assert named == ["savings (people approved before)"]


def test_too_few_approved_people_say_nothing():
    """The rule approves so few of the first table that nothing is tested about them."""
    case = known_case("features are priced otherwise", 110, 2_000, 1)
    assert findings(case.reference, case.observed, case.response).settled == ()
