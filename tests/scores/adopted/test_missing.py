"""Who misses a number stays without it; trees know where to go, and advice is about the rest."""

from __future__ import annotations

from itertools import product
from typing import Any

import lightgbm
import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from countermove import adopt
from countermove.errors import DataError
from countermove.people import ActionSet, QuadraticCost
from countermove.recourse import calibrate_pare, recommend
from countermove.response import BestResponse

PLACES = range(-3, 4)


def people(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, size=(n, 4)).astype(float)
    y = (X @ [1.0, 1.0, -1.0, 0.5] + 2.0 * rng.normal(size=n) > 1.0).astype(int)
    return np.where(rng.random(X.shape) < 0.15, np.nan, X), y


MODELS = {
    "lightgbm": lightgbm.LGBMClassifier(n_estimators=12, num_leaves=5, verbose=-1),
    "histograms": HistGradientBoostingClassifier(max_iter=12, max_leaf_nodes=5, random_state=0),
}


def cheapest_by_trying(fitted: Any, x: np.ndarray, unit: np.ndarray) -> float:
    """The least cost over every whole place of what x has and may change."""
    free = [j for j in range(3) if not np.isnan(x[j])]
    places = np.repeat(x[None], len(PLACES) ** len(free), axis=0)
    places[:, free] = list(product(PLACES, repeat=len(free)))
    right = fitted.predict_proba(places)[:, 1] >= 0.5
    paid = (np.nan_to_num(places - x) ** 2 / unit**2).sum(axis=1)
    return float(paid[right].min()) if right.any() else np.inf


@pytest.mark.parametrize("name", list(MODELS))
@pytest.mark.parametrize("digits", [None, 2])
def test_advice_equals_trying_every_place_of_what_is_there(name: str, digits: int | None) -> None:
    fitted = MODELS[name].fit(*people())
    model = adopt(fitted, people()[0])
    allowed = ActionSet(
        **model.allowed(
            immutable=["x3"],
            integer=["x0", "x1", "x2"],
            bounds=dict.fromkeys(("x0", "x1", "x2"), (-3, 3)),
        )
    )
    fresh = people(60, seed=1)[0]
    advice = recommend(model, fresh, actions=allowed, digits=digits)
    refused = advice.status != "NOT_NEEDED"
    assert (refused & np.isnan(fresh).any(axis=1)).sum() > 5
    unit = model.standardiser_.scale
    expected = np.array([cheapest_by_trying(fitted, x, unit) for x in fresh])
    assert set(advice.status[refused]) <= {"FOUND", "PROVEN_NONE"}
    assert np.array_equal(advice.status[refused] == "FOUND", np.isfinite(expected[refused]))
    found = advice.status == "FOUND"
    np.testing.assert_allclose(advice.cost[found], expected[found], rtol=1e-9)
    assert advice.proven_cheapest[found].all()
    assert (advice.action[found][np.isnan(fresh[found])] == 0.0).all()
    assert (fitted.predict(advice.x_new(fresh)[found]) == 1).all()


def test_they_take_part_in_responses_and_promises() -> None:
    fitted = MODELS["lightgbm"].fit(*people())
    model = adopt(fitted, people()[0])
    X = people(200, seed=2)[0]
    response = BestResponse(QuadraticCost(1.0), ActionSet(immutable=[3]))
    moved = response.respond(model.score_, X)
    assert np.array_equal(np.isnan(moved.x_new), np.isnan(X))
    assert not np.isnan(moved.cost).any()
    assert (moved.moved & np.isnan(X).any(axis=1)).any()
    allowed = ActionSet(**model.allowed(immutable=["x3"]))
    assert 0.0 < calibrate_pare(model, X, actions=allowed, miss_rate=0.1).threshold < 1.0


def test_a_gap_the_model_never_saw_is_named() -> None:
    X, y = people()
    whole = np.nan_to_num(X)
    model = adopt(MODELS["lightgbm"].fit(whole, y), whole)
    asked = whole[:10].copy()
    asked[[2, 7], 1] = np.nan
    with pytest.raises(DataError, match=r"'x1' is missing in rows 2, 7, but was never missing"):
        recommend(model, asked, actions=ActionSet(**model.allowed()))
