"""Strategic trees: trained at the index people reach, kept only where they beat simple rules."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from countermove import StrategicClassifier
from countermove.errors import ParameterError, UnknownNameError
from countermove.learning import L2
from countermove.learning.simple_rules import linear_score
from countermove.learning.trees import TreeTraining
from countermove.learning.whole_steps import WholeStepResponse
from countermove.people import ActionSet, LinearCost, QuadraticCost
from countermove.recourse import calibrate_pare, recommend
from countermove.response import BestResponse, Population
from countermove.scores.index_trees import IndexTreesScore
from countermove.scores.trees import TreeScore

ACTIONS = ActionSet(immutable=(2, 3), integer=(1,))


def people(n: int, together: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return people whose immutable columns count only together."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[:, 1] = np.round(2.0 * X[:, 1])
    both = (X[:, 2] > 0.0) & (X[:, 3] > 0.0)
    merit = X[:, 0] + 0.5 * X[:, 1] + together * (both - 0.25)
    return X, np.where(merit + 0.5 * rng.logistic(size=n) > 0.0, 1.0, -1.0)


@pytest.fixture(scope="module")
def fitted() -> tuple[StrategicClassifier, np.ndarray, np.ndarray]:
    X, y = people(500, 4.0)
    rule = StrategicClassifier(
        score="trees", actions=ACTIONS, selection="none", standardise=False
    ).fit(X, y)
    return rule, X, y


@pytest.mark.slow
def test_trees_are_kept_where_they_beat_every_simple_rule():
    X, y = people(2_000, 4.0)
    rule = StrategicClassifier(score="trees", actions=ACTIONS, standardise=False).fit(X, y)
    choice = rule.choice_
    assert choice is not None
    assert choice.kept == "trained"
    assert set(choice.rules) >= {"logistic", "class_means", "reach_penalty", "blind", "trained"}
    assert choice.rules["trained"].gain > 2.0 * choice.rules["trained"].standard_error > 0.0
    assert isinstance(rule.score_, IndexTreesScore)
    X, y = people(2_000, 4.0, seed=1)
    exact = WholeStepResponse(QuadraticCost(1.0), ACTIONS)
    right = {
        name: (exact.decisions_after(score, X) == (y > 0)).mean()
        for name, score in choice.scores.items()
    }
    assert right["trained"] > max(right["logistic"], right["blind"]) + 0.01


def test_the_trees_judge_the_highest_index_people_reach(fitted):
    rule, X, _ = fitted
    score = rule.score_
    assert isinstance(score, IndexTreesScore)
    exact = WholeStepResponse(QuadraticCost(1.0), ACTIONS)
    index = linear_score(np.append(score.slope().numpy(), 0.0))
    reached = exact.scores_after(index, torch.from_numpy(X)).numpy()
    approved = score.log_odds(reached, X[:, [2, 3]]) >= score.level
    decided = exact.decisions_after(score, X)
    assert decided[approved].all()
    assert (decided == approved).mean() > 0.99  # an index is known to a thousandth
    moved = rule.respond(X)
    crossed = moved.moved & (score(torch.from_numpy(moved.x_new)).numpy() >= 0.0)
    assert crossed.sum() > 50


@pytest.mark.slow
def test_a_simple_rule_is_kept_where_trees_bring_nothing():
    X, y = people(200, 0.0)
    rule = StrategicClassifier(score="trees", actions=ACTIONS, standardise=False).fit(X, y)
    assert rule.choice_ is not None
    assert not rule.choice_.trained
    assert rule.choice_.sentence().startswith("The best simple rule (logistic) is published")
    again = StrategicClassifier(score="trees", actions=ACTIONS, standardise=False).fit(X, y)
    np.testing.assert_array_equal(again.decision_function(X), rule.decision_function(X))


def test_advice_and_promises_hold_before_trees_of_an_index(fitted):
    rule, X, _ = fitted
    advice = recommend(rule, X[:200], actions=ACTIONS)
    found = advice.status == "FOUND"
    assert found.sum() > 30
    assert advice.proven_cheapest[found].all()
    assert (rule.predict(X[:200][found] + advice.action[found]) > 0).all()
    change = advice.action[found]
    assert (change[:, [2, 3]] == 0.0).all()
    np.testing.assert_allclose(change[:, 1], np.round(change[:, 1]), atol=1e-9)
    promise = calibrate_pare(rule, people(500, 4.0, seed=2)[0], actions=ACTIONS)
    assert 0.0 < promise.threshold < 1.0


def test_nobody_moving_gives_blind_trees():
    X, y = people(300, 4.0)
    rule = StrategicClassifier(score="trees", response="none").fit(X, y)
    assert isinstance(rule.standardised_score_, TreeScore)
    assert rule.score(X, y) > 0.85


@pytest.mark.slow
def test_people_who_differ_count_by_their_shares():
    X, y = people(300, 4.0)
    crowd = Population(BestResponse(QuadraticCost(1.0), ACTIONS), never=0.4)
    rules = [
        StrategicClassifier(score="trees", response=who, selection="none", standardise=False).fit(
            X, y
        )
        for who in (crowd, BestResponse(QuadraticCost(1.0), ACTIONS))
    ]
    asked = [rule.score_.thresholds(X[:, [2, 3]]).mean() for rule in rules]
    assert asked[0] < asked[1]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"actions": ActionSet(immutable=range(4))}, "no column can move"),
        ({"actions": None}, "that is the linear rule"),
        ({"response": "smooth"}, "best responders"),
        ({"response": ["best", "none"]}, "give the responses weights"),
        ({"loss": "hinge"}, "logistic loss"),
        ({"regulariser": L2(0.1)}, "accuracy alone"),
        ({"start": "means"}, "start and calibrate"),
        ({"cost": LinearCost([1.0] * 4)}, "sum over columns"),
    ],
)
def test_what_makes_no_sense_is_refused(settings, words):
    X, y = people(60, 2.0)
    rule = StrategicClassifier(**{"score": "trees", "actions": ACTIONS} | settings)
    with pytest.raises(ParameterError, match=words):
        rule.fit(X, y)


def test_unknown_names_are_refused():
    X, y = people(60, 2.0)
    with pytest.raises(UnknownNameError, match="trees"):
        StrategicClassifier(score="tree").fit(X, y)
    with pytest.raises(ParameterError, match="two leaves"):
        TreeTraining(leaves=1)
