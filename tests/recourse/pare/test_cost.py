"""What recourse costs at most, for most of the refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from countermove.errors import CalibrationError, DataError, ParameterError
from countermove.people import ActionSet, LinearCost, QuadraticCost
from countermove.recourse import certify_cost, recommend, smallest_calibration_size
from countermove.recourse.pare import cost_promise
from countermove.scores.base import values

FREE = ActionSet()


def allowed_misses(n, miss_rate, failure_probability):
    """Return the largest count that the binomial law at this rate allows."""
    return int(np.sum(binom.cdf(np.arange(n), n, miss_rate) <= failure_probability)) - 1


def test_the_price_is_an_order_statistic_of_what_the_refused_pay(score, crowd):
    X, _ = crowd
    promised = certify_cost(score, X, 0.5, QuadraticCost(2.0), actions=FREE)
    paid = recommend(score, X, threshold=0.5, actions=FREE, cost=QuadraticCost(2.0)).cost
    paid = np.sort(paid[values(score, X) < 0.0])[::-1]
    assert promised.cost == paid[allowed_misses(len(paid), 0.1, 0.05)]
    said = promised.certificate
    assert (said.name, said.value, said.n, said.level) == (
        "recourse_cost",
        promised.cost,
        len(paid),
        0.95,
    )
    assert said.words.startswith("with 95 % confidence, at least 90 % of the refused have recourse")
    # The number in words is not smaller than the bound.
    assert promised.cost <= float(said.words.split()[-1]) < 1.001 * promised.cost


def test_people_without_recourse_cost_more_than_anything(score, half, crowd):
    X, _ = crowd
    with pytest.raises(CalibrationError, match="refused people have no recourse at any price"):
        certify_cost(score, X, 0.5, actions=half)
    costs = np.where(np.arange(100) < 3, np.nan, np.arange(100.0))
    refused = np.ones(100, bool)
    kept = allowed_misses(100, 0.1, 0.05)
    assert cost_promise(costs, refused, 0.9, 0.05).cost == 99.0 - (kept - 3)
    costs[: kept + 1] = np.nan
    with pytest.raises(CalibrationError, match=f"{kept + 1} of 100 refused"):
        cost_promise(costs, refused, 0.9, 0.05)


def test_a_larger_share_costs_more_and_another_cost_prices_otherwise(score, crowd):
    X, _ = crowd
    prices = [certify_cost(score, X, share=share, actions=FREE).cost for share in (0.6, 0.8, 0.95)]
    assert prices[0] < prices[1] < prices[2]
    other = certify_cost(score, X, cost=LinearCost([1.0, 1.0]), actions=FREE)
    assert other.cost != pytest.approx(certify_cost(score, X, actions=FREE).cost)


def test_too_few_refused_are_refused_with_the_number_needed(score, crowd):
    X = crowd[0][values(score, crowd[0]) < 0.0]
    least = smallest_calibration_size(0.1, 0.05)
    assert least == 29
    certify_cost(score, X[:29], actions=FREE)
    with pytest.raises(CalibrationError, match=r"28 refused .* at least 29 are needed"):
        certify_cost(score, X[:28], actions=FREE)
    for clusters in (None, np.arange(28)):
        with pytest.raises(CalibrationError, match="0 refused people are too few"):
            certify_cost(score, X[:28], 1e-9, actions=FREE, clusters=clusters)


def test_the_refused_of_a_cluster_count_at_most_five_times(score, crowd):
    X, _ = crowd
    names = np.arange(300) // 2
    promised = certify_cost(score, X, actions=FREE, share=0.8, clusters=names).certificate
    assert promised.n == np.sum(values(score, X) < 0.0)
    assert "counting at most 5 rows of a cluster" in promised.words
    with pytest.raises(CalibrationError, match="15 refused people are too few"):
        certify_cost(score, X, actions=FREE, clusters=np.arange(300) % 3)
    with pytest.raises(CalibrationError, match="10 clusters with 50 rows of the refused"):
        certify_cost(score, X, actions=FREE, clusters=np.arange(300) % 10)


def test_bad_levels_and_known_rows_are_refused(score, crowd):
    X, _ = crowd
    with pytest.raises(ParameterError, match="share"):
        certify_cost(score, X, share=1.0, actions=FREE)
    with pytest.raises(DataError, match="trained or selected on"):
        certify_cost(score, X, actions=FREE, ids=np.arange(300), trained_on=[4])
