"""Another threshold or rule is chosen on some people, and judged on others."""

import numpy as np
import pytest
import torch

from countermove.people import QuadraticCost
from countermove.response import BestResponse, NoResponse
from countermove.scores import LinearScore
from countermove.transfer.comparison import AS_IS, BEST, best_threshold, compare_rules


def line(slope: float, bias: float) -> LinearScore:
    score = LinearScore(1)
    with torch.no_grad():
        score.weight.fill_(slope)
        score.bias.fill_(bias)
    return score


def people(seed: int, n: int = 4000):
    x = np.random.default_rng(seed).normal(size=(n, 1))
    return x, np.where(x[:, 0] >= 0.0, 1.0, -1.0)


@pytest.fixture
def response():
    return BestResponse(QuadraticCost(2.0))  # people gain at most one standard deviation


def test_the_best_threshold_is_what_people_can_gain(response):
    assert best_threshold(line(1.0, 0.0), people(0), response) == pytest.approx(1.0, abs=0.1)
    assert best_threshold(line(1.0, 0.0), people(0), NoResponse()) == 0.0


def test_gains_are_paired_and_cover_the_truth(response):
    other = {"one further": line(1.0, -1.0)}
    found = compare_rules(line(1.0, 0.0), other, people(0), people(1), response, 0.05)
    lost = found[AS_IS]
    assert lost["nobody_moves"] == 1.0
    assert lost["gain"]["value"] == 0.0
    # P(-1 <= X < 0) = .341 is what everybody who moves up costs the rule as it is.
    for name in (BEST, "one further"):
        gain = found[name]["gain"]
        assert gain["low"] < 0.341 < gain["high"]
        assert found[name]["after_response"] == pytest.approx(
            lost["after_response"] + gain["value"]
        )
