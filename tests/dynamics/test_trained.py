"""Our trainer as a platform: it retrains, and says what it cannot do."""

from __future__ import annotations

import numpy as np
import pytest

from countermove.dynamics import (
    LevelKPopulation,
    RespondingPopulation,
    TrainedLearner,
    linearise,
    retrain_until_stable,
)
from countermove.dynamics.crowd import mixture
from countermove.errors import DataError, ParameterError
from countermove.learning.classifier import StrategicClassifier


@pytest.fixture
def learner():
    return TrainedLearner(StrategicClassifier(response="none", loss="logistic", max_epochs=1))


def test_a_classifier_is_retrained_round_after_round(people, wishing, learner):
    people = people.of_rows(np.arange(60))
    population = LevelKPopulation.drawn(
        people, wishing(0.5), {1: 0.5, 2: 0.5}, np.random.default_rng(0)
    )
    run = retrain_until_stable(learner, population, rounds=2, tolerance=0.0)
    trained = StrategicClassifier(response="none", loss="logistic", max_epochs=1)
    trained.fit(people.X, people.y.astype(int))
    first = np.append(trained.coef_, trained.intercept_)
    assert np.allclose(np.sort(run.thetas[0]), np.sort(first))
    assert len(run.gaps) == 2
    assert run.gaps[0] > 0.0
    assert run.promise.rate is None
    assert "only fits" in run.words


def test_the_score_and_the_losses_are_the_classifiers(people, learner):
    theta = learner.fit(people)
    weight = learner.score(theta).weight.detach().numpy()
    bias = float(learner.score(theta).bias.detach())
    scores = people.X @ weight + bias
    expected = np.log1p(np.exp(-(2.0 * people.y - 1.0) * scores))
    assert np.allclose(learner.losses(theta, people), expected)
    assert learner.risk(theta, people) == pytest.approx(expected.mean())


def test_what_it_cannot_do_is_said(people, wishing, learner):
    with pytest.raises(ParameterError, match="after the first fit"):
        learner.score(np.zeros(4))
    theta = learner.fit(people)
    population = RespondingPopulation(people, wishing(1.0))
    with pytest.raises(ParameterError, match="only fits"):
        retrain_until_stable(learner, population, theta, method="gradient_descent")
    with pytest.raises(ParameterError, match="only fits"):
        retrain_until_stable(learner, population, theta, method="proximal")
    with pytest.raises(ParameterError, match="linearised"):
        linearise(learner, population, theta)
    with pytest.raises(DataError, match=r"LevelKPopulation\.drawn"):
        learner.fit(mixture([people, people], [0.9, 0.1]))
    with pytest.raises(DataError, match="labels 0 and 1"):
        learner.fit(people.moved(y=0.0 * people.y))
