"""The bias search finds the best intercept, whatever people do."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from countermove.errors import ParameterError
from countermove.learning import bias_search
from countermove.learning.evaluation import accuracy_after, worst_accuracy
from countermove.learning.intercept import best_cut, best_shift, shift_intercept
from countermove.people import ActionSet, QuadraticCost
from countermove.response import BestResponse, NoResponse, ScalarResponse
from countermove.scores import LinearScore

POPULATIONS = {
    "none": (NoResponse(),),
    "best": (BestResponse(QuadraticCost(0.7)),),
    "best in a box": (BestResponse(QuadraticCost(0.7), ActionSet(upper=[0.3, 0.3, 0.2, 0.0])),),
    "smooth": (ScalarResponse(QuadraticCost(0.7), temperature=0.5),),
    "robust": (BestResponse(), ScalarResponse(temperature=0.3), NoResponse()),
}


@pytest.fixture
def score() -> LinearScore:
    score = LinearScore(4)
    with torch.no_grad():
        score.weight.copy_(torch.tensor([1.0, 0.4, -0.3, 0.2]))
        score.bias.fill_(5.0)
    return score


@pytest.mark.parametrize("name", POPULATIONS)
def test_no_intercept_on_a_fine_grid_beats_the_search(score, crowd, name):
    X, y = crowd
    members = POPULATIONS[name]
    found = bias_search(score, members, X, y)
    best = worst_accuracy(found, X, y, members)
    rival = bias_search(score, members, X, y)
    grid = []
    for bias in np.linspace(-4.0, 4.0, 161):
        with torch.no_grad():
            rival.bias.fill_(bias)
        grid.append(worst_accuracy(rival, X, y, members))
    assert best >= max(grid) - 1e-12
    assert torch.equal(found.weight, score.weight)


@pytest.mark.parametrize("name", POPULATIONS)
def test_the_accuracy_promised_is_the_accuracy_measured(score, crowd, name):
    X, y = crowd
    cut = best_shift(score, POPULATIONS[name], X, y)
    found = bias_search(score, POPULATIONS[name], X, y)
    measured = worst_accuracy(found, X, y, POPULATIONS[name])
    assert measured == pytest.approx(cut.accuracy, abs=1.5 / len(y))


def test_weights_replace_the_worst_member_by_a_mean(score, crowd):
    X, y = crowd
    members = (NoResponse(), BestResponse())
    towards_first = shift_intercept(
        score, best_shift(score, members, X, y, weights=(1.0, 0.0)).shift
    )
    alone = bias_search(score, members[:1], X, y)
    assert accuracy_after(towards_first, X, y, members[0]) == accuracy_after(
        alone, X, y, members[0]
    )


def test_a_flat_rule_is_moved_to_the_larger_class(crowd):
    X, _ = crowd
    y = np.where(np.arange(len(X)) < 70, 1.0, -1.0)
    found = bias_search(LinearScore(4), (BestResponse(),), X, y)
    assert accuracy_after(found, X, y, BestResponse()).accuracy == 170 / 240


def test_the_cut_lies_in_the_middle_of_the_widest_best_gap():
    thresholds = np.array([-2.0, -1.0, 1.0, 4.0])
    labels = np.array([1.0, 1.0, -1.0, -1.0])
    cut = best_cut([[(1.0, thresholds)]], labels)
    assert (cut.shift, cut.accuracy) == (0.0, 1.0)


def test_a_search_needs_people(score, crowd):
    with pytest.raises(ParameterError, match="at least one response"):
        best_shift(score, (), *crowd)
