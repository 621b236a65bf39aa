"""Any network on the fixed features, the decision linear in the others."""

import numpy as np
import pytest
import torch
from torch import nn

from countermove import StrategicClassifier
from countermove.data.standardise import Standardiser
from countermove.errors import ParameterError, UnknownNameError
from countermove.response import BestResponse
from countermove.scores import PartlyLinearScore
from countermove.scores.storage import PublishedModel, save_model


@pytest.mark.parametrize("activation", ["tanh", "relu", "elu", "softplus"])
def test_every_activation_leaves_the_movable_part_linear(activation):
    draws = torch.Generator().manual_seed(0)
    score = PartlyLinearScore(4, [1, 3], (6, 5), draws, activation)
    X = torch.randn(9, 4, generator=draws, dtype=torch.float64).requires_grad_()
    (gradient,) = torch.autograd.grad(score(X).sum(), X)
    assert torch.allclose(gradient[:, [1, 3]], score.weight.expand(9, 2), rtol=1e-12)
    assert gradient[:, [0, 2]].abs().min() > 0.0 or activation == "relu"


def test_an_unknown_activation_is_refused():
    with pytest.raises(UnknownNameError, match="tanh"):
        PartlyLinearScore(2, [0], activation="tahn")


class Bump(nn.Module):
    """A network of one's own: high inside a ring of the fixed features."""

    def __init__(self) -> None:
        super().__init__()
        self.height = nn.Parameter(torch.zeros((), dtype=torch.float64))

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        return self.height * torch.exp(-X.square().sum(1, keepdim=True))


def test_a_network_of_ones_own_is_trained_through_the_response():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.where(X[:, 0] + 4.0 * np.exp(-(X[:, 1:] ** 2).sum(axis=1)) > 1.5, 1, 0)
    score = PartlyLinearScore(3, [0], network=Bump())
    rule = StrategicClassifier(
        score, response="best", max_epochs=40, optimiser="adam", selection="none"
    ).fit(X, y)
    straight = StrategicClassifier(
        response="best", max_epochs=40, optimiser="adam", selection="none"
    ).fit(X, y)
    bent = rule.score_after_response(X, y)
    assert bent > 0.95
    assert bent > straight.score_after_response(X, y) + 0.05
    moved = BestResponse().respond(rule.score_, X).x_new - X
    assert np.array_equal(moved[:, 1:], np.zeros((400, 2)))


def test_a_network_of_ones_own_is_not_stored(tmp_path):
    unit = Standardiser(np.zeros(2), np.ones(2), ("a", "b"))
    model = PublishedModel(PartlyLinearScore(2, [0], network=Bump()), unit, "digest")
    with pytest.raises(ParameterError, match="cannot be stored"):
        save_model(model, tmp_path / "m")
    assert not (tmp_path / "m").exists()
