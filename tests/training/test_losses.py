"""The losses say what their formulas say."""

from __future__ import annotations

import math

import pytest
import torch

from countermove.errors import ParameterError, UnknownNameError
from countermove.training import Loss, balanced_weights
from countermove.training.losses import LOSSES

SCORES = torch.tensor([2.0, 0.5, -1.25, 0.0], dtype=torch.float64)
SIGNS = torch.tensor([1.0, -1.0, -1.0, 1.0], dtype=torch.float64)


def test_hinge_is_the_mean_shortfall_of_the_margin_below_one():
    assert float(Loss("hinge")(SCORES, SIGNS)) == pytest.approx((0.0 + 1.5 + 0.0 + 1.0) / 4)


def test_logistic_is_the_mean_negative_log_probability():
    expected = sum(
        math.log1p(math.exp(-s * y)) for s, y in zip(SCORES.tolist(), SIGNS.tolist(), strict=True)
    )
    assert float(Loss("logistic")(SCORES, SIGNS)) == pytest.approx(expected / 4)


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_gradients_agree_with_differences(name):
    scores = SCORES.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda s: Loss(name, (0.5, 2.0))(s, SIGNS), (scores,))


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_losses_stay_finite_at_extreme_scores(name):
    assert torch.isfinite(Loss(name)(1e4 * SCORES, SIGNS))


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_class_weights_multiply_each_person_of_a_class(name):
    values = LOSSES[name](SCORES, SIGNS)
    expected = (3.0 * values[0] + 0.5 * values[1] + 0.5 * values[2] + 3.0 * values[3]) / 4
    assert torch.allclose(Loss(name, (0.5, 3.0))(SCORES, SIGNS), expected)


def test_balanced_weights_give_both_classes_half_of_the_say():
    y = torch.tensor([1.0, -1.0, -1.0, -1.0], dtype=torch.float64)
    refused, favoured = balanced_weights(y)
    assert favoured * 1 == pytest.approx(refused * 3) == pytest.approx(len(y) / 2)


def test_balanced_weights_of_one_class_are_refused():
    with pytest.raises(ParameterError, match="both classes"):
        balanced_weights(torch.ones(3))


def test_an_unknown_loss_is_refused_with_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'hinge'"):
        Loss("hing")


@pytest.mark.parametrize("weights", [(0.0, 1.0), (1.0, -1.0), (float("nan"), 1.0)])
def test_class_weights_must_be_positive(weights):
    with pytest.raises(ParameterError, match="positive"):
        Loss("hinge", weights)


def test_class_weights_keep_their_last_digit():
    """In single precision 0.1 would be off by 1.5e-8 of itself."""
    scores, y = torch.zeros(1, dtype=torch.float64), -torch.ones(1, dtype=torch.float64)
    assert float(Loss("hinge", (0.1, 1.0))(scores, y)) == 0.1
