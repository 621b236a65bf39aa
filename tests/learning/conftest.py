"""People in two overlapping clouds, as scikit-learn users bring them."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(scope="session")
def crowd() -> tuple[np.ndarray, np.ndarray]:
    """Return 240 people with four features and labels in {-1, +1}."""
    rng = np.random.default_rng(3)
    y = np.where(rng.random(240) < 0.5, 1.0, -1.0)
    X = rng.normal(size=(240, 4)) + y[:, None] * np.array([1.5, 0.8, 0.0, 0.0])
    return X, y
