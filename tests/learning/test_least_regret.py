"""Regret is what knowing people would add; the rule of least regret loses least of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from countermove.data.rows import Rows
from countermove.errors import ParameterError
from countermove.learning.evaluation import stated_chance
from countermove.learning.least_regret import (
    Payoff,
    PlausiblePeople,
    directions,
    least_regret,
    regret_report,
)
from countermove.learning.simple_rules import linear_score, logistic_regression
from countermove.people import ActionSet, QuadraticCost
from countermove.response import BestResponse, Population

ACTIONS = ActionSet(immutable=[0])
STATED = BestResponse(QuadraticCost(1.0), ACTIONS)
UNKNOWN = PlausiblePeople.unknown(STATED)


def people(n: int, seed: int) -> Rows:
    """Return people whose second column tells much and can be moved, the first one neither."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.where(X @ [0.8, 1.6, 0.1] + rng.logistic(size=n) > 0.0, 1.0, -1.0)
    return Rows(np.arange(n).astype(str), X, y, pd.DataFrame(index=range(n)))


TRAIN, TEST = people(3_000, 0), people(4_000, 1)


def value(rule, response, rows: Rows, payoff: Payoff) -> float:
    """Return the mean payoff, from the decisions that the response itself gives."""
    approved = stated_chance(rule, rows.X, rows.y, response)
    worth = np.where(
        rows.y > 0.0,
        payoff.favourable * approved + payoff.refused * (1.0 - approved),
        payoff.unfavourable * approved,
    )
    return float(worth.mean())


@pytest.mark.parametrize("payoff", [Payoff(), Payoff(1.0, -3.0), Payoff(2.0, -1.0, -0.5)])
def test_the_rule_of_least_regret_is_the_best_of_a_search_over_all_thresholds(payoff):
    rules = {"logistic": logistic_regression(TRAIN.X, TRAIN.y)}
    chosen = least_regret(rules, UNKNOWN.members, TRAIN.X, TRAIN.y, payoff)
    weight, bias = (rules["logistic"].weight.detach().numpy(), chosen.rule.bias.item())
    tried = [linear_score(np.append(weight, bias + shift)) for shift in np.linspace(-4, 4, 81)]
    values = np.array(
        [[value(rule, one, TRAIN, payoff) for one in UNKNOWN.members.values()] for rule in tried]
    )
    least = float((values.max(axis=0) - values).max(axis=1).min())
    assert max(chosen.regret.values()) == pytest.approx(least, abs=0.01)


def test_more_directions_regret_less_and_each_member_has_its_own_best_rule():
    candidates = directions(TRAIN.X, TRAIN.y, UNKNOWN.members)
    assert {"logistic", "class_means", "immutables"} < set(candidates)
    several = least_regret(candidates, UNKNOWN.members, TRAIN.X, TRAIN.y, Payoff())
    for name, one in UNKNOWN.members.items():
        best = value(several.best[name], one, TRAIN, Payoff())
        alone = least_regret(candidates, {name: one}, TRAIN.X, TRAIN.y, Payoff())
        assert best >= value(alone.rule, one, TRAIN, Payoff()) - 0.005
    logistic = {"logistic": candidates["logistic"]}
    one = least_regret(logistic, UNKNOWN.members, TRAIN.X, TRAIN.y, Payoff())
    behind = [
        value(several.best[name], response, TRAIN, Payoff())
        - value(one.rule, response, TRAIN, Payoff())
        for name, response in UNKNOWN.members.items()
    ]
    assert max(several.regret.values()) <= max(behind) + 0.005


def test_never_movers_and_prices_between_the_members_add_nothing_to_the_largest_regret():
    rule = logistic_regression(TRAIN.X, TRAIN.y)
    members = dict(UNKNOWN.members)
    between = {
        "a third never moves": Population(STATED, never=1 / 3),
        "spread prices": Population(STATED, log_sd=0.5),
    }
    candidates = {"logistic": rule}

    def largest(known) -> float:
        found = least_regret(candidates, known, TRAIN.X, TRAIN.y, Payoff())
        return max(value(found.best[name], one, TRAIN, Payoff()) - value(rule, one, TRAIN, Payoff())
                   for name, one in known.items())  # fmt: skip

    assert largest(members | between) <= largest(members) + 0.005


