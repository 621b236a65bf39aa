"""Every accuracy names its response."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import norm

from countermove.errors import NotEnoughRowsError, ParameterError
from countermove.learning import accuracy_after, sensitivity, usual_responses
from countermove.learning.evaluation import not_evaluated, stated_accuracy, usual_responses_to
from countermove.people import QuadraticCost
from countermove.response import (
    BestResponse,
    NoResponse,
    Population,
    RepresentationResponse,
    RobustResponse,
)
from countermove.scores import LinearScore, MLPScore, RepresentationScore

X = np.array([[-2.0], [-1.0], [0.5], [2.0]])
Y = np.array([-1.0, -1.0, 1.0, 1.0])


@pytest.fixture
def score() -> LinearScore:
    """Return the rule x >= 0."""
    score = LinearScore(1)
    with torch.no_grad():
        score.weight.fill_(1.0)
    return score


def test_accuracy_counts_people_where_they_end_up(score):
    still = accuracy_after(score, X, Y, NoResponse())
    assert (still.response, still.accuracy, still.accepted, still.n) == ("none", 1.0, 0.5, 4)
    # Reach is sqrt(2): the person at -1 crosses, the one at -2 does not.
    moved = accuracy_after(score, X, Y, BestResponse(QuadraticCost(1.0)))
    assert (moved.response, moved.accuracy, moved.accepted) == ("best", 0.75, 0.75)


def test_accuracy_under_people_who_differ_is_the_mean_chance_of_the_right_decision(score):
    best = BestResponse(QuadraticCost(1.0))
    people = Population(best, never=0.25, log_sd=0.5)
    # Crossing costs 4 from -2 and 1 from -1.
    chance = 0.75 * norm.cdf(np.log(2.0 / np.array([4.0, 1.0])) / 0.5)
    found = accuracy_after(score, X, Y, people)
    assert found.response == "population"
    assert found.accepted == pytest.approx((chance.sum() + 2) / 4)
    assert found.accuracy == pytest.approx((2 - chance.sum() + 2) / 4)
    mixed = Population([best, NoResponse()], [0.3, 0.7])
    parts = [accuracy_after(score, X, Y, kind).accuracy for kind in mixed.kinds]
    assert accuracy_after(score, X, Y, mixed).accuracy == pytest.approx(
        np.average(parts, weights=[0.3, 0.7])
    )
    several = RobustResponse([people, best])
    assert stated_accuracy(score, X, Y, several) == min(found.accuracy, parts[0])
    table = sensitivity({"rule": score}, X, Y, {"differ": people})
    assert table.accuracies()["differ"]["rule"] == found.accuracy


def test_the_sensitivity_table_holds_every_model_under_every_response(score):
    table = sensitivity({"rule": score}, X, Y, usual_responses(QuadraticCost(1.0)))
    expected = {"none", "best", "smooth_0.2", "smooth_0.5", "smooth_1", "published"}
    assert set(table.accuracies()) == expected
    assert table.accuracies()["none"] == {"rule": 1.0}
    assert table.worst("rule").accuracy == min(
        models["rule"] for models in table.accuracies().values()
    )
    assert table.to_frame().loc["best", "rule"] == 0.75


def test_labels_and_people_must_match(score):
    with pytest.raises(ParameterError, match="as many labels"):
        accuracy_after(score, X, Y[:2], NoResponse())


def test_nobody_has_no_accuracy(score):
    with pytest.raises(NotEnoughRowsError, match="at least one row"):
        accuracy_after(score, X[:0], Y[:0], NoResponse())


def test_a_report_says_which_responses_it_leaves_out_and_why():
    bending = usual_responses_to(MLPScore(2, (3,)), BestResponse())
    left_out = not_evaluated(bending)
    assert set(left_out) == (set(usual_responses()) - {"none"}) | {"burden"}
    assert all("no closed form" in reason for reason in left_out.values())
    assert not_evaluated(usual_responses_to(LinearScore(2), BestResponse())) == {}


def test_people_of_a_representation_move_there_under_every_name():
    score, people = RepresentationScore(3, (4, 2)), RepresentationResponse(BestResponse())
    responses = usual_responses_to(score, people)
    assert not_evaluated(responses) == {}
    X = np.random.default_rng(0).normal(size=(20, 3))
    table = sensitivity({"rule": score}, X, np.ones(20), responses).accuracies()
    assert set(table) == set(usual_responses())
    assert table["best"]["rule"] >= table["none"]["rule"]
