"""Records in whole numbers or few digits are no drift."""

from __future__ import annotations

import numpy as np
import pytest
from tests.production.tiny_champion import SCHEMA, model, people

from countermove.data.cleaning import clean
from countermove.data.rows import design_matrix
from countermove.data.synthetic import fabricate
from countermove.production.drift import DriftTerms, PeopleTable, drift_report

MODEL = model(3.0)
UNITS = MODEL.standardiser
WHOLE = [
    place
    for place, name in enumerate(SCHEMA.feature_names)
    if name in ("open_loans", "years_at_job", "owns_home", "education")
]


def recorded(X: np.ndarray, how: str) -> np.ndarray:
    """Return people after they responded, as they are written down."""
    there = UNITS.inverse(people(UNITS).respond(MODEL.rule, UNITS.transform(X)).x_new)
    steps = there[:, WHOLE]
    if how == "towards approval":
        rises = MODEL.rule.weight.detach().numpy()[WHOLE] > 0.0
        steps = np.where(rises, np.ceil(steps - 1e-9), np.floor(steps + 1e-9))
    if how == "two digits":
        digits = 1 - np.floor(np.log10(np.maximum(np.abs(there), 1e-9)))
        there = np.round(there * 10.0**digits) / 10.0**digits
    there[:, WHOLE] = np.round(steps)
    return there


@pytest.mark.slow
@pytest.mark.parametrize("how", ["nearest", "towards approval", "two digits"])
def test_whole_numbers_ties_and_rounding_do_not_alarm(how):
    before, after = (
        design_matrix(clean(fabricate("tiny", 1000, seed=seed), SCHEMA), SCHEMA)
        for seed in (301, 302)
    )
    seen = PeopleTable(UNITS.transform(recorded(after.X, how)), after.y)
    reference = PeopleTable(UNITS.transform(before.X), before.y)
    terms = DriftTerms(permutations=199, bootstrap=50)
    report = drift_report(reference, seen, MODEL, people(UNITS), terms, 0)
    assert report.recommendation == "keep", report.words
    # A real change is still seen.
    moved = after.X.copy()
    moved[:, 0] += 15.0
    other = PeopleTable(UNITS.transform(recorded(moved, how)), after.y)
    assert drift_report(reference, other, MODEL, people(UNITS), terms, 0).alarm
