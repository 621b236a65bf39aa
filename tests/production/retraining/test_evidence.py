"""The limit of a promotion and what is held against it."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from countermove.production.retraining.evidence import MONTH, Look, limit_for, looks_a_year, weigh
from countermove.production.retraining.policy import FollowingPolicy

POLICY = FollowingPolicy()


def look(month: float, gain: float, squares: float = 100.0) -> Look:
    return Look(MONTH * month, 500, gain, squares, 1.0, 40.0)


def test_the_limit_is_that_of_the_looks_there_are():
    assert limit_for(12, 3, 0.05) == pytest.approx(2.55, abs=0.02)
    assert limit_for(1, 1, 0.05) == pytest.approx(1.645, abs=0.02)
    assert limit_for(12, 3, 0.05) < limit_for(52, 13, 0.05) < limit_for(365, 91, 0.05) < 3.3


def test_looks_are_counted_by_their_pace():
    assert looks_a_year([MONTH], 0.0) == 12
    assert looks_a_year([MONTH * k for k in range(1, 15)], 0.0) == 12
    assert looks_a_year([1.0, 2.0], 0.0) == 366
    assert looks_a_year([MONTH, MONTH * 4], 0.0) == 4


def test_only_the_newest_three_months_are_pooled():
    looks = [look(1, 50.0), look(2, 0.0), look(3, 0.0), look(4, 9.0)]
    days = [each.day for each in looks]
    found = weigh(looks, days, 0.0, POLICY)
    assert found.looks == 3
    assert found.value == pytest.approx(9.0 / math.sqrt(300.0))
    assert not found.sufficient
    assert "short" in found.words


def test_evidence_for_fewer_right_decisions_does_not_suffice():
    worse = Look(MONTH, 500, 60.0, 100.0, -2.0, 40.0)
    found = weigh([worse], [MONTH], 0.0, POLICY)
    assert found.value > found.limit
    assert not found.sufficient
    assert found.words.endswith("labels are predicted better, decisions are not")


def monthly(month: int, gain: float, promoted: float | None, policy=POLICY, right: float = 1.0):
    """Weigh one look since a promotion, of monthly ones; z is a tenth of the gain."""
    days = [MONTH * k for k in range(1, month + 1)]
    only = replace(look(month, gain), right=right)
    return weigh([only], days, 0.0, policy, promoted)


def test_less_is_asked_for_three_months_after_a_promotion_and_then_no_more():
    assert monthly(6, 3.0, None).limit == pytest.approx(2.55, abs=0.02)
    for month in (6, 7, 8):
        found = monthly(month, 3.0, 5 * MONTH)
        assert found.limit == 0.0
        assert found.full_limit == pytest.approx(2.55, abs=0.02)
        assert found.sufficient
    assert monthly(9, 3.0, 5 * MONTH).limit == pytest.approx(2.55, abs=0.02)
    assert not monthly(9, 3.0, 5 * MONTH).sufficient


def test_the_evidence_says_which_limit_is_asked_and_why():
    assert "2.55 is required at 12 looks a year" in monthly(6, 3.0, None).words
    said = monthly(6, 3.0, 5 * MONTH)
    assert (
        "z = 0.30 over the champion; 0.00 is required in the 3 months after a promotion (2.55 at "
        "other times, at 12 looks a year)"
    ) in said.words
    assert said.to_json()["months"] == 3.0
    assert said.to_json()["full_limit"] == pytest.approx(2.55, abs=0.02)


def test_after_a_promotion_a_challenger_still_has_to_predict_better():
    assert not monthly(6, -1.0, 5 * MONTH).sufficient
    assert "contrary" in monthly(6, -1.0, 5 * MONTH).words
    # Likelihood decides, not the few people whom only one of the rules is right for.
    assert monthly(6, 3.0, 5 * MONTH, right=-1.0).sufficient
    assert not monthly(6, 60.0, None, right=-1.0).sufficient


def test_what_is_asked_after_a_promotion_can_be_set_or_switched_off():
    never = replace(POLICY, monthly_false_promotions=None)
    assert monthly(6, 3.0, 5 * MONTH, never).limit == pytest.approx(2.55, abs=0.02)
    some = replace(POLICY, monthly_false_promotions=0.3)
    assert monthly(6, 3.0, 5 * MONTH, some).limit == pytest.approx(0.524, abs=0.001)
    # Never more than at other times.
    both = replace(POLICY, monthly_false_promotions=1e-4)
    assert monthly(6, 3.0, 5 * MONTH, both).limit == pytest.approx(2.55, abs=0.02)


def test_daily_looks_after_a_promotion_are_asked_for_a_months_worth():
    """The chance is a month's, however often is looked in it."""
    days = [float(day) for day in range(1, 100)]
    daily = weigh([Look(99.0, 50, 1.0, 10.0, 1.0, 4.0)], days, 0.0, POLICY, 98.0)
    assert daily.looks_a_year == 366
    assert 0.8 < daily.limit < 1.8 < daily.full_limit


