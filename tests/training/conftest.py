"""A population of two Gaussian clouds and the plainest objective on it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from countermove.scores import Score
from countermove.training import Loss, TrainingRows


@dataclass
class BlindRisk:
    """Nobody moves; counts how often it was asked."""

    loss_function: Loss = field(default_factory=Loss)
    batches: list[Tensor] = field(default_factory=list)

    def loss(self, score: Score, X: Tensor, y: Tensor) -> Tensor:
        if torch.is_grad_enabled():
            self.batches.append(X[:, -1].clone())
        return self.loss_function(score(X), y)

    def judge(self, score: Score, X: Tensor, y: Tensor) -> tuple[float, float]:
        scores = score(X).detach()
        right = (scores >= 0) == (y > 0)
        return float(right.double().mean()), float(self.loss_function(scores, y))

    def for_epoch(self, epoch: int) -> BlindRisk:
        return self

    def of_rows(self, rows: Tensor) -> BlindRisk:
        return self

    def parameters(self) -> Iterable[nn.Parameter]:
        return ()

    def settle(self) -> None:
        """Nothing besides the score is learned."""


@pytest.fixture
def risk() -> BlindRisk:
    return BlindRisk()


@pytest.fixture(scope="session")
def sample() -> TrainingRows:
    """Return 150 + 60 people around (±1, ±1/2, 0), 6 % of the labels flipped."""
    rng = np.random.default_rng(7)
    y = np.where(rng.random(210) < 0.5, 1.0, -1.0)
    X = rng.normal(size=(210, 3)) + y[:, None] * np.array([1.0, 0.5, 0.0])
    y = np.where(rng.random(210) < 0.06, -y, y)
    X_all, y_all = torch.from_numpy(X), torch.from_numpy(y)
    return TrainingRows(X_all[:150], y_all[:150], X_all[150:], y_all[150:])
