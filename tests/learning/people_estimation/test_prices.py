"""People as they are: prices that differ, overshoot, margins, rounding, noise and misfits."""

from __future__ import annotations

import json

import numpy as np
import pytest
import yaml

from countermove.data.standardise import Standardiser
from countermove.errors import CalibrationError, DataError, ParameterError
from countermove.learning.people_estimation import estimate_people, simulate_deployment
from countermove.people import ActionSet, QuadraticCost
from countermove.response import BestResponse, Population
from countermove.scores import MLPScore

from .deployments import SLOPE, UNIT, best, deployed, estimated, rule

PRICE, SIGMA, NEVER, N = 2.0, 0.5, 0.2, 3000


def people(n=N, seed=0):
    """Return people before, their gaps, and who crosses at which total distance."""
    rng = np.random.default_rng([seed, 4])
    X = rng.normal(size=(n, len(SLOPE)))
    gap = -(X @ SLOPE - 0.8) / UNIT
    price = PRICE * np.exp(SIGMA * rng.standard_normal(n))
    aware = rng.random(n) >= NEVER

    def crosses(whole):
        return (gap > 0.0) & aware & (price * whole**2 < 2.0)

    return X, gap, crosses, rng


def found_for(X, after, **settings):
    ids = np.arange(len(X))
    return estimate_people(rule(), X, after, key=(ids, ids), **settings)


def moved(X, advance):
    return X + advance[:, None] * SLOPE / UNIT


def covers(found):
    return (
        found.response == "best"
        and found.scale_interval.contains(PRICE)
        and found.log_sd_interval.contains(SIGMA)
        and found.non_movers_interval.contains(NEVER)
        and not found.misspecified
    )


@pytest.mark.parametrize(
    ("over", "kind"),
    [
        (lambda gap, rng: 0.0 * gap, "none"),
        (lambda gap, rng: 1e-4 * gap, "proportional"),
        (lambda gap, rng: 0.05 * gap, "proportional"),
        (lambda gap, rng: 0.05 * gap * rng.exponential(size=len(gap)), "proportional"),
        (lambda gap, rng: 0.05 + 0.0 * gap, "absolute"),
        (lambda gap, rng: np.ceil(gap / 0.1) * 0.1 - gap, "absolute"),
    ],
    ids=["none", "0.01 %", "5 %", "5 % on average", "margin", "rounded up"],
)
def test_overshoot_is_paid_for_and_named(over, kind):
    X, gap, crosses, rng = people()
    whole = gap + over(gap, rng)
    found = found_for(X, moved(X, np.where(crosses(whole), whole, 0.0)))
    assert covers(found)
    assert found.overshoot.kind == kind


@pytest.mark.parametrize("rounding", [np.round, np.floor, np.ceil], ids=["nearest", "down", "up"])
@pytest.mark.parametrize("before", [True, False], ids=["both", "after"])
def test_records_may_be_rounded_in_either_direction(rounding, before):
    X, gap, crosses, _ = people()
    step = 0.01
    if before:
        X = np.round(X / step) * step
        gap = -(X @ SLOPE - 0.8) / UNIT
    after = rounding(moved(X, np.where(crosses(gap), gap, 0.0)) / step + 1e-9) * step
    if before:
        after = np.where(crosses(gap)[:, None], after, X)
    found = found_for(X, after)
    assert covers(found)


def test_records_in_whole_numbers():
    """Income in whole hundreds: people round up what they need."""
    X, gap, crosses, _ = people()
    units = Standardiser(np.full(5, 3000.0), np.full(5, 1500.0), tuple("abcde"))
    before = np.round(units.inverse(X) / 100.0) * 100.0
    X = units.transform(before)
    gap = -(X @ SLOPE - 0.8) / UNIT
    needed = units.inverse(moved(X, np.maximum(gap, 0.0)))
    up = np.where(SLOPE > 0, np.ceil(needed / 100.0), np.floor(needed / 100.0)) * 100.0
    whole = gap + (units.transform(up) - moved(X, np.maximum(gap, 0.0))) @ SLOPE / UNIT
    after = np.where(crosses(whole)[:, None], up, before)
    ids = np.arange(len(X))
    found = estimate_people(rule(), before, after, key=(ids, ids), units=units, cost="quadratic")
    assert covers(found)
    assert found.overshoot.kind == "absolute"


def test_symmetric_noise_and_regression_to_the_mean():
    X, gap, crosses, rng = people()
    advance = np.where(crosses(gap), gap, 0.0) + 0.1 * (gap - gap.mean())
    found = found_for(X, moved(X, advance) + 0.1 * rng.standard_normal(X.shape))
    assert covers(found)
    assert found.drift[1] == pytest.approx(0.1, abs=0.02)
    assert found.noise.measurement == pytest.approx(0.1, abs=0.01)


def test_regression_to_the_mean_alone_is_no_response():
    X, gap, _, rng = people()
    found = found_for(X, moved(X, 0.2 * gap) + 0.1 * rng.standard_normal(X.shape))
    assert found.response == "drift"
    assert not found.identified
    assert "regression to the mean" in found.verdict


def test_value_bounds_go_through_the_cost_of_crossing():
    actions = ActionSet(min_value=np.full(5, -1.5), max_value=np.full(5, 1.5), immutable=[3])
    X = np.clip(np.random.default_rng(0).normal(size=(N, 5)), -1.5, 1.5)
    response = Population(BestResponse(QuadraticCost(PRICE), actions), never=NEVER, log_sd=SIGMA)
    after = simulate_deployment(rule(), X, response)
    found = found_for(X, after, actions=actions)
    assert covers(found)


