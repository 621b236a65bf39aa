"""Groups are counted apart and compared with one that was not chosen by its rates."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest

from countermove.errors import DataError, ParameterError
from countermove.recourse.audit_shares import recourse_by_group, without_intervals

GROUPS = np.array(["a"] * 6 + ["b"] * 4)
REFUSED = np.array([1, 1, 1, 1, 0, 0, 1, 1, 0, 0], bool)
HAS = np.array([1, 1, 1, 0, 0, 0, 1, 0, 0, 0], bool)
COST = np.where(HAS, np.arange(10.0), np.nan)


def test_counts_costs_and_differences():
    a, b = recourse_by_group(GROUPS, REFUSED, HAS, COST)
    assert (a.group, a.people, a.refused) == ("a", 6, 4)
    assert a.recourse_neg.value == 0.75
    assert a.recourse_all.value == pytest.approx(5 / 6)
    assert a.mean_cost == 1.0
    assert a.disparity_neg is None
    assert b.mean_cost == 6.0
    assert b.disparity_neg.difference == pytest.approx(0.5 - 0.75)
    assert b.disparity_all.ratio == pytest.approx(0.75 / (5 / 6))


def test_the_reference_may_be_named():
    a, b = recourse_by_group(GROUPS, REFUSED, HAS, COST, reference="b")
    assert b.disparity_neg is None
    assert a.disparity_neg.difference == pytest.approx(0.25)
    with pytest.raises(ParameterError, match="reference group 'c'"):
        recourse_by_group(GROUPS, REFUSED, HAS, COST, reference="c")


def test_a_group_nobody_of_which_is_refused_has_no_rate_but_an_interval():
    none = recourse_by_group(GROUPS, REFUSED & (GROUPS == "a"), HAS & (GROUPS == "a"), COST)[1]
    assert none.recourse_neg.value is None
    assert none.mean_cost is None
    assert none.disparity_neg.difference_low < 0 < none.disparity_neg.difference_high


@pytest.mark.quick_validity
def test_intervals_of_rates_and_disparities_cover_the_populations():
    able, draws, level = {"a": 0.7, "b": 0.45}, 2_000, 0.9
    covered = np.zeros(4)
    rng = np.random.default_rng(4)
    for _ in range(draws):
        groups = np.where(rng.random(80) < 0.6, "a", "b")
        refused = rng.random(80) < 0.5
        has = refused & (rng.random(80) < np.where(groups == "a", able["a"], able["b"]))
        a, b = recourse_by_group(groups, refused, has, np.zeros(80), reference="a", level=level)
        gap = b.disparity_neg
        top = np.inf if gap.ratio_high is None else gap.ratio_high
        covered += [
            a.recourse_neg.low <= able["a"] <= a.recourse_neg.high,
            b.recourse_all.low <= 0.5 + 0.5 * able["b"] <= b.recourse_all.high,
            gap.difference_low <= able["b"] - able["a"] <= gap.difference_high,
            gap.ratio_low <= able["b"] / able["a"] <= top,
        ]
    assert (covered / draws >= level - 3 * np.sqrt(level * (1 - level) / draws)).all()


def test_groups_of_other_people_are_refused():
    with pytest.raises(DataError, match="as many groups"):
        recourse_by_group(GROUPS[:3], REFUSED, HAS, COST)


def test_where_rows_belong_together_shares_stand_without_a_level():
    facts = {"groups": [asdict(one) for one in recourse_by_group(GROUPS, REFUSED, HAS, COST)]}
    facts |= {"tests": ({"auc": 0.6, "p_auc": 0.04},), "threshold": 0.5}
    found = without_intervals(facts)
    share, apart = (found["groups"][1][name] for name in ("recourse_neg", "disparity_neg"))
    assert (share["value"], share["n"]) == (0.5, 2)
    assert [share[name] for name in ("low", "high", "level")] == [None] * 3
    assert apart["difference"] == pytest.approx(-0.25)
    assert {apart[name] for name in apart if name.endswith(("low", "high", "level"))} == {None}
    assert found["tests"] == [{"auc": 0.6, "p_auc": None}]
    assert found["threshold"] == 0.5
