"""Estimates of the decision summary: right values, and intervals that cover."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from countermove.reporting.estimates import (
    auc_difference,
    auc_estimate,
    mean_estimate,
    paired_difference,
    ratio_estimate,
    share_estimate,
)
from countermove.response.base import GAIN


def test_a_share_of_nobody_has_no_value():
    assert share_estimate(np.array([]), 0.05) == {
        "value": None, "low": None, "high": None, "n": 0,
    }  # fmt: skip


def test_shares_of_chances_are_bounded_means():
    found = share_estimate(np.full(400, 0.3), 0.05)
    assert found["value"] == pytest.approx(0.3)
    assert 0.0 <= found["low"] < 0.3 < found["high"] <= 1.0


def test_auc_counts_ties_half_as_scikit_learn_does(rng):
    scores, favourable = np.round(rng.normal(size=300), 1), rng.random(300) < 0.6
    found = auc_estimate(scores, favourable, 0.05)
    assert found["value"] == pytest.approx(roc_auc_score(favourable, scores), abs=1e-12)
    assert found["low"] < found["value"] < found["high"]


def test_auc_of_people_without_a_place_is_unknown():
    assert auc_estimate(np.full(9, np.nan), np.arange(9) % 2 == 0, 0.05)["value"] is None


def test_equal_rules_differ_by_nothing(rng):
    scores, favourable = rng.normal(size=80), rng.random(80) < 0.5
    assert auc_difference(scores, scores, favourable, 0.05)["high"] == 0.0
    right = (scores > 0).astype(float)
    same = paired_difference(right, right, 0.05)
    assert same["value"] == 0.0
    assert same["low"] < 0.0 < same["high"]


def test_a_ratio_to_nobody_is_unknown():
    found = ratio_estimate(np.array([1.0, 0.0]), np.zeros(5), 0.05)
    assert found["value"] is None


@pytest.fixture
def rng():
    """One generator a test."""
    return np.random.default_rng(0)


@pytest.mark.parametrize("kind", ["auc", "auc gain", "ratio", "mean", "paired"])
def test_intervals_cover(kind, rng):
    """At 90 % at least 86 % of 400 intervals hold: fewer has a chance below 1 in 100."""
    held = sum(_holds(kind, rng) for _ in range(400))
    assert held >= 344


def _holds(kind, rng):
    favourable = rng.random(250) < 0.6
    if kind in ("auc", "auc gain"):
        first = rng.normal(size=250) + favourable
        if kind == "auc":
            found, truth = auc_estimate(first, favourable, 0.1), 0.7602499  # Φ(1/√2)
        else:
            second = first + rng.normal(size=250)
            # Φ(1/√2) - Φ(1/√4)
            found, truth = auc_difference(first, second, favourable, 0.1), 0.7602499 - 0.6914625
    elif kind == "ratio":
        hit, base = (rng.random(150) < 0.5).astype(float), (rng.random(200) < 0.7).astype(float)
        found, truth = ratio_estimate(hit, base, 0.1), 0.5 / 0.7
    elif kind == "mean":
        found, truth = mean_estimate(rng.beta(1.0, 3.0, size=250), 1.0, 0.1), 0.25
    else:
        own = rng.random(250) < 0.8
        other = own & (rng.random(250) < 0.9)
        found, truth = paired_difference(own.astype(float), other.astype(float), 0.1), 0.08
    return found["low"] <= truth <= found["high"]


@pytest.mark.parametrize("n", [15, 30, 100])
def test_a_mean_price_of_few_people_is_covered(n, rng):
    """Nine in ten pay nothing, as in a small group: by the normal distribution .67 to .90."""
    held = sum(_covers_mean_price(n, rng) for _ in range(200))
    assert held >= 184


@pytest.mark.validity
@pytest.mark.parametrize("n", [15, 30, 60, 120, 400, 1600])
@pytest.mark.parametrize("paying", [0.03, 0.1, 0.5])
def test_mean_prices_are_covered_at_every_size(n, paying, rng):
    """Of 2,000 at 95 % at least 1,870: fewer has a chance below 1 in 1,000."""
    held = sum(_covers_mean_price(n, rng, paying) for _ in range(2000))
    assert held >= 1870


def _covers_mean_price(n, rng, paying=0.1):
    prices = np.where(rng.random(n) < paying, rng.uniform(0.0, GAIN, size=n), 0.0)
    found = mean_estimate(prices, GAIN, 0.05)
    return found["low"] <= paying * GAIN / 2.0 <= found["high"]


def test_a_mean_price_closes_in_on_the_truth(rng):
    """On 400 people four tenths wider at most than a normal interval, which covers .93 here."""
    prices = np.where(rng.random(400) < 0.1, rng.uniform(0.0, GAIN, size=400), 0.0)
    found = mean_estimate(prices, GAIN, 0.05)
    normal = 2.0 * 1.96 * prices.std(ddof=1) / np.sqrt(len(prices))
    assert found["high"] - found["low"] < 1.4 * normal


def test_an_auc_of_four_people_is_no_interval(rng):
    favourable = np.arange(100) >= 4
    found = auc_estimate(rng.normal(size=100) + favourable, favourable, 0.05)
    assert found["value"] is not None
    assert (found["low"], found["high"]) == (None, None)
    other = rng.normal(size=100)
    assert auc_difference(favourable + other, other, favourable, 0.05)["low"] is None


def test_whoever_scores_all_alike_ranks_nobody():
    found = auc_estimate(np.zeros(90), np.arange(90) < 40, 0.05)
    assert (found["low"], found["value"], found["high"]) == (0.5, 0.5, 0.5)


CLASSES = [(20, 100), (100, 20), (20, 20), (50, 50), (30, 400)]
NORMALS = [(0.0, 1.0), (1.0, 1.0), (1.0, 0.5), (1.0, 2.0), (2.0, 1.0), (2.0, 0.5), (2.0, 2.0)]


@pytest.mark.parametrize("classes", CLASSES[:2])
@pytest.mark.parametrize(("shift", "spread"), [(1.0, 1.0), (2.0, 0.5), (2.0, 2.0)])
def test_an_auc_of_few_people_is_covered(classes, shift, spread, rng):
    """Twenty people of one outcome: DeLong's plain interval covers down to .72."""
    assert _auc_covered(classes, shift, spread, 200, rng) >= 180


