"""People who had no reason to move are as before, whatever a move costs; others are not."""

import numpy as np
import pytest

from countermove.production.drift.known_answers import NAMES, known_case
from countermove.production.drift.samples import placed, three_samples
from countermove.production.drift.settled import settled_tests
from countermove.production.drift.terms import DriftTerms
from countermove.response import ScalarResponse

TERMS = DriftTerms(level=1e-3, permutations=9_999)


def samples(name, n=2_000):
    case = known_case(name, n, n, 1)
    tables = case.reference, case.observed
    return case, three_samples(*tables, case.model.score, case.response, n, 0)


@pytest.mark.parametrize(
    "name", ["a move costs half as much", "features are priced otherwise", "nobody answers"]
)
def test_no_answer_touches_them(name):
    _, three = samples(name)
    tests = settled_tests(three, (three.induced,), NAMES, TERMS)
    assert len(tests) == len(NAMES)
    assert not any(test.alarm for test in tests)


def test_people_who_grew_richer_stand_out():
    _, three = samples("as modelled, and savings grow by 0.2", 5_000)
    tests = settled_tests(three, (three.induced,), NAMES, TERMS)
    assert [test.name for test in tests if test.alarm] == ["savings (people approved before)"]


def test_people_who_overshoot_leave_fewer_to_look_at():
    """Smooth answers lead beyond the boundary: only those further still had no reason to move."""
    case, three = samples("people climb a smoothed step")
    score, X = case.model.score, three.reference.X
    smooth = ScalarResponse(case.response.cost, case.response.actions, temperature=0.3)
    account = placed(score, smooth.respond(score, X).x_new, None)
    strict = settled_tests(three, (three.induced, account), NAMES, TERMS)
    assert not any(test.alarm for test in strict)
    assert (account.score[np.abs(account.score - three.reference.score) > 0.1] > 0.1).any()


def test_too_few_people_say_nothing():
    _, three = samples("people answer as modelled", 100)
    assert settled_tests(three, (three.induced,), NAMES, TERMS) == ()
