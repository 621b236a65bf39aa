"""Two promises to people who differ: they can, and they will, reach approval."""

import numpy as np
import pytest
from scipy.special import logit

from countermove.certificates.betting import betting_p_values, upper_means
from countermove.errors import ParameterError, UnknownNameError
from countermove.people import QuadraticCost
from countermove.recourse import calibrate_after_response
from countermove.recourse.pare import measure_after_response
from countermove.recourse.pare.after_response import (
    approval_certificate,
    miss_shares,
    missed_after_response,
    refusal_chances,
)
from countermove.recourse.pare.inputs import reach_of
from countermove.response import BestResponse, NoResponse, Population, RobustResponse
from countermove.response.response_set import ConfidenceSet
from countermove.scores.base import values

GRID = np.linspace(0.02, 0.6, 15)
BEST = BestResponse(QuadraticCost(0.5))
DIFFERENT = Population(BEST, never=0.03, log_sd=0.5)


def test_who_will_reach_approval_is_a_matter_of_chance(score, half, crowd):
    X, _ = crowd
    will = calibrate_after_response(score, X, DIFFERENT, GRID, actions=half, promise="will")
    for place in (2, 9):
        chance = DIFFERENT.chance_after(score.at_threshold(GRID[place]), X)
        assert will.miss_share[place] == pytest.approx(np.mean(1.0 - chance))
        assert will.miss_bound[place] > will.miss_share[place]
    said = will.certificate(will.threshold)
    assert said.name == "refusal_rate_after_response"
    assert "at least 95 % of them are approved" in said.words
    assert "betting" in said.reference
    can = calibrate_after_response(score, X, DIFFERENT, GRID, actions=half)
    assert can.threshold >= will.threshold


def test_who_can_reach_approval_is_judged_with_one_type_per_row(score, half, crowd):
    X, _ = crowd
    can = calibrate_after_response(score, X, DIFFERENT, GRID, actions=half)
    np.testing.assert_allclose(can.miss_share * len(X), np.round(can.miss_share * len(X)))
    expected = []
    for p in GRID:
        chance = DIFFERENT.chance_after(score.at_threshold(p), X)
        expected.append(np.mean((1.0 - chance) * (values(score, X) + 0.5 < logit(p))))
    assert can.miss_share == pytest.approx(expected, abs=4.0 * 0.5 / np.sqrt(len(X)))
    # One type per row, the same at every threshold: a higher one misses nobody fewer.
    missed = missed_after_response(score, X, DIFFERENT, GRID, reach=reach_of(score, half))
    assert (np.diff(missed.astype(int), axis=0) >= 0).all()


def test_plain_people_are_tested_exactly(score, half, crowd):
    """Without a choice of types the chances are 0 or 1: binomial tails, no bets."""
    X, _ = crowd
    will = calibrate_after_response(score, X, BEST, GRID, actions=half, promise="will")
    refused = [np.mean(~BEST.decisions_after(score.at_threshold(p), X)) for p in GRID]
    assert will.miss_share == pytest.approx(refused)
    assert "binomial" in will.certificate(GRID[0]).reference
    still = calibrate_after_response(score, X, NoResponse(), GRID, actions=half, promise="will")
    assert still.name == "refusal_rate_after_response"


def test_the_confidence_set_takes_its_part_of_the_level(score, half, crowd):
    X, _ = crowd
    corners = RobustResponse(
        [Population(BEST.with_price(f), never=0.01, log_sd=0.4) for f in (0.8, 1.3)]
    )
    whole = calibrate_after_response(score, X, corners, GRID, actions=half, promise="will")
    shared = calibrate_after_response(
        score, X, corners, GRID, actions=half, promise="will", population_failure=0.04
    )
    np.testing.assert_array_equal(whole.p_values, shared.p_values)
    assert np.array_equal(shared.passed, np.logical_and.accumulate(shared.p_values <= 0.01))
    assert (shared.miss_bound > whole.miss_bound).all()
    claim = shared.certificate(shared.threshold)
    assert claim.level == pytest.approx(0.95)
    assert any("0.04" in one.statement for one in claim.assumptions)
    with pytest.raises(ParameterError, match="part of failure_probability"):
        calibrate_after_response(score, X, corners, GRID, actions=half, population_failure=0.05)


def estimated(level: float = 0.97) -> Population:
    """Return people who bring what else they may be."""
    people = Population(BEST, never=0.02, log_sd=0.4)
    people.confidence = ConfidenceSet(BEST, level, (0.8, 1.3), (0.01, 0.03), (0.2, 0.6))
    return people


