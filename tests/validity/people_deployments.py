"""Deployments of 5,000 people with known answers, and what estimates make of many of them.

The named noise: 20 % do not move, movers miss their mark by 10 % of the move, records by 0.1
standard deviations along the rule (or are exact).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from countermove.learning.people_estimation import (
    Noise,
    PeopleEstimate,
    estimate_people,
    simulate_deployment,
)
from countermove.people import ActionSet, QuadraticCost
from countermove.response import BestResponse, ScalarResponse
from countermove.response.base import Response
from countermove.scores import LinearScore

PEOPLE = 5000
SLOPE = np.array([1.0, 0.5, -0.7, 0.3, 0.8])
UNIT = float(np.linalg.norm(SLOPE))
BIAS = -0.8
SCALE = 1.0
MEASURED = Noise(non_movers=0.2, optimisation_error=0.1, measurement=0.1)
RECORDED = Noise(non_movers=0.2, optimisation_error=0.1)
EVERYBODY = Noise(optimisation_error=0.1, measurement=0.1)
BOUNDED = ActionSet(
    min_value=np.full(5, -2.0), max_value=np.full(5, 2.0), only_increase=[0], immutable=[3]
)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Truth:
    """Who the people are, and what blurs the picture."""

    response: Response
    noise: Noise
    actions: ActionSet | None = None


def best(noise: Noise, actions: ActionSet | None = None) -> Truth:
    return Truth(BestResponse(QuadraticCost(SCALE), actions), noise, actions)


def smooth(temperature: float, noise: Noise = MEASURED) -> Truth:
    return Truth(ScalarResponse(QuadraticCost(SCALE), temperature=temperature), noise)


TRUTHS = {
    "best": best(MEASURED),
    "best, recorded": best(RECORDED),
    "best, all move": best(EVERYBODY),
    "best, bounds": best(MEASURED, BOUNDED),
    "smooth 0.5": smooth(0.5),
    "smooth 0.2": smooth(0.2),
}


@dataclass(frozen=True)
class Tally:
    """Shares of repetitions: scale covered, model recognised, fit refused; and a usual width."""

    covered: float
    right: float
    refused: float
    width: float


def rule() -> LinearScore:
    score = LinearScore(len(SLOPE))
    with torch.no_grad():
        score.weight.copy_(torch.from_numpy(SLOPE))
        score.bias.fill_(BIAS)
    return score


def gaps(X: np.ndarray) -> np.ndarray:
    """Return distances below the boundary."""
    return -(X @ SLOPE + BIAS) / UNIT


def people(n: int, seed: int, actions: ActionSet | None = None) -> np.ndarray:
    X = np.random.default_rng(seed).normal(size=(n, len(SLOPE)))
    return X if actions is None else np.clip(X, actions.min_value, actions.max_value)


def matched(truth: Truth, seed: int) -> PeopleEstimate:
    """Return the estimate from one deployment, people matched by key."""
    X, ids = people(PEOPLE, seed, truth.actions), np.arange(PEOPLE)
    after = simulate_deployment(rule(), X, truth.response, truth.noise, seed)
    return estimate_people(rule(), X, after, key=(ids, ids), actions=truth.actions)


def two_samples(truth: Truth, seed: int) -> PeopleEstimate:
    """Return the estimate from people before and other people after."""
    X = people(2 * PEOPLE, seed, truth.actions)
    after = simulate_deployment(rule(), X, truth.response, truth.noise, seed)
    return estimate_people(rule(), X[:PEOPLE], after[PEOPLE:], actions=truth.actions)


def same_people(truth: Truth, seed: int) -> PeopleEstimate:
    """Return the estimate from one deployment whose keys are lost."""
    X = people(PEOPLE, seed, truth.actions)
    after = simulate_deployment(rule(), X, truth.response, truth.noise, seed)
    return estimate_people(rule(), X, after, actions=truth.actions)


def estimates(way, name: str, repetitions: int) -> Iterator[PeopleEstimate]:
    for seed in range(repetitions):
        yield way(TRUTHS[name], seed)


def tally(way, name: str, repetitions: int) -> Tally:
    """Estimate many deployments; the log says what came out."""
    covered, right, refused, widths = [], [], [], []
    for found in estimates(way, name, repetitions):
        ends = found.scale_interval
        covered.append(ends is not None and ends.contains(SCALE))
        right.append(found.response == TRUTHS[name].response.name)
        refused.append(found.misspecified)
        widths.append(np.inf if ends is None or not ends.closed else ends.high / ends.low - 1.0)
    counted = Tally(
        *(float(np.mean(part)) for part in (covered, right, refused)), np.median(widths)
    )
    log.info("%s | %s | %d | %s", way.__name__, name, repetitions, counted)
    return counted
