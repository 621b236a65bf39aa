"""The share of a shift that our response explains."""

import numpy as np
import pytest

from countermove.production.drift._samples import drift_samples
from countermove.production.drift._shifts import share_explained
from countermove.production.drift.known_answers import known_case
from countermove.production.drift.terms import DriftTerms

TERMS = DriftTerms(bootstrap=100)


def share(name, differs=True):
    case = known_case(name, 3_000, 3_000, 0)
    tables = case.reference, case.observed
    samples = drift_samples(*tables, case.model.score, case.response, 3_000, 0)
    return share_explained(samples, differs, TERMS, 0)


def test_all_is_explained_where_people_answer_as_modelled():
    found = share("people answer as modelled")
    assert found.value > 0.97
    assert found.low <= found.value <= found.high <= 1.0


def test_dearer_moves_leave_a_part_unexplained():
    found = share("a move costs twice as much")
    assert 0.0 < found.low < found.value < found.high < 1.0


def test_a_prediction_that_nobody_follows_explains_nothing():
    assert share("savings grow by 0.2").value == pytest.approx(0.0, abs=1e-6)


def test_without_a_shift_there_is_no_share():
    found = share("nobody answers, none expected", differs=False)
    assert found.value is None
    assert "does not differ" in found.reason


@pytest.mark.slow
def test_interval_covers_the_share_of_many_people():
    """Of twenty pairs of tables nearly all have an interval around the share of large ones."""
    case = known_case("a move costs twice as much", 20_000, 20_000, 99)
    tables = case.reference, case.observed
    samples = drift_samples(*tables, case.model.score, case.response, 20_000, 0)
    truth = share_explained(samples, True, DriftTerms(bootstrap=50), 0).value
    covered = 0
    for seed in range(20):
        case = known_case("a move costs twice as much", 800, 800, seed)
        tables = case.reference, case.observed
        samples = drift_samples(*tables, case.model.score, case.response, 800, seed)
        found = share_explained(samples, True, TERMS, 0)
        covered += found.low <= truth <= found.high
    assert covered >= 16
    assert np.isfinite(truth)
