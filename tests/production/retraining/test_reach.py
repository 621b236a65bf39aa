"""How far people move, estimated from where the people of a batch stand."""

from __future__ import annotations

import numpy as np
import pytest

from countermove.production.retraining.reach import ReachModel, estimate_reach

ASSUMED = ReachModel()


def batch(
    rng: np.random.Generator,
    reach: float,
    log_price: float = 0.0,
    overshoot: float = 0.0,
    noise: float = 0.0,
    never: float = 0.0,
    n: int = 1500,
) -> np.ndarray:
    """Return distances from the boundary of people who responded, in units of a reach of one."""
    stood = rng.normal(0.0, 1.1, n)
    own = reach * np.exp(0.5 * log_price * rng.normal(size=n)) * (rng.random(n) >= never)
    moved = (stood < 0.0) & (-stood <= own)
    return np.where(moved, -overshoot * stood, stood) + noise * rng.normal(size=n)


def estimated(seed: int, **people: float):
    rng = np.random.default_rng(seed)
    return estimate_reach(batch(rng, **people), rng.normal(0.0, 1.1, 3000), ASSUMED, 0.996)


@pytest.mark.parametrize("rough", [{}, {"overshoot": 0.02}, {"overshoot": 0.02, "noise": 0.03}])
def test_overshoot_and_rounding_do_not_move_the_estimate(rough):
    for seed in range(5):
        found = estimated(seed, reach=1.0, **rough)
        assert found.people.reach == pytest.approx(1.0, abs=0.06)
        changed = estimated(seed, reach=2.0**0.5, **rough)
        assert changed.excluded
        assert changed.people.reach == pytest.approx(2.0**0.5, abs=0.09)
        assert changed.low > 1.2


def test_people_who_differ_are_told_apart():
    spread = [estimated(seed, reach=1.0, log_price=0.6) for seed in range(5)]
    assert np.mean([each.people.log_sd for each in spread]) == pytest.approx(0.3, abs=0.06)
    still = [estimated(seed, reach=1.0, never=0.2) for seed in range(5)]
    assert np.mean([each.people.never for each in still]) == pytest.approx(0.2, abs=0.04)


def test_three_odd_applicants_do_not_change_the_reach():
    rng = np.random.default_rng(3)
    usual = batch(rng, 1.0)
    before = rng.normal(0.0, 1.1, 3000)
    found = estimate_reach(usual, before, ASSUMED, 0.996)
    for place in (-0.02, -0.1, -0.3, -0.5, -0.7, -0.9):
        odd = np.append(usual[3:], [place, 1.1 * place, 0.9 * place])
        with_them = estimate_reach(odd, before, ASSUMED, 0.996)
        assert with_them.people.reach == pytest.approx(found.people.reach, abs=0.03)


@pytest.mark.validity
def test_the_interval_holds_the_reach_as_often_as_it_says():
    missed = changed = 0
    for seed in range(120):
        found = estimated(seed, reach=1.0, log_price=0.4)
        missed += not found.low <= 1.0 <= found.high
        changed += estimated(1000 + seed, reach=1.0).excluded
    assert missed <= 4  # 120 draws at 99.6 %
    assert changed <= 4


def test_people_who_stand_in_heaps_are_no_change_of_the_reach():
    """Counts of real tables vary more than those of people drawn one by one."""
    alone, heaped = ([heaps(seed, size) for seed in range(8)] for size in (1, 6))
    assert not any(each.excluded for each in heaped)
    width = [np.mean([each.high - each.low for each in found]) for found in (alone, heaped)]
    assert width[1] > 1.5 * width[0]


def heaps(seed: int, size: int):
    """Return the estimate where people stand together, so many in a place, and reach one."""
    rng = np.random.default_rng(seed)
    stood, before = (np.repeat(rng.normal(0.0, 1.1, n // size), size) for n in (1500, 3000))
    return estimate_reach(
        np.where((stood < 0.0) & (stood >= -1.0), 0.0, stood), before, ASSUMED, 0.996
    )


def test_a_valley_between_two_heaps_is_no_change_of_the_reach():
    """A rule often stands where people are few: smoothed over, they look as if they had moved."""
    found = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        stood, before = (
            np.where(rng.random(n) < 0.4, rng.normal(-1.65, 0.25, n), rng.normal(-0.25, 0.2, n))
            for n in (1500, 3000)
        )
        seen = np.where((stood < 0.0) & (stood >= -1.0), 0.0, stood)
        found.append(estimate_reach(seen, before, ASSUMED, 0.996))
    assert not any(each.excluded for each in found)
    assert np.mean([each.people.reach for each in found]) == pytest.approx(1.0, abs=0.08)
