"""The baselines hold what their formulas promise."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from countermove import StrategicClassifier
from countermove.errors import DataError, ParameterError
from countermove.learning import bias_search, hardt_threshold, shifted_blind
from countermove.learning.evaluation import accuracy_after
from countermove.people import ActionSet, LinearCost, MixtureCost, QuadraticCost
from countermove.response import BestResponse, NoResponse
from countermove.scores import LinearScore


@pytest.fixture(scope="module")
def blind(crowd):
    return StrategicClassifier(response="none", standardise=False).fit(*crowd).score_


@pytest.mark.parametrize(
    "response",
    [
        BestResponse(QuadraticCost(0.5)),
        BestResponse(QuadraticCost(2.0)),
        BestResponse(QuadraticCost(1.0), ActionSet(immutable=(0, 2))),
        BestResponse(MixtureCost([1.0, 0.5, -0.5, 0.0], gamma=0.3)),
    ],
    ids=["cheap", "expensive", "half immutable", "mixture"],
)
def test_shifted_blind_restores_the_benchmark_exactly_where_all_reach_alike(blind, crowd, response):
    X, y = crowd
    shifted = shifted_blind(blind, response, X)
    benchmark = accuracy_after(blind, X, y, NoResponse()).accuracy
    assert accuracy_after(shifted, X, y, response).accuracy == benchmark
    assert accuracy_after(blind, X, y, response).accuracy < benchmark


def test_bias_search_is_never_worse_than_the_shift_on_its_rows(blind, crowd):
    X, y = crowd
    response = BestResponse(QuadraticCost(1.0), ActionSet(max_value=[1.0, 2.0, 2.0, 2.0]))
    searched = accuracy_after(bias_search(blind, response, X, y), X, y, response).accuracy
    shifted = accuracy_after(shifted_blind(blind, response, X), X, y, response).accuracy
    assert searched >= shifted


def brute_force_threshold(values: np.ndarray, y: np.ndarray) -> float:
    """Return the lowest error of accepting ``values >= threshold + gain worth of moving``."""
    cuts = np.concatenate([[-np.inf], np.sort(values) + 1e-9])
    return min(float(np.mean((values >= cut) != (y > 0))) for cut in cuts)


@pytest.mark.parametrize("seed", range(5))
def test_hardts_rule_has_the_least_error_any_threshold_has(seed):
    rng = np.random.default_rng(seed)
    X, v = rng.normal(size=(120, 3)), rng.normal(size=3)
    y = np.where(X @ v + rng.normal(size=120) > 0.3, 1.0, -1.0)
    score = hardt_threshold(LinearCost(v), X, y)
    # Whoever is within a gain of 2 of the threshold moves up to it: cost v.(x' - x) < 2.
    accepted = X @ v + float(score.bias.detach()) > -2.0
    assert np.mean(accepted != (y > 0)) == brute_force_threshold(X @ v, y)
    assert torch.equal(score.weight.detach(), torch.from_numpy(v))


def test_hardts_rule_is_exact_for_people_who_respond_to_it(crowd):
    X, y = crowd
    v = np.array([1.0, 0.5, 0.0, 0.0])
    score = hardt_threshold(LinearCost(v), X, y)
    box = ActionSet(lower=np.full(4, -50.0), upper=np.full(4, 50.0))
    measured = accuracy_after(score, X, y, BestResponse(LinearCost(v), box)).accuracy
    assert measured == pytest.approx(1.0 - brute_force_threshold(X @ v, y))


def test_hardts_rule_needs_a_price(crowd):
    with pytest.raises(ParameterError, match="every move free"):
        hardt_threshold(LinearCost(np.zeros(4)), *crowd)


def test_hardts_rule_needs_as_many_prices_as_features(crowd):
    with pytest.raises(DataError, match="prices 2 features"):
        hardt_threshold(LinearCost(np.ones(2)), *crowd)


def test_knowing_the_true_cost_beats_a_wrong_belief(crowd):
    X, y = crowd
    true, assumed = QuadraticCost(0.5), QuadraticCost(5.0)
    response = BestResponse(true)
    naive, oracle = (
        accuracy_after(
            StrategicClassifier(cost=cost, standardise=False).fit(X, y).score_, X, y, response
        )
        for cost in (assumed, true)
    )
    assert oracle.accuracy > naive.accuracy + 0.1


def test_baselines_leave_the_blind_score_alone(crowd):
    score = LinearScore(4)
    bias_search(score, BestResponse(), *crowd)
    shifted_blind(score, BestResponse(), crowd[0])
    assert float(score.bias.detach()) == 0.0
