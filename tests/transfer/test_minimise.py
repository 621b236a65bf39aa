"""Descent on the induced risk ends at the closed form."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from countermove.errors import NotEnoughRowsError, ParameterError
from countermove.people import QuadraticCost
from countermove.response import BestResponse, NoResponse
from countermove.scores import LinearScore
from countermove.scores.base import values
from countermove.transfer.minimise import (
    GaussianClasses,
    ScoredPeople,
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


@pytest.fixture(scope="module")
def real():
    """A score of three features on people who are not normal along it."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(1500) < 0.4, 1.0, -1.0)
    X = rng.standard_t(4, size=(1500, 3)) + 0.7 * y[:, None] * np.array([1.0, 0.5, 0.2])
    rule = LinearScore(3)
    with torch.no_grad():
        rule.weight.copy_(torch.tensor([1.0, 0.6, 0.1], dtype=torch.float64))
    return rule, X, y


def test_a_real_score_among_people_who_move(real):
    """Against every threshold by brute force: people within reach of it cross."""
    rule, X, y = real
    found = minimise_induced_risk(ScoredPeople(rule, X, y, BestResponse(QuadraticCost(4.0))))
    scores = values(rule, X)
    reach = float(np.linalg.norm(rule.weight.detach().numpy())) * (2.0 / 4.0) ** 0.5
    errors = [np.mean((scores >= t - reach) != (y > 0)) for t in np.unique(scores)]
    assert found.risk <= min(errors) + 0.005
    assert found.risk == pytest.approx(np.mean((scores >= found.threshold - reach) != (y > 0)))
    unmoved = ScoredPeople(rule, X, y, NoResponse())
    still = minimise_induced_risk(unmoved)
    assert found.threshold > still.threshold + 0.5 * reach
    assert float(unmoved.risk(still.threshold)[0]) == still.risk


def test_a_real_score_among_classes_that_grow(real):
    rule, X, y = real
    problem = ScoredPeople(rule, X, y, FIRST)
    found = minimise_induced_risk(problem)
    tried = problem.thresholds()
    assert found.risk <= float(problem.risk(tried[:: len(tried) // 40]).min()) + 1e-12
    assert not found.descents


def test_real_people_need_both_labels_and_bounds_with_scores(real):
    rule, X, y = real
    with pytest.raises(NotEnoughRowsError, match="both labels"):
        minimise_induced_risk(ScoredPeople(rule, X, np.ones(len(y)), NoResponse()))
    with pytest.raises(ParameterError, match="no score lies"):
        minimise_induced_risk(ScoredPeople(rule, X, y, NoResponse()), bounds=(900.0, 901.0))
