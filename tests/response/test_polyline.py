"""Solutions read off one person's polyline, against search over all gains."""

import numpy as np
import pytest

from countermove.response._polyline import fill_costs, gain_of_budget, peak, price_of_gain
from countermove.response.step import step


def random_line(seed):
    """Return knots of a convex least cost with level and upright pieces, and the rate beyond."""
    rng = np.random.default_rng(seed)
    gains = np.concatenate([[0.0], np.cumsum(rng.uniform(0.1, 1.0, 5))])
    prices = np.concatenate([[0.0], np.cumsum(rng.uniform(0.0, 0.4, 5))])
    gains[3] = gains[2]
    prices[5] = prices[4]
    costs = np.empty(6)
    fill_costs(gains, prices, costs, 6, 0.3)
    return gains, prices, costs, float(rng.uniform(0.2, 2.0))


def least_cost(line, gain):
    gains, prices, costs, rate = line
    return np.array([price_of_gain(gains, prices, costs, 6, rate, g)[1] for g in gain])


@pytest.mark.parametrize("seed", range(20))
def test_no_gain_is_worth_more_than_the_peak(seed):
    line = random_line(seed)
    gains, prices, costs, rate = line
    grid = np.linspace(0.0, gains[-1] + 8.0, 20_001)
    cost = least_cost(line, grid)
    for s in (-3.0, -1.0, -0.2, 0.5):
        for sharpness in (0.5, 2.0, 8.0):
            gain, price, value, done = peak(gains, prices, costs, 6, rate, s, sharpness, False)
            worth = np.array([step(sharpness * (s + g)) for g in grid]) - cost
            assert done
            assert value >= worth.max() - 1e-12
            assert value == pytest.approx(
                step(sharpness * (s + gain)) - least_cost(line, [gain])[0], abs=1e-12
            )
            assert price >= 0.0


@pytest.mark.parametrize("seed", range(20))
def test_what_a_gain_costs_buys_that_gain(seed):
    line = random_line(seed)
    gains, prices, costs, rate = line
    for gain in np.linspace(0.05, gains[-1] + 2.0, 25):
        _, spent = price_of_gain(gains, prices, costs, 6, rate, gain)
        bought, _ = gain_of_budget(gains, prices, costs, 6, rate, spent)
        assert bought == pytest.approx(gain, abs=1e-9)


def test_what_no_price_can_buy_costs_infinity():
    gains, prices, costs, _ = random_line(0)
    assert price_of_gain(gains, prices, costs, 6, 0.0, gains[-1] + 0.1) == (np.inf, np.inf)
    most, _ = gain_of_budget(gains, prices, costs, 6, 0.0, 1e9)
    assert most == gains[-1]
