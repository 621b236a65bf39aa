"""People, a score and what they may do about it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from countermove.data.synthetic import GaussianPopulation
from countermove.people import ActionSet
from countermove.scores import LinearScore


@pytest.fixture(scope="session")
def crowd() -> tuple[np.ndarray, np.ndarray]:
    """Return 300 people with two features and labels in {-1, +1}."""
    return GaussianPopulation(centre=(1.0, 0.5)).sample(300, seed=0)


@pytest.fixture(scope="session")
def score() -> LinearScore:
    """Return the score x₁ + x₂/2."""
    made = LinearScore(2)
    with torch.no_grad():
        made.weight.copy_(torch.tensor([1.0, 0.5], dtype=torch.float64))
    return made


@pytest.fixture(scope="session")
def half() -> ActionSet:
    """Allow half a unit of the first feature: a gain of half a point for everybody."""
    return ActionSet(lower=[-0.5, 0.0], upper=[0.5, 0.0])
