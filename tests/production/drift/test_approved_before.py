"""People who had no reason to move are as before, whatever a move costs; others are not."""

import numpy as np
import pytest

from countermove.production.drift._comparison import approved_before_tests
from countermove.production.drift._samples import drift_samples, scored_sample
from countermove.production.drift.known_answers import NAMES, known_case
from countermove.production.drift.terms import DriftTerms
from countermove.response import ScalarResponse

TERMS = DriftTerms(level=1e-3, permutations=9_999)


def samples_of(name, n=2_000):
    case = known_case(name, n, n, 1)
    tables = case.reference, case.observed
    return case, drift_samples(*tables, case.model.score, case.response, n, 0)


@pytest.mark.parametrize(
    "name", ["a move costs half as much", "features are priced otherwise", "nobody answers"]
)
def test_no_answer_touches_them(name):
    _, samples = samples_of(name)
    tests = approved_before_tests(samples, (samples.induced,), NAMES, TERMS)
    assert len(tests) == len(NAMES)
    assert not any(test.alarm for test in tests)


def test_people_who_grew_richer_stand_out():
    _, samples = samples_of("as modelled, and savings grow by 0.2", 5_000)
    tests = approved_before_tests(samples, (samples.induced,), NAMES, TERMS)
    assert [test.name for test in tests if test.alarm] == ["savings (people approved before)"]


def test_people_who_overshoot_leave_fewer_to_look_at():
    """Smooth answers lead beyond the boundary: only those further still had no reason to move."""
    case, samples = samples_of("people climb a smoothed step")
    score, X = case.model.score, samples.reference.X
    smooth = ScalarResponse(case.response.cost, case.response.actions, temperature=0.3)
    account = scored_sample(score, smooth.respond(score, X).x_new, None)
    strict = approved_before_tests(samples, (samples.induced, account), NAMES, TERMS)
    assert not any(test.alarm for test in strict)
    assert (account.score[np.abs(account.score - samples.reference.score) > 0.1] > 0.1).any()


def test_too_few_people_say_nothing():
    _, samples = samples_of("people answer as modelled", 100)
    assert approved_before_tests(samples, (samples.induced,), NAMES, TERMS) == ()
