"""Descent on the induced risk ends at the closed form."""

from __future__ import annotations

import numpy as np
import pytest

from countermove.errors import ParameterError
from countermove.transfer.minimise import (
    GaussianClasses,
    ThresholdProblem,
    descend,
    minimise_induced_risk,
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