def test_a_report_recounts_regret_and_gain_on_rows_that_chose_nothing():
    rules = {"blind": logistic_regression(TRAIN.X, TRAIN.y)}
    told = regret_report(rules, UNKNOWN, TRAIN, TEST, Payoff())
    assert set(told["rules"]) == {"blind", "least_regret"}
    blind, published = told["rules"]["blind"], told["rules"]["least_regret"]
    assert set(blind["regret"]) == set(UNKNOWN.members)
    everybody = float(TEST.y.mean())
    alike = max(everybody, 0.0) if TRAIN.y.mean() > 0 else 0.0
    for name, one in UNKNOWN.members.items():
        mean = value(rules["blind"], one, TEST, Payoff())
        assert blind["gain"][name]["value"] == pytest.approx(mean - alike)
        assert blind["regret"][name]["low"] <= blind["regret"][name]["value"]
        assert blind["largest_regret"]["high"] >= blind["regret"][name]["value"]
    # The best rule at the dearest price all but ignores the response, as the blind one does.
    assert abs(blind["regret"]["nobody moves"]["value"]) < 0.02
    assert published["largest_regret"]["value"] < 0.8 * blind["largest_regret"]["value"]
    assert set(blind["beyond"]) == {"0.125 times the price", "32 times the price"}


@pytest.mark.validity
def test_upper_ends_of_the_largest_regret_fail_no_more_often_than_they_say():
    rules = {"blind": logistic_regression(TRAIN.X, TRAIN.y)}
    many = people(200_000, 5)
    found = least_regret(directions(TRAIN.X, TRAIN.y, UNKNOWN.members) | rules, UNKNOWN.members,
                         TRAIN.X, TRAIN.y, Payoff())  # fmt: skip
    true = max(
        value(found.best[name], one, many, Payoff()) - value(rules["blind"], one, many, Payoff())
        for name, one in UNKNOWN.members.items()
    )
    ends = [
        regret_report(rules, UNKNOWN, TRAIN, people(400, 100 + k), Payoff(), 0.2)["rules"]["blind"][
            "largest_regret"
        ]["high"]
        for k in range(100)
    ]
    assert sum(end < true for end in ends) <= 17  # 10 expected at most; 17: one chance in a hundred


def test_assumed_and_estimated_people_are_a_set_of_their_own():
    assumed = PlausiblePeople.assumed(STATED, "A. Risk")
    assert assumed.to_json() == {
        "state": "assumed", "assumed_by": "A. Risk", "set": ["best"], "beyond": [],
    }  # fmt: skip
    with pytest.raises(ParameterError, match="confidence_set is not set"):
        PlausiblePeople.estimated(STATED)


@pytest.mark.parametrize(
    ("payoff", "words"),
    [
        ((1.0, -1.0, 1.0), "refusing everybody is always best; expected favourable > refused"),
        ((1.0, 0.0, 0.0), "approving everybody is always best; expected unfavourable < 0"),
    ],
)
def test_payoffs_that_make_one_decision_always_best_are_named(payoff, words):
    with pytest.raises(ParameterError, match=words):
        Payoff(*payoff)


def test_whoever_counts_twice_weighs_as_two_rows_do():
    """Weights are the sizes of labels, as training has them."""
    rules = {"logistic": logistic_regression(TRAIN.X, TRAIN.y)}
    twice = np.arange(len(TRAIN.y)) % 3 == 0
    rng = np.random.default_rng(3)
    thresholds, shifts = rng.normal(size=len(TRAIN.y)), np.linspace(-2.0, 2.0, 9)
    rows = np.concatenate([np.arange(len(twice)), np.flatnonzero(twice)])
    weighted = Payoff(1.0, -3.0, -0.5).curve(thresholds, TRAIN.y * (1.0 + twice), shifts)
    repeated = Payoff(1.0, -3.0, -0.5).curve(thresholds[rows], TRAIN.y[rows], shifts)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-12)
    heavy = np.where(TRAIN.y > 0.0, 5.0, -1.0)
    lenient = least_regret(rules, UNKNOWN.members, TRAIN.X, heavy, Payoff())
    plain = least_regret(rules, UNKNOWN.members, TRAIN.X, TRAIN.y, Payoff())
    assert lenient.rule.bias.item() > plain.rule.bias.item()
