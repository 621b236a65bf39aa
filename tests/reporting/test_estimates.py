"""Estimates of the decision summary: right values, and intervals that cover."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from countermove.reporting._estimates import (
    auc_difference,
    auc_estimate,
    mean_estimate,
    paired_difference,
    ratio_estimate,
    share_estimate,
)


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
        found, truth = mean_estimate(rng.exponential(size=250), 0.1), 1.0
    else:
        own = rng.random(250) < 0.8
        other = own & (rng.random(250) < 0.9)
        found, truth = paired_difference(own.astype(float), other.astype(float), 0.1), 0.08
    return found["low"] <= truth <= found["high"]
