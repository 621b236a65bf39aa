"""How much of a feature's shift was foretold."""

import numpy as np
import pytest

from countermove.data.standardise import Standardiser
from countermove.production.drift._comparison import SCORE, compare
from countermove.production.drift._samples import drift_samples
from countermove.production.drift._shifts import feature_shifts, shift_sentence
from countermove.production.drift.known_answers import NAMES, known_case
from countermove.production.drift.terms import DriftTerms

TERMS = DriftTerms(permutations=199)


def shifts(name):
    case = known_case(name, 5_000, 5_000, 0)
    tables = case.reference, case.observed
    samples = drift_samples(*tables, case.model.score, case.response, 5_000, 0)
    tests = [
        compare(against, expected, samples.observed, NAMES, TERMS, 0)
        for against, expected in (("reference", samples.reference), ("prediction", samples.induced))
    ]
    units = Standardiser(np.zeros(5), np.array([1.0, 10.0, 1.0, 1.0, 1.0]), NAMES)
    return {shift.name: shift for shift in feature_shifts(samples, units, *tests)}


def test_answers_are_foretold_and_nobody_changes_what_cannot_change():
    found = shifts("people answer as modelled")
    assert found[SCORE].moved
    assert not found[SCORE].unexpected
    assert found[SCORE].foretold == pytest.approx(1.0, abs=0.3)
    assert "of which we predicted" in shift_sentence(found[SCORE])
    assert found["owner"].predicted == 0.0
    assert found["owner"].foretold is None


def test_natural_drift_is_not():
    """Savings grow by 0.2, which is two of their original units."""
    savings = shifts("savings grow by 0.2")["savings"]
    assert savings.unexpected
    assert savings.foretold == 0.0
    assert savings.observed * savings.per_spread == pytest.approx(2.0, abs=0.6)
