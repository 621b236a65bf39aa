"""The intervals of estimated costs cover the truth as often as they say, and models are recognised.

Deployments of 5,000 people under named noise: 20 % do not move, movers miss their mark by 10 % of
the move, records by 0.1 standard deviations along the rule (or are exact).
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from countermove import StrategicClassifier
from countermove.data.synthetic import GaussianPopulation
from countermove.learning.people_estimation import Noise, estimate_people, simulate_deployment
from countermove.people import QuadraticCost
from countermove.response import BestResponse, NoResponse, RobustResponse, ScalarResponse
from countermove.scores import LinearScore

PEOPLE = 5000
SLOPE = np.array([1.0, 0.5, -0.7, 0.3, 0.8])
MEASURED = Noise(non_movers=0.2, optimisation_error=0.1, measurement=0.1)
RECORDED = Noise(non_movers=0.2, optimisation_error=0.1)
TRUTHS = {
    "best": (BestResponse(QuadraticCost(1.0)), MEASURED),
    "best, recorded": (BestResponse(QuadraticCost(1.0)), RECORDED),
    "smooth 0.5": (ScalarResponse(QuadraticCost(1.0), temperature=0.5), MEASURED),
    "smooth 0.2": (ScalarResponse(QuadraticCost(1.0), temperature=0.2), MEASURED),
}


def rule() -> LinearScore:
    score = LinearScore(len(SLOPE))
    with torch.no_grad():
        score.weight.copy_(torch.from_numpy(SLOPE))
        score.bias.fill_(-0.8)
    return score


def estimates(truth: str, repetitions: int):
    """Yield an estimate per simulated deployment."""
    response, noise = TRUTHS[truth]
    ids = np.arange(PEOPLE)
    for seed in range(repetitions):
        X = np.random.default_rng(seed).normal(size=(PEOPLE, len(SLOPE)))
        after = simulate_deployment(rule(), X, response, noise, seed)
        yield estimate_people(rule(), X, after, key=(ids, ids))


def check(truth: str, repetitions: int, least_covered: float, least_right: float) -> None:
    name, covered, right, refused = TRUTHS[truth][0].name, 0, 0, 0
    for found in estimates(truth, repetitions):
        right += found.response == name
        covered += found.scale_interval is not None and found.scale_interval.contains(1.0)
        refused += found.misspecified
    assert covered >= least_covered * repetitions
    assert right >= least_right * repetitions
    # The test of fit is at one in a thousand.
    assert refused <= 1 + 0.01 * repetitions


@pytest.mark.validity
@pytest.mark.quick_validity
@pytest.mark.parametrize("truth", ["best", "smooth 0.5"])
def test_intervals_cover_and_models_are_recognised_quickly(truth):
    # 12 draws at 95 %: fewer than 9 covered has a chance of one in four hundred.
    check(truth, 12, 0.75, 0.9)


@pytest.mark.validity
@pytest.mark.slow
@pytest.mark.parametrize("truth", TRUTHS)
def test_intervals_cover_and_models_are_recognised(truth):
    check(truth, 500, 0.93, 0.95)


@pytest.mark.validity
@pytest.mark.slow
@pytest.mark.parametrize("truth", TRUTHS)
def test_training_on_the_estimate_is_within_a_point_of_training_on_the_truth(truth):
    response, noise = TRUTHS[truth]
    people = RobustResponse([response, NoResponse()], [1 - noise.non_movers, noise.non_movers])
    population = GaussianPopulation((0.9, 0.5, 0.0, 0.2, 0.3))
    X, y = population.sample(2000, seed=1)
    X_test, y_test = population.sample(10_000, seed=2)
    for found in estimates(truth, 3):
        known, learned = (
            StrategicClassifier(response=assumed, loss="logistic", max_epochs=15)
            .fit(X, y)
            .score_after_response(X_test, y_test, response=people)
            for assumed in (people, found.population())
        )
        assert learned >= known - 0.01
