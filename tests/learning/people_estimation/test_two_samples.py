"""Estimating the people from two samples without keys."""

from __future__ import annotations

import numpy as np
import pytest

from countermove.learning.people_estimation import Noise, estimate_people
from countermove.people import ActionSet
from countermove.response import NoResponse

from .deployments import best, deployed, rule, smooth


def two_samples(response, noise, n=3000, seed=0):
    """Return an estimate from people before and *other* people after."""
    score, X, after = deployed(response, noise, n=2 * n, seed=seed)
    return estimate_people(score, X[:n], after[n:])


def test_best_responders_leave_a_hole_whose_edge_is_the_reach():
    found = two_samples(best(1.0), Noise(non_movers=0.2))
    assert found.response == "best"
    assert not found.matched
    assert found.scale_interval.contains(1.0)
    assert found.scale_interval.high < 1.3 * found.scale_interval.low
    assert found.non_movers == pytest.approx(0.2, abs=0.08)
    assert not found.misspecified


@pytest.mark.slow
@pytest.mark.parametrize(
    ("response", "noise"),
    [
        (best(1.0), Noise(0.2, 0.1, 0.1)),
        (smooth(1.0, 0.5), Noise(0.2, 0.1, 0.1)),
        (smooth(1.0, 0.2), Noise(0.2, 0.1, 0.05)),
    ],
)
def test_the_response_model_is_recognised(response, noise):
    found = two_samples(response, noise, n=5000)
    assert found.response == response.name
    assert not found.misspecified


def test_the_same_people_twice_tell_nothing():
    found = two_samples(NoResponse(), None)
    assert found.response == "none"
    assert "nobody moved" in found.verdict
    assert not found.identified


@pytest.mark.slow
def test_other_people_under_immutable_features_are_noticed():
    score, X, after = deployed(best(), n=600)
    after[:, 3] += 1.0
    found = estimate_people(score, X, after, actions=ActionSet(immutable=[3]))
    assert any("x3" in warning for warning in found.warnings)


@pytest.mark.slow
def test_a_sample_that_changed_for_other_reasons_does_not_fit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 5))
    after = 0.3 * rng.normal(size=(3000, 5))
    found = estimate_people(rule(), X, after)
    assert found.misspecified
