"""Intervals of prices, of their spread and of never-movers cover as often as they say.

A cell fails if an exact binomial test rejects a coverage of at least 0.93 at 0.05 divided by the
number of cells. The figures of docs/guides/people_prices.csv, with 1,000 draws: ``pytest
tests/validity/test_people_prices.py -m long --log-cli-level=INFO``; seeds are 0 to 999.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from .people_deployments import log
from .people_prices import CELLS, MISFITS, PRICE, Cell, estimated

COVERAGE = 0.93
SIZE = 0.015
POWER = 0.95
ERROR = 0.05 / len(CELLS)
QUANTITIES = ("median price", "log-sd", "never")


def covered(cell: Cell, draws: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which intervals covered, (draws, 3), and the p-values of the fits."""
    inside, fits = [], []
    for seed in range(draws):
        found = estimated(cell, seed)
        assert found.response == "best"
        spread, price = found.log_sd_interval, found.scale_interval
        assert spread is not None
        assert price is not None
        assert 1e-6 < price.low < price.high < 1e6
        inside.append(
            (
                price.contains(PRICE),
                spread.contains(cell.sigma),
                found.non_movers_interval.contains(cell.never),
            )
        )
        fits.append(found.fit.p_value)
    return np.array(inside), np.array(fits)


def check(name: str, draws: int) -> None:
    inside, fits = covered(CELLS[name], draws)
    counts, refused = inside.sum(axis=0), int((fits < 0.01).sum())
    log.info("%s | %d | covered %s | refused %.3f", name, draws, counts / draws, refused / draws)
    for quantity, count in zip(QUANTITIES, counts.tolist(), strict=True):
        assert binom.cdf(count, draws, COVERAGE) >= ERROR, (quantity, count / draws)
    assert binom.sf(refused - 1, draws, SIZE) >= ERROR, ("size", refused / draws)


def noticed(name: str, draws: int) -> float:
    """Return how often a misfit is noticed and named."""
    named = []
    for seed in range(draws):
        found = estimated(MISFITS[name], seed)
        named.append(name in [misfit.name for misfit in found.fit.misfits])
        assert found.misspecified or not named[-1]
    log.info("%s | %d | noticed %.3f", name, draws, np.mean(named))
    return float(np.mean(named))


@pytest.mark.validity
@pytest.mark.quick_validity
@pytest.mark.parametrize("name", ["sigma 0.3, never 0.2", "overshoot 5 %", "one price"])
def test_prices_are_covered_quickly(name):
    # 12 draws at 95 %: fewer than 8 covered has a chance of two in a thousand.
    check(name, 12)


@pytest.mark.validity
@pytest.mark.quick_validity
def test_prices_under_noise_are_covered_quickly():
    check("noise 0.1", 4)


@pytest.mark.validity
@pytest.mark.quick_validity
@pytest.mark.parametrize("name", MISFITS)
def test_misfits_are_named_quickly(name):
    assert noticed(name, 2) == 1.0


@pytest.mark.validity
@pytest.mark.slow
@pytest.mark.parametrize("draws", [200, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", CELLS)
def test_prices_are_covered(name, draws):
    check(name, draws)


@pytest.mark.validity
@pytest.mark.slow
@pytest.mark.parametrize("name", MISFITS)
def test_misfits_are_noticed_and_named(name):
    assert noticed(name, 200) >= POWER
