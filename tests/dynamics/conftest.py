"""A small town whose people respond to a logistic model."""

from __future__ import annotations

import numpy as np
import pytest

from countermove.dynamics.crowd import Crowd
from countermove.people import ActionSet, QuadraticCost
from countermove.response import GainResponse


def town(n: int = 300, d: int = 3, seed: int = 0) -> Crowd:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    chance = 1.0 / (1.0 + np.exp(-(X @ np.array([1.0, -0.7, 0.4])[:d] + 0.2)))
    return Crowd(X, (rng.random(n) < chance).astype(float))


@pytest.fixture
def people() -> Crowd:
    return town()


@pytest.fixture
def gaining():
    """People who move two of the columns by strength times the weights."""

    def make(strength: float, immutable: tuple[int, ...] = (1,)) -> GainResponse:
        return GainResponse(QuadraticCost(1.0 / (2.0 * strength)), ActionSet(immutable=immutable))

    return make
