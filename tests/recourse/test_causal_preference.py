"""Advice that causes the outcome comes first where it costs little more; alternatives differ."""

from __future__ import annotations

import numpy as np
import pytest

from countermove.errors import ParameterError
from countermove.people import ActionSet, QuadraticCost
from countermove.recourse import recommend
from countermove.recourse.audit_shares import causal_audit
from countermove.recourse.recommend import FOUND

from .conftest import linear

ACTIONS = ActionSet(lower=[-5.0] * 4, upper=[5.0] * 4, immutable=[3])
X = np.random.default_rng(0).normal(size=(300, 4)) - 1.0


def cheapest_without(rule, columns):
    held = ActionSet(lower=[-5.0] * 4, upper=[5.0] * 4, immutable=[*columns, 3])
    return recommend(rule, X, actions=held)


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5])
def test_what_does_not_cause_the_outcome_is_left_alone_within_the_tolerance(share):
    """Column 2 games: its weight makes leaving it alone cost 1 + w₂²/(w₀² + w₁²) times as much."""
    for weight, factor in ((0.1, 1.005), (0.5, 1.125), (2.0, 3.0)):
        rule = linear([1.0, 1.0, weight, 1.0], -1.0)
        plain = recommend(rule, X, actions=ACTIONS)
        found = recommend(rule, X, actions=ACTIONS, not_causal=[2], causal_tolerance=share)
        refused = plain.status == FOUND
        unbounded = (np.abs(plain.action[refused]) < 4.9).all(axis=1)
        costs = (found.cost[refused] / plain.cost[refused])[unbounded]
        alone = (found.action[refused, 2] == 0.0)[unbounded]
        if factor <= 1.0 + share:
            assert alone.all()
            np.testing.assert_allclose(costs, factor, rtol=1e-5)
        else:
            assert not alone.any()
            np.testing.assert_allclose(costs, 1.0)
        np.testing.assert_allclose(found.causal_extra, found.cost - plain.cost, atol=1e-9)
        assert (found.probability_after[refused] >= 0.5).all()
        dearer = found.causal_extra > 1e-5 * np.maximum(plain.cost, 1e-9)
        assert not found.proven_cheapest[dearer].any()


def test_nobody_loses_recourse_or_margin_by_the_preference():
    rule = linear([0.02, 0.0, 1.0, 1.0], -1.0)
    plain = recommend(rule, X, actions=ACTIONS, margin=0.1)
    found = recommend(rule, X, actions=ACTIONS, margin=0.1, not_causal=[2], causal_tolerance=10.0)
    assert found.status.tolist() == plain.status.tolist()
    given = plain.status == FOUND
    assert (found.probability_after >= plain.probability_after - 1e-9)[given].all()


def test_bad_columns_and_tolerances_are_refused():
    rule = linear([1.0] * 4, 0.0)
    with pytest.raises(
        ParameterError, match=r"not_causal names the columns \[7\], expected 0 to 3"
    ):
        recommend(rule, X, actions=ACTIONS, not_causal=[7])
    with pytest.raises(ParameterError, match="causal_tolerance is a share of at least 0"):
        recommend(rule, X, actions=ACTIONS, not_causal=[1], causal_tolerance=-0.1)


def test_nothing_is_said_about_causes_that_nobody_declared():
    from .test_words import SCHEMA

    advice = recommend(linear([1.0] * 4, 0.0), X, actions=ACTIONS)
    assert causal_audit(advice, SCHEMA) == {}


def test_alternatives_differ_in_what_they_change():
    """With three columns to change there are three ways; with one to change, there is one."""
    rule = linear([1.0, 0.8, 0.6, 1.0], -1.0)
    advice = recommend(rule, X, actions=ACTIONS, cost=QuadraticCost(), options=3, max_features=1)
    refused = advice.status == FOUND
    ways = [advice, *advice.alternatives]
    assert len(ways) == 3
    rich = refused & np.all([way.status == FOUND for way in ways], axis=0)
    assert rich.sum() > 50
    changed = np.array([way.action[rich] != 0.0 for way in ways])
    for first, second in ((0, 1), (0, 2), (1, 2)):
        assert (changed[first] != changed[second]).any(axis=1).all()
    for way in ways:
        assert (way.probability_after[rich] >= 0.5).all()
    alone = ActionSet(lower=[-50.0] * 4, upper=[50.0] * 4, immutable=[1, 2, 3])
    single = recommend(rule, X, actions=alone, options=3)
    assert (single.status == FOUND).any()
    for way in single.alternatives:
        assert not (way.status == FOUND).any()