@pytest.mark.validity
@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize(("shift", "spread"), NORMALS)
def test_aucs_are_covered(classes, shift, spread, rng):
    """Of 1,000 at 95 % at least 930; of a gain over noise too."""
    assert _auc_covered(classes, shift, spread, 1000, rng) >= 930


def _auc_covered(classes, shift, spread, draws, rng):
    favourable = np.arange(sum(classes)) >= classes[0]
    truth, held = norm.cdf(shift / np.hypot(1.0, spread)), 0
    for _ in range(draws):
        scores = rng.normal(size=len(favourable))
        scores = np.where(favourable, scores + shift, spread * scores)
        found = auc_estimate(scores, favourable, 0.05)
        held += found["low"] <= truth <= found["high"]
    return held


@pytest.mark.validity
@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("shift", [0.0, 0.5, 1.0, 2.0])
def test_differences_of_aucs_are_covered(classes, shift, rng):
    """Of 1,000 at 95 % at least 930."""
    favourable = np.arange(sum(classes)) >= classes[0]
    truth, held = norm.cdf(shift / np.sqrt(2.0)) - norm.cdf(shift / np.sqrt(6.0)), 0
    for _ in range(1000):
        first = rng.normal(size=len(favourable)) + shift * favourable
        second = first + np.sqrt(2.0) * rng.normal(size=len(favourable))
        found = auc_difference(first, second, favourable, 0.05)
        held += found["low"] <= truth <= found["high"]
    assert held >= 930
