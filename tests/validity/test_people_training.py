"""Training on estimated people is as good as training on the people themselves.

The figures: ``pytest tests/validity/test_people_training.py -m validity --log-cli-level=INFO``.
"""

from __future__ import annotations

import numpy as np
import pytest

from countermove import StrategicClassifier
from countermove.data.synthetic import GaussianPopulation
from countermove.response import NoResponse, RobustResponse
from countermove.response.base import Response

from .people_deployments import TRUTHS, Truth, log, matched, two_samples

POPULATION = GaussianPopulation((0.9, 0.5, 0.0, 0.2, 0.3))
WAYS = {"matched": matched, "two samples": two_samples}
SEEDS = 3


def everybody(truth: Truth) -> Response:
    """Return the people as they are: movers, and non-movers in their share."""
    share = truth.noise.non_movers
    if share == 0.0:
        return truth.response
    return RobustResponse([truth.response, NoResponse()], [1.0 - share, share])


def accuracy(assumed: Response, people: Response, seed: int) -> float:
    """Return the accuracy of a rule trained for assumed people, once the real ones answered it."""
    X, y = POPULATION.sample(2000, seed=100 + seed)
    rule = StrategicClassifier(response=assumed, standardise=False).fit(X, y)
    X_test, y_test = POPULATION.sample(10_000, seed=200 + seed)
    return rule.score_after_response(X_test, y_test, response=people)


@pytest.mark.validity
@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("truth", ["best, all move", "best", "smooth 0.5", "smooth 0.2"])
def test_training_on_the_estimate_is_within_a_point_of_training_on_the_truth(truth, way):
    people, lost = everybody(TRUTHS[truth]), []
    for seed in range(SEEDS):
        found = WAYS[way](TRUTHS[truth], seed).population()
        known, learned = (accuracy(assumed, people, seed) for assumed in (people, found))
        log.info("%s | %s | %d | known %.4f, learned %.4f", truth, way, seed, known, learned)
        lost.append(known - learned)
    assert np.mean(lost) <= 0.01