def test_half_the_way_is_promoted_where_only_that_is_shown():
    half = look(1, 30.0)
    both = replace(look(1, 20.0), half=half)
    found = weigh([both], [MONTH], 0.0, POLICY)
    assert found.step == 0.5
    assert found.value == pytest.approx(3.0)
    assert found.sufficient
    assert "the rule halfway to the challenger predicts labels with z = 3.00" in found.words
    whole = weigh([replace(both, gain=27.0)], [MONTH], 0.0, POLICY)
    assert (whole.step, whole.value) == pytest.approx((1.0, 2.7))
    neither = weigh([replace(both, half=look(1, 25.0))], [MONTH], 0.0, POLICY)
    assert (neither.step, neither.value, neither.sufficient) == (1.0, 2.0, False)
    # After a promotion the challenger goes the whole way or not at all.
    assert weigh([replace(both, gain=-1.0)], [MONTH], 0.0, POLICY, 0.0).step == 1.0


def test_looks_survive_being_written_down():
    both = replace(look(1, 20.0), half=look(1, 30.0))
    assert Look.from_json(json.loads(json.dumps(both.to_json()))) == both


def test_labels_show_where_a_challenger_would_gain_next_to_nothing():
    agreeing = replace(look(1, -3.0), n=1500, right=2.0, right_squares=20.0)
    found = weigh([agreeing], [agreeing.day], 0.0, POLICY)
    assert found.largest_gain == pytest.approx((2.0 + 1.645 * math.sqrt(20.0 + 2.706)) / 1500, 1e-3)
    assert found.immaterial
    assert found.to_json()["immaterial"] is True
    assert "with 95 % confidence at most 0.7 points of accuracy would be gained" in found.words
    few = replace(agreeing, n=60)
    assert not weigh([few], [few.day], 0.0, POLICY).immaterial


@pytest.mark.validity
@pytest.mark.quick_validity
@pytest.mark.parametrize("n", [200, 1500])
@pytest.mark.parametrize(("better", "worse"), [(0.0, 0.0), (0.002, 0.0), (0.02, 0.02), (0.2, 0.1)])
def test_the_largest_gain_is_exceeded_at_most_once_in_twenty_looks(n, better, worse):
    """Of n people the challenger alone is right for some, and the champion alone for others."""
    rng, exceeded = np.random.default_rng([n, int(1000 * better)]), 0
    for won, lost, _ in rng.multinomial(n, [better, worse, 1.0 - better - worse], 2000).tolist():
        seen = replace(look(1, 0.0), n=n, right=float(won - lost), right_squares=float(won + lost))
        bound = weigh([seen], [seen.day], 0.0, POLICY).largest_gain
        assert bound is not None
        exceeded += better - worse > bound
    # 5 % and three standard errors of 2,000 draws.
    assert exceeded <= 2000 * 0.0646


@pytest.mark.validity
def test_a_year_of_equal_challengers_promotes_as_often_as_stated():
    rng = np.random.default_rng(5)
    years = promoted = 0
    for _ in range(1500):
        looks = [look(month, float(10.0 * rng.normal())) for month in range(1, 13)]
        days = [each.day for each in looks]
        years += 1
        promoted += any(weigh(looks[:k], days[:k], 0.0, POLICY).sufficient for k in range(1, 13))
    assert 0.035 < promoted / years < 0.066
