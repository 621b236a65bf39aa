"""The intervals of estimated costs cover the truth as often as they say, and models are recognised.

The figures: ``pytest tests/validity/test_people_estimates.py -m long --log-cli-level=INFO``; make
test-all runs a hundred draws of each, of which 89 are covered with a chance of 99.6 % at 95 %.
"""

from __future__ import annotations

import pytest
from scipy.stats import binom

from .people_deployments import matched, same_people, tally, two_samples

MATCHED = ["best", "best, recorded", "smooth 0.5", "smooth 0.2"]
SAMPLES = ["best", "best, recorded", "best, bounds", "smooth 0.5", "smooth 0.2"]


def check(way, truth: str, repetitions: int, least_covered: float, least_right: float) -> None:
    found = tally(way, truth, repetitions)
    assert found.covered >= least_covered
    assert found.right >= least_right
    # The tests of fit are at one in a hundred (prices) or in a thousand.
    assert binom.sf(round(found.refused * repetitions) - 1, repetitions, 0.015) >= 0.01


@pytest.mark.validity
@pytest.mark.quick_validity
@pytest.mark.parametrize(("truth", "draws"), [("best", 4), ("smooth 0.5", 3)])
def test_intervals_cover_and_models_are_recognised_quickly(truth, draws):
    # At 95 % two missed of four have a chance of one in seventy, two of three of one in a hundred.
    check(matched, truth, draws, 0.6, 1.0)


@pytest.mark.validity
@pytest.mark.quick_validity
def test_two_samples_cover_quickly():
    # 2 draws at 95 %: none covered has a chance of one in four hundred.
    check(two_samples, "best", 2, 0.5, 1.0)


@pytest.mark.validity
@pytest.mark.slow
@pytest.mark.parametrize("truth", MATCHED)
@pytest.mark.parametrize(
    ("draws", "least"), [(100, 0.89), pytest.param(500, 0.93, marks=pytest.mark.long)]
)
def test_intervals_cover_and_models_are_recognised(truth, draws, least):
    check(matched, truth, draws, least, 0.95)


@pytest.mark.validity
@pytest.mark.slow
@pytest.mark.parametrize("truth", SAMPLES)
@pytest.mark.parametrize(
    ("draws", "least"), [(100, 0.89), pytest.param(200, 0.93, marks=pytest.mark.long)]
)
def test_two_samples_cover_and_recognise(truth, draws, least):
    check(two_samples, truth, draws, least, 0.95)


@pytest.mark.validity
@pytest.mark.slow
def test_the_same_people_without_their_keys_are_covered_too():
    # The samples then depend on each other, which can only bring them closer.
    check(same_people, "best", 100, 0.93, 0.95)
