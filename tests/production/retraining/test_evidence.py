"""The limit of a promotion and what is held against it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from countermove.production.retraining.evidence import MONTH, Look, limit_for, looks_a_year, weigh


def look(month: float, gain: float, squares: float = 100.0, folds=(0.0, 0.0)) -> Look:
    return Look(MONTH * month, 500, gain, squares, tuple(folds), 1.0)


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
    found = weigh(looks, days, 0.0, "likelihood", 0.05, 3.0)
    assert found.looks == 3
    assert found.value == pytest.approx(9.0 / math.sqrt(300.0))
    assert not found.sufficient
    assert "short" in found.words


def test_evidence_for_fewer_right_decisions_does_not_suffice():
    worse = Look(MONTH, 500, 60.0, 100.0, (0.0,), -2.0)
    found = weigh([worse], [MONTH], 0.0, "likelihood", 0.05, 3.0)
    assert found.value > found.limit
    assert not found.sufficient
    assert found.words.endswith("labels are predicted better, decisions are not")


def test_e_values_average_folds_and_multiply_months():
    looks = [look(1, 0.0, folds=(2.0, 0.0)), look(2, 0.0, folds=(1.0, 1.0))]
    found = weigh(looks, [each.day for each in looks], 0.0, "e_value", 0.05, 3.0)
    assert found.value == pytest.approx(math.log((math.exp(2.0) + 1.0) / 2.0) + 1.0)
    assert found.limit == pytest.approx(math.log(20.0))


@pytest.mark.validity
def test_a_year_of_equal_challengers_promotes_as_often_as_stated():
    rng = np.random.default_rng(5)
    years = promoted = 0
    for _ in range(1500):
        looks = [look(month, float(10.0 * rng.normal())) for month in range(1, 13)]
        days = [each.day for each in looks]
        years += 1
        promoted += any(
            weigh(looks[:k], days[:k], 0.0, "likelihood", 0.05, 3.0).sufficient
            for k in range(1, 13)
        )
    assert 0.035 < promoted / years < 0.066
