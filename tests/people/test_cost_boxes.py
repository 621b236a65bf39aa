"""Boxes of costs: what they hold, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from countermove.errors import ParameterError
from countermove.people import LinearCost, MixtureCost, QuadraticCost, WeightedQuadraticCost
from countermove.people.cost_boxes import CostBox


def test_a_box_around_a_cost_reaches_as_far_on_every_side():
    box = CostBox.around(MixtureCost([0.5, -0.5], 0.1, 2.0), "direction", 2.0)
    low, high = box.edges
    assert low.tolist() == [-1.5, -2.5]
    assert high.tolist() == [2.5, 1.5]


def test_building_changes_the_coefficient_and_nothing_else():
    box = CostBox(MixtureCost([0.5, 0.5], 0.1, 2.0), "direction", -1.0, 1.0)
    values = torch.tensor([0.1, 0.2], dtype=torch.float64, requires_grad=True)
    built = box.build(values)
    assert built.direction is values
    assert built.describe() | {"direction": 0} == box.cost.describe() | {"direction": 0}


def test_the_price_of_a_built_cost_is_differentiable_in_the_coefficient():
    box = CostBox(WeightedQuadraticCost([1.0, 2.0]), "weights", 0.5, 3.0)
    values = box.start.requires_grad_()
    action = torch.tensor([[1.0, 3.0]], dtype=torch.float64)
    box.build(values).price(torch.zeros_like(action), action).sum().backward()
    assert values.grad.tolist() == [1.0, 9.0]


def test_clamping_finds_the_nearest_point():
    box = CostBox(QuadraticCost(1.0), "scale", 0.5, 2.0)
    assert float(box.clamped(torch.tensor(7.0))) == 2.0
    assert [float(cost.scale) for cost in box.ends()] == [0.5, 2.0]


@pytest.mark.parametrize(
    ("cost", "coefficient", "lower", "upper", "says"),
    [
        (QuadraticCost(1.0), "weights", 0.5, 2.0, "no coefficient 'weights'; it has scale"),
        (WeightedQuadraticCost([1.0, 5.0]), "weights", 0.5, 2.0, r"entries 1 .* widen it"),
        (QuadraticCost(1.0), "scale", 2.0, 0.5, "empty"),
        (QuadraticCost(1.0), "scale", 0.0, 2.0, "must be positive"),
        (QuadraticCost(1.0), "scale", 0.5, np.inf, "finite"),
        (LinearCost([1.0, 2.0]), "direction", [0.0, 0.0, 0.0], 3.0, r"shape \(3,\)"),
    ],
)
def test_boxes_that_make_no_sense_are_refused(cost, coefficient, lower, upper, says):
    with pytest.raises(ParameterError, match=says):
        CostBox(cost, coefficient, lower, upper)