def test_verdict_is_in_plain_words():
    X, gap, crosses, _ = people()
    found = found_for(X, moved(X, np.where(crosses(gap), gap, 0.0)))
    ends = found.scale_interval
    said = f"a move of one standard deviation costs between {ends.low:.3g} and {ends.high:.3g}"
    assert f"About {found.non_movers:.0%} never move" in found.verdict
    assert said in found.verdict
    assert "Prices differ" in found.verdict


def test_population_and_its_confidence_set():
    X, gap, crosses, _ = people()
    found = found_for(X, moved(X, np.where(crosses(gap), gap, 0.0)))
    estimate = found.population()
    assert isinstance(estimate, Population)
    assert estimate.log_sd == found.log_sd
    assert estimate.never == found.non_movers
    assert float(estimate.cost.scale) == pytest.approx(found.scale)
    region = found.confidence_set(0.9)
    assert region.level == 0.9
    assert len(region.populations) == 8
    for name, value in (("never", NEVER), ("log_sd", SIGMA)):
        ends = [getattr(one, name) for one in region.populations]
        assert min(ends) < value < max(ends)
    prices = [float(one.cost.scale) for one in region.populations]
    assert min(prices) < PRICE < max(prices)
    wider = [float(one.cost.scale) for one in found.confidence_set(0.99).populations]
    assert min(wider) < min(prices) < max(prices) < max(wider)
    assert estimate.confidence is None
    assert found.population(confidence=0.9).confidence.words == region.words
    said = yaml.safe_load(found.to_yaml(confidence=0.9))["run"]["params"]["serm"]
    held = said["confidence_set"]
    assert held["level"] == 0.9
    for name in ("price", "never", "log_sd"):
        assert held[name] == pytest.approx(getattr(region, name), rel=1e-5)


def strange(kind, seed=0):
    """Return people before, after and a label, for people whom one log-normal does not describe."""
    X, gap, _, rng = people(5000, seed)
    label = rng.random(len(X)) < 0.5
    price = PRICE * np.exp(0.3 * rng.standard_normal(len(X)))
    aware = np.full(len(X), 0.8)
    if kind == "two prices":
        price *= np.where(rng.random(len(X)) < 0.5, np.sqrt(8.0), 1 / np.sqrt(8.0))
    if kind == "price by group":
        price *= np.where(label, 1.5, 1 / 1.5)
    if kind == "awareness by gap":
        aware = 1 / (1 + np.exp(1 - 2.5 * gap))
    crosses = (gap > 0) & (rng.random(len(X)) < aware) & (price * gap**2 < 2.0)
    advance = np.where(crosses, gap, 0.0)
    if kind == "stop short":
        advance *= np.where(rng.random(len(X)) < 0.3, rng.uniform(0.3, 0.95, len(X)), 1.0)
    return X, moved(X, advance), label


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("two prices", "two prices rather than one"),
        ("price by group", "the price depends on group 0 = True"),
        ("awareness by gap", "depends on the gap"),
        ("stop short", "of the movers stop short"),
    ],
)
def test_an_estimate_that_does_not_fit_refuses_and_says_why(kind, words):
    X, after, label = strange(kind)
    found = found_for(X, after, groups=label)
    assert found.misspecified
    assert kind in [misfit.name for misfit in found.fit.misfits]
    assert words in found.verdict
    for use in (found.population, found.to_yaml, found.uncertainty_set, found.confidence_set):
        with pytest.raises(CalibrationError, match=words):
            use()
        assert use(force=True)
    refused = yaml.safe_load(found.settings("tiny"))["run"]["params"]["serm"]
    assert refused == {"response": {"kind": "does_not_fit"}}
    json.dumps(found.to_json(), allow_nan=False)


def test_groups_of_another_length_are_refused():
    X, gap, crosses, _ = people(200)
    with pytest.raises(DataError, match="10 labels of groups for 200 people"):
        found_for(X, moved(X, np.where(crosses(gap), gap, 0.0)), groups=np.zeros(10))


@pytest.mark.parametrize("unknown", [None, "credit", MLPScore(5)], ids=["none", "name", "network"])
def test_an_unknown_rule_is_refused(unknown):
    X = np.zeros((50, 5))
    with pytest.raises(ParameterError, match="rule"):
        estimate_people(unknown, X, X, key=(np.arange(50), np.arange(50)))


@pytest.mark.parametrize("price", [1e-6, 1e6])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_prices_out_of_sight_are_not_identified(price, noise):
    """Everybody crosses, or nobody: never an interval over many orders of magnitude."""
    _, X, after = deployed(best(price), n=400)
    after = after + noise * np.random.default_rng(1).standard_normal(X.shape)
    found = found_for(X, after)
    assert not found.identified
    with pytest.raises(CalibrationError, match="not identifiable"):
        found.population()


@pytest.mark.parametrize("bias", [-30.0, 30.0], ids=["all refused", "all approved"])
def test_one_class_is_no_exception(bias):
    found = estimated(best(), n=400, bias=bias)
    assert not found.identified
    assert found.reasons


def test_drift_along_the_score_is_no_exception():
    """Advances that grow with the score, which used to overflow."""
    X, gap, crosses, _ = people(500)
    for slope in (-5.0, -0.5, 0.5, 5.0):
        found = found_for(X, moved(X, np.where(crosses(gap), gap, 0.0) + slope * gap))
        ends = found.scale_interval
        assert ends is None or not found.identified or 1e-3 < ends.low < ends.high < 1e3