@pytest.mark.parametrize("promise", ["can", "will"])
def test_estimated_people_bring_their_confidence_set(score, half, crowd, promise):
    X, _ = crowd
    ask = {"actions": half, "promise": promise}
    found = calibrate_after_response(score, X, estimated(), GRID, **ask)
    corners = RobustResponse(estimated().confidence.populations)
    assert len(corners.members) == 8
    by_hand = calibrate_after_response(score, X, corners, GRID, population_failure=0.03, **ask)
    np.testing.assert_allclose(found.p_values, by_hand.p_values)
    (said,) = [one.statement for one in found.assumptions if "confidence set" in one.statement]
    assert "0.8 to 1.3 times" in said
    assert "1.0% to 3.0% who never move" in said
    assert "asymptotically (as the observed people grow in number) 0.03; that is part" in said
    by_name = [one.statement for one in by_hand.assumptions if "possible between" in one.statement]
    assert "at most 0.03; that is part of the level" in by_name[0]
    assert found.certificate(GRID[0]).level == pytest.approx(0.95)


def test_whoever_lives_between_the_corners_is_covered(score, crowd):
    """Row by row: a mean over people may be worse between two corners than at either."""
    X, _ = crowd
    corners = RobustResponse(estimated().confidence.populations)
    worst = refusal_chances(score, X, corners, GRID, together=True)[0]
    rng = np.random.default_rng(0)
    for price, never, log_sd in zip(
        rng.uniform(0.8, 1.3, 20), rng.uniform(0.01, 0.03, 20), rng.uniform(0.2, 0.6, 20),
        strict=True,
    ):  # fmt: skip
        inner = Population(BEST.with_price(price), never=never, log_sd=log_sd)
        assert (refusal_chances(score, X, inner, GRID)[0] <= worst + 1e-9).all()


def test_a_confidence_set_that_uses_up_the_level_is_refused(score, half, crowd):
    with pytest.raises(ParameterError, match="confidence set of a higher level"):
        calibrate_after_response(score, crowd[0], estimated(0.95), GRID, actions=half)


def test_groups_of_people_who_differ_share_the_level(score, half, crowd):
    X, _ = crowd
    tribe = np.where(X[:, 1] > 0.0, "elk", "hare")
    ask = {"actions": half, "promise": "will"}
    both = calibrate_after_response(score, X, DIFFERENT, GRID, groups=tribe, **ask)
    alone = [
        calibrate_after_response(score, X[tribe == name], DIFFERENT, GRID, **ask)
        for name in ("elk", "hare")
    ]
    worst = np.maximum(alone[0].p_values, alone[1].p_values)
    assert both.p_values == pytest.approx(np.minimum(1.0, 2.0 * worst))


def test_unknown_promises_are_named(score, half, crowd):
    with pytest.raises(UnknownNameError, match="will"):
        calibrate_after_response(score, crowd[0], BEST, GRID, actions=half, promise="wil")


def test_measures_of_thresholds_are_expected_ones(score, crowd):
    X, y = crowd
    found = measure_after_response(score, X, y, DIFFERENT, GRID, loss=2.0)
    for place, p in enumerate(GRID):
        chance = DIFFERENT.chance_after(score.at_threshold(p), X)
        right, wrong = chance[y > 0].sum(), chance[y < 0].sum()
        assert found.approved[place] == pytest.approx(chance.mean())
        assert found.accuracy[place] == pytest.approx((right + np.sum(y < 0) - wrong) / len(y))
        assert found.utility[place] == pytest.approx((right - 2.0 * wrong) / len(y))
        assert found.f1[place] == pytest.approx(2 * right / (chance.sum() + np.sum(y > 0)))


def test_approval_is_promised_at_whichever_threshold_is_chosen(score, crowd):
    X, _ = crowd
    claim = approval_certificate(score, X, DIFFERENT, GRID, GRID[3], 0.05)
    alone = calibrate_after_response(
        score, X, DIFFERENT, [GRID[3]], failure_probability=0.05 / len(GRID), promise="will"
    )
    assert claim.value == pytest.approx(alone.bound_certificate().value)
    assert (claim.level, claim.n) == (0.95, len(X))
    assert "15 thresholds" in claim.reference
    hopeless = approval_certificate(score, X[:3], DIFFERENT, GRID, 0.999, 0.05)
    assert hopeless.value is None
    assert "3 calibration people" in hopeless.reason


def test_miss_shares_take_populations(score, half, crowd):
    shares = miss_shares(score, crowd[0], DIFFERENT, GRID, reach=reach_of(score, half))
    assert (np.diff(shares) >= 0).all()


def test_bets_against_a_mean_that_is_right_rarely_win():
    rng = np.random.default_rng(4)
    fair = rng.beta(0.2, 1.8, size=(2000, 150))  # mean .1
    assert np.mean(betting_p_values(fair, 0.1) <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 2000)
    assert np.mean(betting_p_values(fair, 0.2) <= 0.05) > 0.9
    assert np.mean(upper_means(fair, 0.05) < 0.1) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 2000)
    assert betting_p_values(np.ones((1, 50)), 0.5)[0] == 1.0
    assert upper_means(np.zeros((1, 1)), 0.05)[0] == 1.0
