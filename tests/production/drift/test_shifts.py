"""How much of a shift our response explains: of all columns together, and of each."""

import numpy as np
import pytest

from countermove.data.standardise import Standardiser
from countermove.production.drift import DriftTerms, drift_report
from countermove.scores.storage import PublishedModel

from .known_answers import NAMES, known_case

TERMS = DriftTerms(permutations=199, bootstrap=100)


def report(name, n=3_000, seed=0, terms=TERMS):
    """Return a report whose savings are in tenths of their standard unit."""
    case = known_case(name, n, n, seed)
    units = Standardiser(np.zeros(5), np.array([1.0, 10.0, 1.0, 1.0, 1.0]), NAMES)
    model = PublishedModel(case.model.score, units, "")
    return drift_report(case.reference, case.observed, model, case.response, terms, seed)


def test_all_is_explained_where_people_answer_as_modelled():
    found = report("people answer as modelled").share
    assert found.value > 0.97
    assert found.low <= found.value <= found.high <= 1.0


def test_dearer_moves_leave_a_part_unexplained():
    found = report("a move costs twice as much").share
    assert 0.0 < found.low < found.value < found.high < 1.0


def test_a_prediction_that_nobody_follows_explains_nothing():
    assert report("savings grow by 0.2").share.value == pytest.approx(0.0, abs=1e-6)


def test_without_a_shift_there_is_no_share():
    found = report("nobody answers, none expected").share
    assert found.value is None
    assert "does not differ" in found.reason


def test_responses_are_foretold_and_nobody_changes_what_cannot_change():
    made = report("people answer as modelled", 5_000)
    found = {shift.name: shift for shift in made.shifts}
    score = found["deployed score"]
    assert score.moved
    assert not score.unexpected
    assert score.foretold == pytest.approx(1.0, abs=0.3)
    assert "deployed score moved by" in made.words
    assert "of which we predicted" in made.words
    assert found["owner"].predicted == 0.0
    assert found["owner"].foretold is None


def test_natural_drift_is_not_foretold():
    """Savings grow by 0.2, which is two of their original units."""
    made = report("savings grow by 0.2", 5_000)
    (savings,) = (shift for shift in made.shifts if shift.name == "savings")
    assert savings.unexpected
    assert savings.foretold == 0.0
    assert savings.observed * savings.per_spread == pytest.approx(2.0, abs=0.6)


@pytest.mark.slow
def test_interval_covers_the_share_of_many_people():
    """Of twenty pairs of tables nearly all have an interval around the share of large ones."""
    name, brief = "a move costs twice as much", DriftTerms(permutations=199, bootstrap=50)
    truth = report(name, 20_000, 99, brief).share.value
    shares = [report(name, 800, seed).share for seed in range(20)]
    assert sum(found.low <= truth <= found.high for found in shares) >= 16
    assert np.isfinite(truth)
