"""People whom none of the models describes are noticed, and the verdict says so.

The level of the tests of fit is checked where the models are true:
`test_people_estimates`. Here is its power, with the noise of `people_deployments`.
"""

from __future__ import annotations

import numpy as np
import pytest

from countermove.learning.people_estimation import PeopleEstimate, estimate_people

from .people_deployments import MEASURED, PEOPLE, SLOPE, UNIT, gaps, log, people, rule


def random_movers(gap, rng):
    """Half of the people advance by whatever they like, wherever they stand."""
    return np.where(rng.random(len(gap)) < 0.5, rng.exponential(0.7, len(gap)), 0.0)


def two_prices(gap, rng):
    """One half pays eight times as much as the other."""
    reach = np.where(rng.random(len(gap)) < 0.5, np.sqrt(2 / 0.5), np.sqrt(2 / 4.0))
    return np.where((gap > 0) & (gap < reach), gap, 0.0)


def own_prices(gap, rng):
    """Everybody has a price of their own: with keys that is a model, without it is not."""
    reach = np.sqrt(2.0) * np.exp(0.5 * rng.standard_normal(len(gap)))
    return np.where((gap > 0) & (gap < reach), gap, 0.0)


def linear_price(gap, rng):
    """People climb a smoothed step at a price per unit, not per squared unit."""
    advance = np.linspace(0.0, 6.0, 1201)
    high = (advance - gap[:, None]) / 0.5
    worth = 0.5 * (np.hypot(high + 1.0, 1.0) - np.hypot(high - 1.0, 1.0)) - 0.8 * advance
    return advance[np.argmax(worth, axis=1)]


def halfway(gap, rng):
    """People go half of the way, and only the near ones."""
    return np.where((gap > 0) & (gap < np.sqrt(2.0)), 0.5 * gap, 0.0)


LEAST = {"own_prices": 0.6}
"""Power asked for, 0.9 elsewhere: an edge that is a little blurred hides between two samples."""
STRANGERS = [random_movers, two_prices, linear_price, halfway]
CASES = [(behave, keyed) for behave in STRANGERS for keyed in (True, False)] + [(own_prices, False)]


def estimated(behave, seed: int, keyed: bool) -> PeopleEstimate:
    """Return the estimate of people who behave so, with the usual noise."""
    X, rng = people(2 * PEOPLE, seed), np.random.default_rng([seed, 1])
    advance = behave(gaps(X), rng) * (
        1.0 + MEASURED.optimisation_error * rng.standard_normal(len(X))
    )
    advance[rng.random(len(X)) < MEASURED.non_movers] = 0.0
    after = (
        X + advance[:, None] * SLOPE / UNIT + MEASURED.measurement * rng.standard_normal(X.shape)
    )
    first, ids = slice(0, PEOPLE), np.arange(PEOPLE)
    if keyed:
        return estimate_people(rule(), X[first], after[first], key=(ids, ids))
    return estimate_people(rule(), X[first], after[PEOPLE:])


def noticed(found: PeopleEstimate) -> bool:
    """Tell whether the verdict warns of the model: it does not fit, or is no answer to the rule."""
    warned = "does not fit" in found.verdict or "not identifiable" in found.verdict
    assert warned == (found.misspecified or not found.identified)
    return warned


@pytest.mark.validity
@pytest.mark.slow
@pytest.mark.parametrize(("behave", "keyed"), CASES)
def test_people_whom_no_model_describes_are_noticed(behave, keyed):
    repetitions = 20 if keyed else 10
    seen = [noticed(estimated(behave, seed, keyed)) for seed in range(repetitions)]
    log.info("%s | keyed %s | %d | noticed %.2f", behave.__name__, keyed, len(seen), np.mean(seen))
    assert np.mean(seen) >= LEAST.get(behave.__name__, 0.9)


@pytest.mark.validity
@pytest.mark.slow
def test_prices_of_ones_own_are_no_strangers_with_keys():
    found = [estimated(own_prices, seed, True) for seed in range(20)]
    assert sum(noticed(one) for one in found) <= 2
    # 20 draws at 95 %: fewer than 16 has a chance of three in a thousand.
    assert sum(one.scale_interval.contains(1.0) for one in found) >= 16
    assert sum(one.log_sd_interval.contains(1.0) for one in found) >= 16
