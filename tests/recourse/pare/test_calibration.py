"""calibrate_pare on models: the exact order statistic, never rounded up, on rows of its own."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.special import expit, logit
from scipy.stats import binom

from countermove import StrategicClassifier, audit, recommend
from countermove.errors import CalibrationError, DataError, ParameterError, UnknownNameError
from countermove.people import ActionSet
from countermove.recourse import (
    calibrate_after_response,
    calibrate_pare,
    calibrate_pare_by_group,
    certify_cost,
    certify_refused,
)
from countermove.recourse.pare import reach_of, threshold_bound
from countermove.recourse.pare.inputs import at_least
from countermove.response import NoResponse
from countermove.scores import LinearScore
from countermove.scores.base import values


def test_bound_is_the_order_statistic_of_the_best_scores(score, half, crowd):
    X, _ = crowd
    found = calibrate_pare(score, X, actions=half)
    # The largest count of misses that a true rate of 5 % shows in at most 5 % of samples.
    k = int(np.sum(binom.cdf(np.arange(300), 300, 0.05) <= 0.05)) - 1
    exact = np.sort(values(score, X) + 0.5)[k]
    assert found.threshold == found.bound
    assert logit(found.bound) == pytest.approx(exact, abs=1e-9)
    assert logit(found.bound) <= exact
    assert calibrate_pare(score, X, actions=half, wanted=0.01).threshold == 0.01


def test_certificate_says_that_it_counts_the_approved(score, half, crowd):
    claim = calibrate_pare(score, crowd[0], actions=half, miss_rate=0.1).certificate
    assert claim.words == (
        "with 95 % confidence, at least 90 % of people like these are approved or have recourse "
        "at any price"
    )
    assert (claim.value, claim.level, claim.n) == (0.1, 0.95, 300)
    assert claim.to_json()["words"] == claim.words


@pytest.mark.parametrize("seed", range(20))
def test_people_exactly_on_the_bound_still_pass_in_floating_point(seed):
    """Where many stand on the same spot, one rounding up would lose all of them."""
    rng = np.random.default_rng(seed)
    score = LinearScore(5)
    with torch.no_grad():
        score.weight.copy_(torch.from_numpy(10.0 ** rng.uniform(-3, 1, 5) * rng.normal(size=5)))
        score.bias.fill_(rng.normal())
    spots = rng.normal(size=(4, 5))
    X = spots[rng.integers(0, 4, size=200)]
    actions = ActionSet(lower=[-0.3] * 5, upper=[0.3] * 5)
    found = calibrate_pare(score, X, actions=actions)
    moved = X + 0.3 * np.sign(score.weight.detach().numpy())
    rule = score.at_threshold(found.threshold)
    # Fewer than one in four are missed on purpose, so every spot must pass.
    for rows in (moved, np.asfortranarray(moved)[::-1]):
        assert (rule(torch.from_numpy(rows.copy())).detach().numpy() >= 0.0).all()


@pytest.mark.parametrize("slope", [1.0, 3.0])
def test_bounds_close_to_certainty_are_not_rounded_up_on_the_scores_scale(slope):
    """Neighbouring probabilities are a third of a log-odd apart there."""
    for top in np.linspace(8.0, 35.0, 200) / slope:
        best = np.concatenate([[top], np.full(58, top + 1.0)])
        assert logit(threshold_bound(best, 0.05, 0.05, slope)) / slope <= top


def test_unlimited_reach_keeps_the_threshold_below_one(score, crowd):
    assert 0.99 < calibrate_pare(score, crowd[0], actions=ActionSet()).threshold < 1.0


def test_promises_are_about_the_actions_that_advice_takes(half, crowd):
    """A classifier holds what it was made with as ``actions``: promise, price, audit, advice."""
    X, y = crowd
    rule = StrategicClassifier(actions=half, response="none", random_state=0).fit(X, y)
    held, asked = ({}, {"actions": half})
    for promise in (
        calibrate_pare,
        partial(calibrate_pare_by_group, groups=X[:, 0] > 1.0, miss_rate=0.1),
        partial(certify_refused, grid=[0.3, 0.5, 0.7], miss_rate=0.5),
        partial(calibrate_after_response, response=NoResponse(), grid=[0.1, 0.3, 0.5]),
        partial(certify_cost, threshold=0.55, share=0.2),
    ):
        assert repr(promise(rule, X, **held)) == repr(promise(rule, X, **asked))
    advice = recommend(rule, X)
    far = replace(advice, action=2.0 * advice.action)
    outside = audit(rule, X, y, far).recourse.outside
    assert outside == audit(rule, X, y, far, actions=half).recourse.outside
    assert len(outside) > 10


def test_a_promise_about_unknown_actions_is_refused_as_advice_is(score, crowd):
    X, y = crowd
    unsaid = StrategicClassifier(response="none").fit(X, y)
    for model in (score, unsaid):
        for promise in (
            calibrate_pare,
            partial(calibrate_pare_by_group, groups=y),
            partial(certify_refused, grid=[0.5]),
            partial(calibrate_after_response, response=NoResponse(), grid=[0.5]),
            certify_cost,
            recommend,
        ):
            with pytest.raises(ParameterError, match="what may people change"):
                promise(model, X)


def test_a_score_of_no_hope_is_refused_not_rounded_up():
    with pytest.raises(CalibrationError, match="no threshold above 0"):
        threshold_bound(np.full(100, -1e4), 0.05, 0.05)


def test_classifiers_bring_their_score_actions_and_probability_scale(score, half, crowd):
    model = SimpleNamespace(score_=score, actions_=half, probability_slope_=2.0)
    found, plain = calibrate_pare(model, crowd[0]), calibrate_pare(score, crowd[0], actions=half)
    assert logit(found.bound) == pytest.approx(2.0 * logit(plain.bound))
    with pytest.raises(ParameterError, match="holds no score"):
        calibrate_pare(SimpleNamespace(), crowd[0])


def test_another_search_takes_the_place_of_the_method(score, crowd):
    found = calibrate_pare(score, crowd[0], reach=lambda X: np.full(len(X), 0.3))
    assert found.bound == pytest.approx(expit(0.3))
    with pytest.raises(DataError, match="rows 0, 1"):
        calibrate_pare(score, crowd[0], reach=lambda X: np.full(len(X), np.nan))


def test_rows_are_told_apart_by_id(score, half, crowd):
    X, _ = crowd
    ids = [f"r{i}" for i in range(300)]
    calibrate_pare(score, X, actions=half, ids=ids, trained_on=["t0", "t1"])
    with pytest.raises(DataError, match=r"2 of 300.*r5, r9") as caught:
        calibrate_pare(score, X, actions=half, ids=ids, trained_on=["r9", "r5", "t1"])
    assert caught.value.rows == (5, 9)
    with pytest.raises(DataError, match="twice: ids r0"):
        calibrate_pare(score, X, actions=half, ids=[*ids[:-1], "r0"])
    with pytest.raises(DataError, match="as many ids, got 299"):
        calibrate_pare(score, X, actions=half, ids=ids[:-1])
    with pytest.raises(ParameterError, match="pass ids"):
        calibrate_pare(score, X, actions=half, trained_on=["r9"])


@pytest.mark.parametrize("name", ["miss_rate", "failure_probability", "wanted"])
@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, float("nan")])
def test_levels_outside_the_open_interval_are_refused(score, crowd, name, value):
    with pytest.raises(ParameterError, match=name):
        calibrate_pare(score, crowd[0], actions=ActionSet(), **{name: value})


def test_bad_people_and_methods_are_named(score, half, crowd):
    X, _ = crowd
    with pytest.raises(CalibrationError, match="at least 59"):
        calibrate_pare(score, X[:58], actions=half)
    with pytest.raises(DataError, match="got \\(300, 1\\)"):
        calibrate_pare(score, X[:, :1], actions=half)
    broken = np.where(np.arange(300)[:, None] == 4, np.nan, X)
    with pytest.raises(DataError, match="rows 4 hold NaN"):
        calibrate_pare(score, broken, actions=half)
    with pytest.raises(UnknownNameError, match="did you mean 'linear_program'"):
        calibrate_pare(score, X, method="linear_programme", actions=half)


def test_staying_is_always_possible(score):
    """A person beyond a bound would have to come back to move; where they stand still counts."""
    actions = ActionSet(max_value=[1.0, 5.0], upper=[9.0, 0.0], lower=[-9.0, 0.0])
    assert reach_of(score, actions)(np.array([[3.0, 0.0]])) == pytest.approx([3.0])


def test_shares_in_words_are_never_rounded_up():
    assert at_least(1 - 0.05) == "95 %"
    assert at_least(0.63719) == "63.71 %"
    assert at_least(0.999999) == "99.99 %"
