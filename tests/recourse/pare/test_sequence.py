"""Fixed-sequence promises: to the refused, and after response."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import beta, binom

from countermove.certificates.intervals import upper_share
from countermove.errors import CalibrationError, ParameterError
from countermove.people import ActionSet, QuadraticCost
from countermove.recourse import (
    calibrate_after_response,
    calibrate_pare,
    certify_refused,
    refused_grid,
)
from countermove.recourse.pare import reach_of, refused_certificate
from countermove.response import BestResponse, NoResponse, RobustResponse, ScalarResponse
from countermove.scores.base import values

GRID = expit(np.linspace(-4.0, 1.0, 21))


def test_nothing_passes_after_the_first_failure(score):
    """Nobody of 65 is missed, then 30 of 95, then 30 of 2,095: the last is tested no more."""
    stands = np.repeat([-3.0, -1.5, -0.5], [65, 30, 2000])
    reaches = np.repeat([0.0, -1.2, 2.0], [65, 30, 2000])
    people = np.column_stack([stands, np.zeros(len(stands))])
    promise = certify_refused(score, people, expit([-2.0, -1.0, 0.0]), reach=lambda X: reaches)
    assert promise.n.tolist() == [65, 95, 2095]
    np.testing.assert_allclose(
        promise.p_values, binom.cdf([0, 30, 30], [65, 95, 2095], 0.05), rtol=1e-12
    )
    assert promise.p_values[2] < 0.05
    assert promise.passed.tolist() == [True, False, False]


def test_nobody_counted_promises_nothing(score, half, crowd):
    nobody = certify_refused(score, crowd[0], [1e-9], actions=half)
    assert (nobody.n[0], nobody.p_values[0], nobody.passed[0]) == (0, 1.0, False)
    assert upper_share(np.array([0, 5]), np.array([0, 5]), 0.05).tolist() == [1.0, 1.0]
    assert upper_share(np.array([3]), np.array([50]), 0.05)[0] == beta.ppf(0.95, 4, 47)


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ([], "empty"),
        ([0.2, 0.1, 0.3], "rise or fall"),
        ([0.2, 0.2], "rise or fall"),
        ([0.0, 0.5], "strictly between 0 and 1"),
        ([0.5, np.nan], "strictly between 0 and 1"),
    ],
)
def test_grids_without_an_order_are_refused(score, half, crowd, grid, message):
    with pytest.raises(ParameterError, match=message):
        certify_refused(score, crowd[0], grid, actions=half)
    with pytest.raises(ParameterError, match=message):
        calibrate_after_response(score, crowd[0], BestResponse(), grid, actions=half)


def test_refused_only_counts_the_refused(score, half, crowd):
    X, _ = crowd
    promise = certify_refused(score, X, [0.4], actions=half, miss_rate=0.9)
    below = values(score, X) < logit(0.4)
    stuck = values(score, X) + 0.5 < logit(0.4)
    assert promise.n[0] == below.sum()
    assert promise.miss_share[0] == stuck.sum() / below.sum()
    claim = promise.certificate(0.4)
    assert "of those refused, at least 10 % have recourse" in claim.words
    assert claim.n == below.sum()


def test_refused_promise_that_is_not_kept_says_why(score, half, crowd):
    promise = certify_refused(score, crowd[0], GRID, actions=half)
    assert not promise.passed[0]
    claim = promise.certificate(GRID[10])
    assert claim.value is None
    assert not claim.applicable
    assert f"stopped at {GRID[0]:.4g}" in claim.reason
    with pytest.raises(CalibrationError, match="no threshold keeps the promise"):
        _ = promise.threshold
    with pytest.raises(CalibrationError, match="was not tested"):
        promise.certificate(0.123)


def test_refused_grid_starts_where_the_test_has_power(score, crowd):
    X, _ = crowd
    reach = reach_of(score, ActionSet(lower=[0.0, 0.0], upper=[2.0, 0.0]))
    start = refused_grid(score, X[:150], GRID, 0.3, reach=reach)
    assert start[-1] == GRID[-1]
    assert certify_refused(score, X[150:], start, miss_rate=0.3, reach=reach).passed[0]
    assert not certify_refused(score, X[150:], GRID, miss_rate=0.3, reach=reach).passed[0]


def test_refused_certificate_bounds_whatever_share_the_rows_show(score, half, crowd):
    X, _ = crowd
    claim = refused_certificate(score, X, GRID, GRID[15], 0.05, reach=reach_of(score, half))
    below = values(score, X) < logit(GRID[15])
    stuck = values(score, X) + 0.5 < logit(GRID[15])
    assert claim.value == pytest.approx(
        beta.ppf(1 - 0.05 / 21, stuck.sum() + 1, below.sum() - stuck.sum())
    )


def test_refused_certificate_promises_nothing_where_nobody_is_refused(score, half, crowd):
    claim = refused_certificate(score, crowd[0], GRID, 1e-6, 0.05, reach=reach_of(score, half))
    assert (claim.value, claim.words) == (None, "")
    assert "none of the 0 calibration people refused" in claim.reason


def test_when_nobody_moves_the_sequence_agrees_with_the_order_statistic(score, half, crowd):
    X, _ = crowd
    bound = calibrate_pare(score, X, actions=half).bound
    promise = calibrate_after_response(score, X, NoResponse(), GRID, actions=half)
    assert np.array_equal(promise.passed, bound >= GRID)
    assert promise.name == "recourse_miss_rate"
    assert promise.threshold == GRID[bound >= GRID].max()


def test_people_who_can_cross_are_not_missed(score, half, crowd):
    """People within √2 of the threshold cross it, though recourse reaches half a point only."""
    X, _ = crowd
    promise = calibrate_after_response(score, X, BestResponse(), GRID, actions=half)
    reach = np.sqrt(2.0 * 1.25)
    assert promise.miss_share == pytest.approx(
        [np.mean(values(score, X) + reach < cut) for cut in logit(GRID)]
    )
    still = calibrate_after_response(score, X, NoResponse(), GRID, actions=half)
    assert promise.threshold > still.threshold
    assert "once people have answered the rule" in promise.certificate(promise.threshold).words
    assert "'best'" in promise.assumptions[-1].statement


def test_recourse_is_judged_from_where_people_have_moved_to(score, half, crowd):
    """Who climbs a blurred step part of the way has less of it left."""
    X, _ = crowd
    response = ScalarResponse(QuadraticCost(1.0), temperature=1.0)
    promise = calibrate_after_response(score, X, response, GRID, actions=half)
    for place in (8, 14):
        rule = score.at_threshold(GRID[place])
        there = values(rule, response.respond(rule, X).x_new)
        assert promise.miss_share[place] == np.mean(there + 0.5 < 0.0)


def test_robust_promise_holds_under_every_member(score, half, crowd):
    X, _ = crowd
    members = [BestResponse(QuadraticCost(4.0)), NoResponse()]
    promise = calibrate_after_response(score, X, RobustResponse(members), GRID, actions=half)
    alone = [calibrate_after_response(score, X, m, GRID, actions=half) for m in members]
    assert np.array_equal(promise.passed, alone[0].passed & alone[1].passed)
    assert np.array_equal(promise.p_values, np.maximum(alone[0].p_values, alone[1].p_values))


def test_groups_after_response_share_the_level(score, half, crowd):
    X, _ = crowd
    tribe = np.where(X[:, 1] > 0.0, "elk", "hare")
    promise = calibrate_after_response(score, X, BestResponse(), GRID, actions=half, groups=tribe)
    alone = [
        calibrate_after_response(score, X[tribe == name], BestResponse(), GRID, actions=half)
        for name in ("elk", "hare")
    ]
    worst = np.maximum(alone[0].p_values, alone[1].p_values)
    assert promise.p_values == pytest.approx(np.minimum(1.0, 2 * worst))
    with pytest.raises(CalibrationError, match="at least 72"):
        calibrate_after_response(
            score, X, BestResponse(), GRID, actions=half, groups=np.arange(300) < 50
        )


def test_too_few_rows_after_response_say_how_many_are_needed(score, half, crowd):
    with pytest.raises(CalibrationError, match="at least 59"):
        calibrate_after_response(score, crowd[0][:58], BestResponse(), GRID, actions=half)


def test_bound_at_one_threshold_needs_a_grid_of_one(score, half, crowd):
    X, _ = crowd
    alone = calibrate_after_response(score, X, BestResponse(), [GRID[18]], actions=half)
    claim = alone.bound_certificate()
    misses = round(float(alone.miss_share[0]) * 300)
    assert claim.value == pytest.approx(beta.ppf(0.95, misses + 1, 300 - misses))
    with pytest.raises(CalibrationError, match="grid of one, got 21"):
        calibrate_after_response(score, X, BestResponse(), GRID, actions=half).bound_certificate()
