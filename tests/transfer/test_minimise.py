"""Descent on the induced risk ends at the closed form; the right sign of the regulariser helps."""

from __future__ import annotations

import numpy as np
import pytest

from countermove.errors import ParameterError
from countermove.transfer.minimise import (
    GaussianClasses,
    ThresholdProblem,
    best_strength,
    descend,
    minimise_induced_risk,
    minimise_regularised,
    regularised_risk,
)
from countermove.transfer.shifts import Replicator

FIRST = Replicator(((0.5, 0.5), (0.2, 1.0)))
SECOND = Replicator(((0.3, 1.0), (0.2, 0.8)))


@pytest.mark.parametrize("replicator", [FIRST, SECOND, Replicator()])
@pytest.mark.parametrize("share", [0.2, 0.6])
def test_the_slope_is_the_slope(replicator, share):
    problem = ThresholdProblem(share, replicator, GaussianClasses((-0.3, 1.1), 0.8))
    theta, step = np.linspace(-2.5, 3.0, 23), 1e-6
    numeric = (problem.risk(theta + step) - problem.risk(theta - step)) / (2.0 * step)
    assert problem.slope(theta) == pytest.approx(numeric, abs=1e-8)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.7])
def test_the_source_threshold_is_best_when_nobody_answers(share):
    still = ThresholdProblem(share, Replicator(((1.0, 1.0), (1.0, 1.0))))
    found = minimise_induced_risk(still)
    assert found.threshold == pytest.approx(still.source_best, abs=1e-4)


@pytest.mark.parametrize("replicator", [FIRST, SECOND])
@pytest.mark.parametrize("share", [0.3, 0.5, 0.8])
def test_the_best_descent_is_the_smallest_of_a_fine_grid(replicator, share):
    found = minimise_induced_risk(ThresholdProblem(share, replicator))
    assert found.risk == pytest.approx(found.exact[1], abs=1e-8)
    assert all(descent.still for descent in found.descents)


def test_one_start_may_end_in_the_wrong_valley():
    """Reference figures, note 8: .7740 from theta_S, .7894 at best."""
    found = minimise_induced_risk(ThresholdProblem(0.4, FIRST))
    assert 1.0 - found.descents[0].risk == pytest.approx(0.7740, abs=5e-5)
    assert 1.0 - found.risk == pytest.approx(0.7894, abs=5e-5)
    assert found.at_bound


def test_accuracy_as_fitness_drives_a_class_out_up_to_the_bound():
    found = minimise_induced_risk(ThresholdProblem(0.4, Replicator()), bounds=(-3.0, 3.0))
    assert found.at_bound
    wider = minimise_induced_risk(ThresholdProblem(0.4, Replicator()), bounds=(-5.0, 5.0))
    assert wider.risk < found.risk


def test_a_descent_stays_between_its_bounds():
    ended = descend(lambda x: (-x, -1.0), 0.0, (-1.0, 2.0))
    assert ended.threshold == 2.0
    assert ended.still


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: GaussianClasses((1.0, 0.0)), "mean of label"),
        (lambda: GaussianClasses(spread=0.0), "positive spread"),
        (lambda: minimise_induced_risk(ThresholdProblem(0.4, FIRST), (1.0, 0.0)), "low < high"),
        (lambda: ThresholdProblem(1.0, FIRST).source_best, "strictly between"),
    ],
)
def test_nonsense_is_refused(make, says):
    with pytest.raises(ParameterError, match=says):
        make()


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
