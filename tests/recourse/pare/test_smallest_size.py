"""The promise of recourse: exact binomial counts, and a Monte-Carlo test of its level."""

import numpy as np
import pytest
from scipy.stats import binom

from countermove.errors import CalibrationError, DataError, ParameterError
from countermove.recourse import calibrate_threshold, smallest_calibration_size


def allowed_misses(n, miss_rate, failure_probability):
    """Return how many of n people lie below the bound."""
    found = calibrate_threshold(
        np.arange(n) / n, miss_rate=miss_rate, failure_probability=failure_probability
    )
    return round(n * found.bound)


@pytest.mark.parametrize(("n", "k"), [(6012, 272), (735, 26), (1583, 64), (100, 1)])
def test_allowed_misses_of_the_published_splits(n, k):
    """Recomputed counts for adult, compas, bail and german at 5 % and 5 %."""
    assert allowed_misses(n, 0.05, 0.05) == k


def test_fifty_nine_rows_are_the_least_for_five_percent():
    assert smallest_calibration_size(0.05, 0.05) == 59
    with pytest.raises(CalibrationError, match="at least 59"):
        allowed_misses(58, 0.05, 0.05)
    assert allowed_misses(59, 0.05, 0.05) == 0


@pytest.mark.parametrize("miss_rate", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("failure_probability", [0.001, 0.05, 0.5])
def test_allowed_misses_is_the_largest_count_within_the_level(miss_rate, failure_probability):
    n = smallest_calibration_size(miss_rate, failure_probability) + 200
    k = allowed_misses(n, miss_rate, failure_probability)
    assert binom.cdf(k, n, miss_rate) <= failure_probability < binom.cdf(k + 1, n, miss_rate)


def test_threshold_is_the_order_statistic_capped_by_the_wanted_one():
    reachable = np.arange(100)[::-1] / 100
    assert calibrate_threshold(reachable).threshold == 0.01
    capped = calibrate_threshold(reachable + 0.009, wanted=0.005)
    assert (capped.threshold, capped.bound) == (0.005, 0.01 + 0.009)


def test_bad_levels_and_probabilities_are_refused():
    with pytest.raises(ParameterError, match="miss_rate"):
        calibrate_threshold(np.full(100, 0.5), miss_rate=0.0)
    with pytest.raises(DataError, match="rows 3") as caught:
        calibrate_threshold(np.where(np.arange(100) == 3, np.nan, 0.5))
    assert caught.value.rows == (3,)


@pytest.mark.validity
@pytest.mark.quick_validity
@pytest.mark.parametrize(
    ("n", "miss_rate", "failure_probability"), [(100, 0.05, 0.05), (400, 0.1, 0.1)]
)
def test_promise_fails_no_more_often_than_it_says(n, miss_rate, failure_probability):
    """Uniform reachable probabilities: the true miss rate at threshold t is t itself."""
    rng, trials = np.random.default_rng(0), 4000
    broken = sum(
        calibrate_threshold(
            rng.random(n), miss_rate=miss_rate, failure_probability=failure_probability, wanted=0.99
        ).threshold
        > miss_rate
        for _ in range(trials)
    )
    # One-sided 99.9 % allowance for the simulation's own noise.
    assert broken <= binom.ppf(0.999, trials, failure_probability)
    # And the level is not wasted: it fails about as often as the discrete count allows.
    exact = binom.cdf(allowed_misses(n, miss_rate, failure_probability), n, miss_rate)
    assert broken >= binom.ppf(0.001, trials, exact)
