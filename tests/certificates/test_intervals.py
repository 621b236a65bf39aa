"""Every interval inverts the tail it claims, and fails no more often than it says."""

import numpy as np
import pytest
from scipy.stats import binom

from countermove.certificates.intervals import (
    cells_radius,
    distribution_function_radius,
    lower_share,
    mean_interval,
    paired_interval,
    share_interval,
    upper_share,
)
from countermove.errors import NotEnoughRowsError, ParameterError

TRIALS = 2000


def failures_allowed(level):
    return TRIALS * level + 3 * np.sqrt(TRIALS * level * (1 - level))


def test_shares_invert_the_binomial_tails():
    assert binom.cdf(7, 50, upper_share(7, 50, 0.05)) == pytest.approx(0.05)
    assert binom.sf(6, 50, lower_share(7, 50, 0.05)) == pytest.approx(0.05)
    low, high = share_interval(np.array([0, 50, 3]), np.array([50, 50, 0]), 0.1)
    assert low[0] == 0.0
    assert high[1] == 1.0
    assert (low[2], high[2]) == (0.0, 1.0)


PAIRED = [(60, 0.2), (100, 0.1), (100, 0.4), (200, 0.05), (500, 0.02), (1000, 0.1)]
"""People, and the share of them whom exactly one of two rules gets right: ten or more of them."""


@pytest.mark.parametrize(("n", "discordant"), PAIRED)
@pytest.mark.parametrize("balance", [0.5, 0.7, 0.9])
def test_paired_intervals_cover_at_their_level_and_no_more(n, discordant, balance):
    """Two exact intervals, each with half of the probability, cover .999 at 1.6 x the width."""
    first, second = discordant * balance, discordant * (1.0 - balance)
    covered = 0.0
    for pairs in range(
        int(binom.ppf(1e-6, n, discordant)), int(binom.isf(1e-6, n, discordant)) + 1
    ):
        gained = np.arange(pairs + 1)
        chance = binom.pmf(pairs, n, discordant) * binom.pmf(gained, pairs, balance)
        for each in gained[chance > 1e-7]:
            low, high = paired_interval(int(each), pairs - int(each), n, 0.05)
            covered += float(chance[each]) * (low <= first - second <= high)
    assert 0.945 <= covered <= 0.965


def test_paired_intervals_end_where_differences_do():
    assert paired_interval(7, 0, 7, 0.05)[1] == 1.0
    assert paired_interval(0, 7, 7, 0.05)[0] == -1.0
    low, high = paired_interval(0, 0, 100, 0.05)
    assert -low == pytest.approx(high)
    assert high == pytest.approx(3.8415 / 103.8415, abs=1e-5)


@pytest.mark.validity
@pytest.mark.quick_validity
@pytest.mark.parametrize("share", [0.003, 0.2, 0.97])
def test_share_intervals_cover(share):
    counts = np.random.default_rng(0).binomial(150, share, TRIALS)
    low, high = share_interval(counts, 150, 0.1)
    assert np.sum((share < low) | (share > high)) <= failures_allowed(0.1)


@pytest.mark.validity
@pytest.mark.quick_validity
def test_distribution_functions_stay_within_their_band():
    n = 100
    draws = np.sort(np.random.default_rng(1).random((TRIALS, n)), axis=1)
    steps = np.arange(n + 1) / n
    stray = np.maximum(steps[1:] - draws, draws - steps[:-1]).max(axis=1)
    broken = np.sum(stray > distribution_function_radius(n, 0.1))
    assert 0.3 * 0.1 * TRIALS < broken <= failures_allowed(0.1)


@pytest.mark.validity
@pytest.mark.quick_validity
def test_cells_stay_within_their_radius():
    shares = np.array([0.4, 0.3, 0.2, 0.1])
    counts = np.random.default_rng(2).multinomial(200, shares, TRIALS)
    stray = 0.5 * np.abs(counts / 200 - shares).sum(axis=1)
    assert np.sum(stray > cells_radius(200, 4, 0.1)) <= failures_allowed(0.1)
    assert cells_radius(200, 1, 0.1) == 0.0


@pytest.mark.validity
@pytest.mark.quick_validity
@pytest.mark.parametrize("chances", [(0.01, 0.02), (0.3, 0.1)])
def test_means_stay_within_their_interval(chances):
    """Differences of two decisions: -1, 0 or +1."""
    up, down = chances
    draws = np.random.default_rng(3).random((TRIALS, 80))
    values = (draws < up).astype(float) - (draws > 1 - down)
    broken = 0
    for row in values:
        low, high = mean_interval(row, -1.0, 1.0, 0.1)
        broken += not low <= up - down <= high
    assert broken <= failures_allowed(0.1)


def test_what_makes_no_sense_is_refused():
    for call in (
        lambda: upper_share(1, 2, 0.0),
        lambda: distribution_function_radius(5, 1.0),
        lambda: mean_interval(np.array([0.0, 2.0]), -1.0, 1.0, 0.1),
    ):
        with pytest.raises(ParameterError):
            call()
    with pytest.raises(NotEnoughRowsError, match="at least 2"):
        mean_interval(np.zeros(1), -1.0, 1.0, 0.1)
    with pytest.raises(NotEnoughRowsError):
        cells_radius(0, 3, 0.1)
