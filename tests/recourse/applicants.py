"""People around a noisy linear rule, of whom one feature is actionable."""

from __future__ import annotations

import numpy as np

from countermove.people import ActionSet


def some_applicants() -> tuple[np.ndarray, np.ndarray]:
    """Return 600 people with three features and labels in {0, 1}, two fifths favourable."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(600, 3))
    chance = 1.5 * X[:, 0] + 1.0 * X[:, 1] - 0.6
    return X, (chance + rng.logistic(0.0, 0.6, size=600) >= 0.0).astype(int)


def second_feature_only() -> ActionSet:
    """Return the actions: the second feature by at most 0.75."""
    return ActionSet(lower=[-0.75] * 3, upper=[0.75] * 3, immutable=(0, 2))
