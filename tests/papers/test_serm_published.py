"""SERM, Figure 1 right, with the published protocol (reference: 1a, six splits; here three)."""

from __future__ import annotations

import copy
from functools import cache

import numpy as np
import pytest
import torch

from countermove import StrategicClassifier
from countermove.learning import accuracy_after
from countermove.learning.comparison import train_blind
from countermove.people import QuadraticCost
from countermove.response import NoResponse, named_response

from .parity import DATASETS, SCALES, splits

pytestmark = [pytest.mark.paper, pytest.mark.slow]

BATCH = {"credit": 64, "distress": 24, "fraud": 24, "spam": 128}
PUBLISHED = {
    "credit": ((0.6825, 0.0207), (0.7069, 0.0127), (0.7122, 0.0167)),
    "distress": ((0.9524, 0.0292), (0.9524, 0.0199), (0.9524, 0.0168)),
    "fraud": ((0.9371, 0.0198), (0.9371, 0.0293), (0.9328, 0.0305)),
    "spam": ((0.7944, 0.0164), (0.7741, 0.0367), (0.7857, 0.0308)),
}
"""Mean and standard deviation of SERM's accuracy at t = 0.5, 1, 2."""
ADAM = {"loss": "hinge", "optimiser": "adam", "selection": "none"}
PROTOCOL = ADAM | {
    "response": "published",
    "temperature": 0.5,
    "eval_temperature": 0.2,
    "learning_rate": 0.5,
    "max_epochs": 7,
    "patience": 4,
    "standardise": False,
}
PUBLISHED_BLIND = ADAM | {
    "learning_rate": 0.1,
    "max_epochs": 7,
    "patience": 4,
    "start": "random",
    "calibrate": False,
}


@cache
def published_cell(name: str, scale: float) -> tuple[float, float]:
    """Return the mean accuracy under the published response, and under the best response."""
    found = []
    for split in splits(name):
        rule = StrategicClassifier(cost=QuadraticCost(scale), batch_size=BATCH[name], **PROTOCOL)
        rule.fit(*split.train, validation=split.validation)
        own = rule.score_after_response(*split.test)
        found.append((own, rule.score_after_response(*split.test, response="best")))
    own, rational = np.mean(found, axis=0)
    return float(own), float(rational)


def test_every_cell_lies_near_the_published_one():
    deviations = {
        (name, scale): (published_cell(name, scale)[0] - mean) / deviation
        for name in DATASETS
        for scale, (mean, deviation) in zip(SCALES, PUBLISHED[name], strict=True)
    }
    assert max(map(abs, deviations.values())) <= 2.5, deviations
    assert sum(abs(value) <= 1.5 for value in deviations.values()) >= 9, deviations


@pytest.mark.parametrize("name", DATASETS)
def test_published_models_fall_when_people_are_rational(name):
    """Near chance or the majority class in every cell (re-evaluated originals: .495 to .643)."""
    for scale in SCALES:
        own, rational = published_cell(name, scale)
        assert rational < 0.67
        assert rational < own - 0.10


@pytest.mark.parametrize("name", DATASETS)
def test_the_published_evaluation_is_gamed_by_the_scale_of_the_blind_score(name):
    """The paper's blind score times 50 reaches the benchmark with no strategic training at all."""
    for scale in SCALES:
        published = named_response("published", QuadraticCost(scale), None, 0.2)
        gamed, benchmark = [], []
        for split in splits(name):
            blind = train_blind(split, batch_size=BATCH[name], **PUBLISHED_BLIND)
            loud = copy.deepcopy(blind.score_)
            with torch.no_grad():
                for parameter in loud.parameters():
                    parameter.mul_(50.0)
            benchmark.append(accuracy_after(blind.score_, *split.test, NoResponse()).accuracy)
            gamed.append(accuracy_after(loud, *split.test, published).accuracy)
        assert np.mean(gamed) == pytest.approx(np.mean(benchmark), abs=0.010)
