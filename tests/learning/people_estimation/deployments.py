"""Deployments whose true cost is known."""

from __future__ import annotations

import numpy as np
import torch

from countermove.learning.people_estimation import Noise, estimate_people, simulate_deployment
from countermove.people import QuadraticCost
from countermove.response import BestResponse, ScalarResponse
from countermove.scores import LinearScore

SLOPE = np.array([1.0, 0.5, -0.7, 0.3, 0.8])
UNIT = float(np.linalg.norm(SLOPE))
NOISY = Noise(non_movers=0.2, optimisation_error=0.1, measurement=0.1)
RECORDED = Noise(non_movers=0.2, optimisation_error=0.1)


def rule(bias: float = -0.8) -> LinearScore:
    score = LinearScore(len(SLOPE))
    with torch.no_grad():
        score.weight.copy_(torch.from_numpy(SLOPE))
        score.bias.fill_(bias)
    return score


def best(scale: float = 1.0) -> BestResponse:
    return BestResponse(QuadraticCost(scale))


def smooth(scale: float = 1.0, temperature: float = 0.5) -> ScalarResponse:
    return ScalarResponse(QuadraticCost(scale), temperature=temperature)


def deployed(response, noise=None, n=5000, seed=0, bias=-0.8):
    """Return the rule, people before and people after."""
    X = np.random.default_rng(seed).normal(size=(n, len(SLOPE)))
    score = rule(bias)
    return score, X, simulate_deployment(score, X, response, noise, seed)


def estimated(response, noise=None, n=5000, seed=0, bias=-0.8, **settings):
    """Return the estimate of matched people."""
    score, X, after = deployed(response, noise, n, seed, bias)
    return estimate_people(score, X, after, key=(np.arange(n), np.arange(n)), **settings)
