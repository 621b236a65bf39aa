"""The audit on a rule, people and advice whose answers are known."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from scipy.stats import norm

from countermove.errors import DataError, ParameterError
from countermove.people import ActionSet, LinearCost
from countermove.recourse.audit import audit
from countermove.recourse.classifier import RecourseClassifier
from countermove.scores import LinearScore

from .applicants import second_feature_only, some_applicants

LARGEST = 0.75


@pytest.fixture(scope="module")
def applicants():
    return some_applicants()


@pytest.fixture(scope="module")
def one_feature():
    return second_feature_only()


@dataclass(frozen=True)
class Advised:
    """Advice as any search hands it back."""

    action: np.ndarray
    status: np.ndarray
    effect: np.ndarray | None = None


def line() -> LinearScore:
    """Return the rule x0 >= 0."""
    score = LinearScore(2)
    with torch.no_grad():
        score.weight.copy_(torch.tensor([1.0, 0.0], dtype=torch.float64))
    return score


ACTIONS = ActionSet(lower=[-LARGEST, 0.0], upper=[LARGEST, 0.0])


def crowd(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return normal people, labels that the rule gets right four times of five, and groups."""
    rng = np.random.default_rng(seed)
    groups = np.where(rng.random(n) < 0.6, "blue", "green")
    X = rng.normal(size=(n, 2)) - 0.4 * (groups == "green")[:, None] * [1.0, 0.0]
    y = np.where(rng.random(n) < 0.8, X[:, 0] >= 0, X[:, 0] < 0)
    return X, np.where(y, 1, -1), groups


def cheapest(X: np.ndarray) -> Advised:
    """Return the least action that reaches the rule, where it is allowed."""
    need = np.maximum(-X[:, 0], 0.0)
    status = np.where(need == 0.0, "NOT_NEEDED", np.where(need <= LARGEST, "FOUND", "PROVEN_NONE"))
    action = np.column_stack([need, np.zeros(len(X))])
    action[status == "PROVEN_NONE"] = np.nan
    return Advised(action, status)


@pytest.fixture(scope="module")
def found():
    X, y, groups = crowd()
    return audit(line(), X, y, cheapest(X), groups=groups, actions=ACTIONS, features=("pay", "age"))


def test_rates_costs_and_features_are_those_of_the_people(found):
    X, _, groups = crowd()
    refused = X[:, 0] < 0
    able = refused & (X[:, 0] >= -LARGEST)
    assert found.recourse.refused == refused.sum()
    assert found.recourse.recourse_neg.value == pytest.approx(able.sum() / refused.sum())
    assert found.recourse.recourse_all.value == pytest.approx((able | ~refused).mean())
    assert found.recourse.mean_cost == pytest.approx((X[able, 0] ** 2).mean())
    assert found.recourse.features_touched == 1.0
    assert found.recourse.touched == {"pay": 1.0, "age": 0.0}
    assert found.recourse.broken_claims == ()
    assert found.recourse.outside == ()
    blue = groups == "blue"
    assert found.groups[0].recourse_neg.value == pytest.approx(
        (able & blue).sum() / (refused & blue).sum()
    )
    assert found.groups[1].disparity_neg.difference < 0
    assert found.performance.accuracy == pytest.approx(0.8, abs=0.06)


def test_everything_is_json(found):
    stored = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert stored["recourse"]["recourse_neg"]["n"] == found.recourse.refused
    assert stored["performance"]["always_positive_f1"] > 0
    assert {test["discriminator"] for test in stored["in_distribution"]} == {
        "logistic",
        "random_forest",
        "neural",
    }


def test_people_brought_to_the_line_do_not_look_like_approved_people(found):
    forest = found.in_distribution[1]
    assert forest.p_accuracy < 0.001


def test_actions_that_end_on_the_line_survive_noise_half_of_the_time(found):
    assert found.robust_actions.low <= 0.5 <= found.robust_actions.high


def test_actions_with_a_margin_survive_noise_more_often():
    X, y, _ = crowd()
    advice = cheapest(X)
    further = Advised(advice.action + np.array([0.1, 0.0]), advice.status)
    robust = audit(line(), X, y, further, noise_sd=0.1).robust_actions
    assert robust.low <= norm.cdf(1.0) <= robust.high


def test_claims_that_do_not_hold_are_counted_out_and_named():
    X, y, _ = crowd()
    advice = cheapest(X)
    liars = np.flatnonzero(advice.status == "FOUND")[:3]
    advice.action[liars] /= 2.0
    advice.action[liars[0], 1] = 1.0
    found = audit(line(), X, y, advice, actions=ACTIONS)
    honest = audit(line(), X, y, cheapest(X), actions=ACTIONS)
    assert found.recourse.broken_claims == tuple(liars)
    assert found.recourse.outside == (liars[0],)
    assert found.recourse.recourse_neg.count == honest.recourse.recourse_neg.count - 3


def test_a_higher_threshold_refuses_more_people():
    X, y, _ = crowd()
    strict = audit(line(), X, y, cheapest(X), threshold=0.6)
    assert strict.recourse.refused > (X[:, 0] < 0).sum()
    assert strict.recourse.recourse_neg.count == 0
    assert strict.in_distribution == ()
    assert strict.recourse.mean_cost is None


def test_consequences_of_an_action_count_and_costs_may_be_chosen():
    X, y, _ = crowd()
    advice = cheapest(X)
    halved = Advised(advice.action / 2.0, advice.status, effect=advice.action)
    whole, part = (
        audit(line(), X, y, one, cost=LinearCost([1.0, 1.0])) for one in (advice, halved)
    )
    assert whole.recourse.recourse_neg == part.recourse.recourse_neg
    assert part.recourse.mean_cost == pytest.approx(whole.recourse.mean_cost / 2.0)


def test_a_fitted_classifier_brings_its_labels_and_actions(applicants, one_feature):
    X, y = applicants
    model = RecourseClassifier(
        one_feature, hidden=(8,), max_epochs=2, favourable=0, batch_size=64
    ).fit(X, y)
    advice = Advised(np.full(X.shape, np.nan), np.full(len(X), "NOT_FOUND"))
    found = audit(model, X, y, advice)
    assert found.performance.recall == pytest.approx(np.mean(model.predict(X)[y == 0] == 0))
    assert found.recourse.recourse_neg.count == 0
    assert found.brittleness.gaussian.value > 0.8


def test_input_that_does_not_fit_is_refused():
    X, y, _ = crowd(50)
    advice = cheapest(X)
    with pytest.raises(DataError, match="one status each"):
        audit(line(), X, y, Advised(advice.action[:3], advice.status))
    with pytest.raises(ParameterError, match="holds no score"):
        audit(RecourseClassifier(), X, y, advice)
    with pytest.raises(ParameterError, match="between 0 and 1"):
        audit(line(), X, y, advice, threshold=1.0)
    with pytest.raises(DataError, match="names"):
        audit(line(), X, y, advice, features=("pay",))
