"""The right sign of App. F's regulariser helps; the printed one does not."""

from __future__ import annotations

import numpy as np
import pytest

from countermove.errors import ParameterError
from countermove.experiments.transfer.regulariser import (
    best_strength,
    minimise_regularised,
    regularised_risk,
)
from countermove.transfer.minimise import ThresholdProblem, minimise_induced_risk
from countermove.transfer.shifts import Replicator

PROBLEM = ThresholdProblem(0.3, Replicator(((0.2, 0.2), (0.2, 1.0))))


def test_the_best_strength_weighs_the_classes_by_the_induced_share():
    best = minimise_induced_risk(PROBLEM)
    share = float(PROBLEM.share(best.threshold))
    found = minimise_regularised(PROBLEM, best_strength(0.3, share))
    # Weighed by p(hT), nobody answering: a closed form.
    assert found.threshold == pytest.approx(PROBLEM.classes.best_threshold(share), abs=1e-6)
    assert found.threshold != pytest.approx(best.threshold, abs=0.01)


def test_the_sign_as_printed_moves_away_from_the_best_rule():
    """Reference, note 10: 1.315 to 5.0, risk .289 to .300; corrected .300, .2057 (best .2055)."""
    best = minimise_induced_risk(PROBLEM)
    strength = best_strength(0.3, float(PROBLEM.share(best.threshold)))
    corrected = minimise_regularised(PROBLEM, strength)
    published = minimise_regularised(PROBLEM, strength, "published")
    assert PROBLEM.source_best == pytest.approx(1.315, abs=5e-4)
    assert float(PROBLEM.risk(PROBLEM.source_best)) == pytest.approx(0.289, abs=5e-4)
    assert (published.threshold, published.at_bound) == (5.0, True)
    assert published.induced_risk == pytest.approx(0.300, abs=5e-4)
    assert corrected.threshold == pytest.approx(0.300, abs=5e-4)
    assert corrected.induced_risk == pytest.approx(0.2057, abs=5e-5)
    assert (best.threshold, best.risk) == pytest.approx((0.244, 0.2055), abs=5e-4)


def test_no_strength_is_the_source_risk():
    assert minimise_regularised(PROBLEM, 0.0).threshold == pytest.approx(PROBLEM.source_best)


def test_the_regulariser_is_half_the_sum_of_both_rates():
    tpr, fpr = PROBLEM.classes.rates(np.array(0.7))
    plain, with_bonus = (float(regularised_risk(PROBLEM, 0.7, a)) for a in (0.0, 1.0))
    assert plain - with_bonus == pytest.approx(0.5 * float(tpr + fpr))


def test_shares_and_signs_that_make_no_sense_are_refused():
    with pytest.raises(ParameterError, match="p\\(hT\\)"):
        best_strength(0.3, 1.4)
    with pytest.raises(ParameterError, match="sign"):
        regularised_risk(PROBLEM, 0.0, 0.1, "plus")
