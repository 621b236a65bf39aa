"""Training with bounds of shape (n, d): every batch, split and intercept meets its own people."""

import numpy as np
import pytest
import torch
from sklearn.model_selection import cross_val_score

from countermove import StrategicClassifier
from countermove.errors import ParameterError
from countermove.learning.objectives import StrategicRisk
from countermove.people import ActionSet, QuadraticCost
from countermove.response import BestResponse, ScalarResponse
from countermove.response.base import NoResponse
from countermove.scores import LinearScore

N, D = 120, 3


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(3)
    y = np.where(rng.random(N) < 0.5, 1, 0)
    return rng.normal(size=(N, D)) + (2 * y[:, None] - 1) * np.array([1.0, 0.4, 0.0]), y


def classifier(actions, **settings):
    fast = {"optimiser": "adam", "max_epochs": 4, "batch_size": 16, "selection": "none"}
    settings = fast | settings
    given = {"cost": QuadraticCost(0.5), "actions": actions, "standardise": False}
    return StrategicClassifier(**given, **settings)


@pytest.mark.parametrize("response", ["best", "smooth", ["best", "smooth"]])
@pytest.mark.parametrize("optimiser", ["adam", "lbfgs"])
def test_equal_bounds_per_person_train_the_rule_of_shared_ones(people, response, optimiser):
    X, y = people
    low, high = np.full(D, -0.3), np.array([0.4, 0.2, 0.5])
    shared = ActionSet(lower=low, upper=high)
    own = ActionSet(lower=np.tile(low, (N, 1)), upper=np.tile(high, (N, 1)))
    settings = {"response": response, "optimiser": optimiser}
    rules = [classifier(actions, **settings).fit(X, y) for actions in (shared, own)]
    np.testing.assert_array_equal(rules[0].coef_, rules[1].coef_)
    np.testing.assert_array_equal(rules[0].intercept_, rules[1].intercept_)


class Witness(NoResponse):
    """Nobody moves, and everybody must bring their own bound: their own features."""

    name = "best"

    def scores_after(self, score, X):
        np.testing.assert_array_equal(self.actions.max_value, X.numpy())
        return super().scores_after(score, X)


@pytest.mark.parametrize("settings", [{}, {"validation_fraction": 0.0}, {"optimiser": "lbfgs"}])
def test_shuffled_people_keep_their_own_bounds(people, settings):
    X, y = people
    witness = Witness(actions=ActionSet(max_value=X))
    classifier(None, response=witness, start="random", calibrate=True, **settings).fit(X, y)


def test_bounds_of_training_then_validation_rows(people):
    X, y = people
    train, held = slice(0, 80), slice(80, N)
    witness = Witness(actions=ActionSet(max_value=X))
    model = classifier(None, response=witness, start="random", calibrate=True)
    model.fit(X[train], y[train], validation=(X[held], y[held]))
    only_training = classifier(ActionSet(max_value=X[train] + 1.0))
    with pytest.raises(ParameterError, match="80 people but training and validation together"):
        only_training.fit(X[train], y[train], validation=(X[held], y[held]))


@pytest.mark.parametrize("kind", [BestResponse, ScalarResponse])
def test_the_risk_of_a_batch_is_that_of_its_people_one_by_one(people, kind):
    X, y = (torch.from_numpy(part.astype(float)) for part in people)
    rng = np.random.default_rng(0)
    upper = rng.uniform(0.0, 0.8, size=(N, D))
    score = LinearScore(D, torch.Generator().manual_seed(0))
    cost, batch = QuadraticCost(0.5), torch.from_numpy(rng.permutation(N)[:16])
    risk = StrategicRisk((kind(cost, ActionSet(upper=upper)),))
    together = risk.of_rows(batch).loss(score, X[batch], y[batch]).item()
    alone = [
        StrategicRisk((kind(cost, ActionSet(upper=upper[i])),))
        .loss(score, X[i : i + 1], y[i : i + 1])
        .item()
        for i in batch.tolist()
    ]
    assert together == pytest.approx(np.mean(alone), rel=1e-12)


def test_cross_validation_says_why_it_cannot_follow(people):
    X, y = people
    model = classifier(ActionSet(max_value=X + 1.0))
    with pytest.raises(ParameterError, match="cross-validation"):
        cross_val_score(model, X, y, cv=3, error_score="raise")
