"""A promise on an adopted model fails no more often than it says: trees, and a black box.

The population is finite and drawn from with replacement, so its share without recourse at any
threshold is known: everybody's highest reachable score is searched once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import logit
from scipy.stats import binom
from sklearn.ensemble import GradientBoostingClassifier

from countermove import adopt
from countermove.people import ActionSet
from countermove.recourse import best_reachable, calibrate_pare

CALIBRATION, MISS_RATE, FAILURE = 120, 0.1, 0.1
ACTIONS = ActionSet(lower=[-0.7, 0.0, 0.0], upper=[0.7, 1.0, 0.0], immutable=[2])


def population() -> tuple[np.ndarray, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 3))
    y = (X.sum(axis=1) + rng.normal(size=len(X)) > 1.0).astype(int)
    return X[600:], GradientBoostingClassifier(n_estimators=20, random_state=0).fit(
        X[:600], y[:600]
    )


@pytest.mark.parametrize(
    ("kind", "draws"),
    [
        pytest.param("trees", 200, marks=[pytest.mark.validity, pytest.mark.quick_validity]),
        pytest.param("trees", 1_000, marks=pytest.mark.validity),
        pytest.param("black_box", 40, marks=pytest.mark.validity),
    ],
)
def test_the_promise_is_broken_no_more_often_than_it_says(kind: str, draws: int) -> None:
    people, fitted = population()
    model = adopt(fitted if kind == "trees" else fitted.predict_proba, people)
    assert model.exactness == kind
    reached = best_reachable(model, people, actions=ACTIONS).score
    rng, broken = np.random.default_rng(1), 0
    for _ in range(draws):
        chosen = people[rng.integers(len(people), size=CALIBRATION)]
        promise = calibrate_pare(model, chosen, "auto", MISS_RATE, FAILURE, actions=ACTIONS)
        broken += bool((reached < logit(promise.threshold) - 1e-9).mean() > MISS_RATE)
    assert broken <= binom.ppf(0.999, draws, FAILURE)
