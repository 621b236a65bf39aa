"""Costs that are learned with the rule, or not known: boxes hold, worst cases are worst."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from countermove import StrategicClassifier
from countermove.errors import ParameterError
from countermove.experiments.serm.stylised import two_clouds
from countermove.learning.chosen_costs import (
    FlexibleCost,
    FlexibleRisk,
    UnknownCost,
    UnknownCostRisk,
    risk_of,
)
from countermove.learning.objectives import StrategicRisk
from countermove.people import MixtureCost, QuadraticCost, WeightedQuadraticCost
from countermove.people.cost_boxes import CostBox
from countermove.response import BestResponse, ScalarResponse
from countermove.scores import LinearScore

X, Y = two_clouds(120, 0.5, (0.3, 1.0), seed=0)
DIRECTIONS = CostBox.around(MixtureCost([0.5, 0.5], 0.3, 0.5), "direction", 0.2)
SCALES = CostBox(QuadraticCost(4.0), "scale", 2.0, 30.0)


def rows():
    return torch.from_numpy(X), torch.from_numpy(Y)


def rule() -> LinearScore:
    score = LinearScore(2)
    with torch.no_grad():
        score.weight.copy_(torch.tensor([2.0, 0.3], dtype=torch.float64))
        score.bias.fill_(-0.4)
    return score


def test_the_learned_cost_stays_in_its_box_and_leaves_its_start():
    flexible = FlexibleCost(DIRECTIONS, strength=0.0)
    clf = StrategicClassifier(cost=flexible, response="smooth", start="random", max_epochs=8)
    clf.fit(X, Y)
    learned = clf.cost_.direction.numpy()
    assert (np.abs(learned - 0.5) <= 0.2 + 1e-12).all()
    assert not np.allclose(learned, 0.5)
    # People are judged at the cost learned, not at the one given.
    judged = clf.score_after_response(X, Y, response=ScalarResponse(clf.cost_))
    assert clf.score_after_response(X, Y) == judged


def test_every_step_ends_in_the_box():
    risk = FlexibleRisk.starting(
        StrategicRisk((BestResponse(SCALES.cost),)), FlexibleCost(SCALES, strength=0.1)
    )
    with torch.no_grad():
        risk.values.fill_(100.0)
    risk.settle()
    assert float(risk.values.detach()) == 30.0
    assert float(risk.cost.scale) == 30.0


@pytest.mark.parametrize("response", [BestResponse(), ScalarResponse()], ids=["best", "smooth"])
def test_the_risk_is_differentiable_in_the_cost(response):
    risk = FlexibleRisk.starting(StrategicRisk((response,)), FlexibleCost(SCALES, 0.2))
    people, labels = rows()
    score = rule()
    (slope,) = torch.autograd.grad(risk.loss(score, people, labels), risk.values)

    def at(value):
        with torch.no_grad():
            risk.values.fill_(value)
            return float(risk.loss(score, people, labels))

    step = 1e-5
    assert float(slope) == pytest.approx((at(4 + step) - at(4 - step)) / (2 * step), rel=1e-4)


def test_penalties_are_zero_at_the_start_or_as_published():
    flexible = FlexibleCost(DIRECTIONS, 2.0)
    assert float(flexible.price(DIRECTIONS.start)) == 0.0
    moved = DIRECTIONS.start + 0.1
    assert float(flexible.price(moved)) == pytest.approx(2.0 * 0.02)
    published = FlexibleCost(DIRECTIONS, 1.0, "published")
    length, first = np.hypot(0.6, 0.6), np.hypot(0.5, 0.5)
    turned = np.hypot(*2 * [0.6 * 0.5 / (length * first) - 1.0])
    assert float(published.price(moved)) == pytest.approx(length - first + turned)


def test_the_worst_cost_of_a_box_is_at_least_as_bad_as_its_ends_and_any_grid_point_nearly():
    unknown = UnknownCost(box=SCALES, search="ascent", steps=12)
    base = StrategicRisk((BestResponse(SCALES.cost),))
    risk = risk_of(base, unknown)
    assert isinstance(risk, UnknownCostRisk)
    people, labels = rows()
    score = rule()
    with torch.no_grad():
        worst = float(risk.loss(score, people, labels))
        tried = [
            float(base.with_cost(QuadraticCost(float(t))).loss(score, people, labels))
            for t in np.linspace(2.0, 30.0, 200)
        ]
    assert worst >= max(tried[0], tried[-1]) - 1e-12
    assert worst >= max(tried) - 1e-3


@pytest.mark.parametrize("search", ["ends", "ascent"])
def test_training_for_a_box_protects_against_its_worst(search):
    wide = CostBox(QuadraticCost(4.0), "scale", 2.0, 30.0)
    robust = StrategicClassifier(
        cost=UnknownCost(box=wide, search=search, steps=2),
        batch_size=120,
        max_epochs=15,
        optimiser="adam",
    ).fit(X, Y)
    naive = StrategicClassifier(cost=wide.cost).fit(X, Y)

    def worst(clf):
        return min(clf.score_after_response(X, Y, BestResponse(cost)) for cost in wide.ends())

    assert worst(robust) >= worst(naive)
    assert robust.score_after_response(X, Y) <= worst(robust)


def test_a_finite_set_is_judged_member_by_member():
    costs = [WeightedQuadraticCost([2.0, 2.0]), WeightedQuadraticCost([9.0, 1.0])]
    clf = StrategicClassifier(cost=UnknownCost(costs=costs)).fit(X, Y)
    found = [clf.score_after_response(X, Y, BestResponse(cost)) for cost in costs]
    assert clf.score_after_response(X, Y) == min(found)


def test_a_response_object_takes_the_costs_of_the_set():
    costs = [QuadraticCost(2.0), QuadraticCost(20.0)]
    clf = StrategicClassifier(
        cost=UnknownCost(costs=costs), response=BestResponse(QuadraticCost(1.0))
    ).fit(X, Y)
    found = [clf.score_after_response(X, Y, BestResponse(cost)) for cost in costs]
    assert clf.score_after_response(X, Y) == min(found)


def test_interrupted_flexible_training_resumes_to_the_last_bit(tmp_path):
    def fit(epochs, file):
        clf = StrategicClassifier(
            cost=FlexibleCost(DIRECTIONS),
            response="smooth",
            start="random",
            max_epochs=epochs,
            patience=50,
        )
        return clf.fit(X, Y, checkpoint=file)

    fit(2, tmp_path / "part")
    resumed, whole = fit(4, tmp_path / "part"), fit(4, tmp_path / "whole")
    assert resumed.cost_.direction.tolist() == whole.cost_.direction.tolist()
    assert np.array_equal(resumed.coef_, whole.coef_)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "either a list of costs or a box"),
        ({"costs": [QuadraticCost()], "box": SCALES}, "not both"),
        ({"costs": []}, "at least two members, got 0"),
        ({"box": SCALES, "search": "luck"}, "search is one of"),
        ({"box": SCALES, "steps": 0}, "at least one step"),
    ],
)
def test_sets_that_say_nothing_are_refused(arguments, says):
    with pytest.raises(ParameterError, match=says):
        UnknownCost(**arguments)


def test_flexible_costs_need_a_known_penalty_and_a_strength():
    with pytest.raises(ParameterError, match="penalty is one of"):
        FlexibleCost(SCALES, penalty="none")
    with pytest.raises(ParameterError, match="strength"):
        FlexibleCost(SCALES, strength=-1.0)


def test_weights_do_not_go_with_unknown_costs():
    robust = {"kind": "robust", "members": ["best", "smooth"], "weights": [0.5, 0.5]}
    clf = StrategicClassifier(cost=UnknownCost(box=SCALES), response=robust)
    with pytest.raises(ParameterError, match="drop them"):
        clf.fit(X, Y)
