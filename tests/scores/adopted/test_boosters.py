"""XGBoost and CatBoost themselves, where they are installed (`make test-models`); their borders."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from countermove import adopt
from countermove.people import ActionSet
from countermove.recourse import calibrate_pare, recommend


def people(n: int = 500, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * [1.0, 3.0, 1e4, 1.0]
    X[:, 1] = np.round(X[:, 1])
    y = (X / [1.0, 3.0, 1e4, 1.0] @ [1.0, 0.5, -1.0, 0.5] + rng.normal(size=n) > 0.5).astype(int)
    return np.where(rng.random(X.shape) < 0.05, np.nan, X), y


def fitted(name: str) -> Any:
    library = pytest.importorskip(name)
    if name == "xgboost":
        return library.XGBClassifier(n_estimators=15, max_depth=3, n_jobs=1).fit(*people())
    model = library.CatBoostClassifier(
        iterations=15, depth=3, verbose=False, allow_writing_files=False, thread_count=1
    )
    return model.fit(*people())


@pytest.mark.parametrize("name", ["xgboost", "catboost"])
def test_a_booster_is_adopted_advised_and_calibrated(name: str) -> None:
    theirs = fitted(name)
    X = people()[0]
    model = adopt(theirs, X)
    assert np.abs(model.predict_proba(X) - theirs.predict_proba(X)).max() <= 1e-6
    allowed = ActionSet(**model.allowed(integer=["x1"], immutable=["x3"]))
    advice = recommend(model, X[:80], actions=allowed)
    found = advice.status == "FOUND"
    assert (found & np.isnan(X[:80]).any(axis=1)).any()
    assert advice.proven_cheapest[found].all()
    assert (theirs.predict(advice.x_new(X[:80])[found]) == 1).all()
    assert calibrate_pare(model, X[80:280], actions=allowed).threshold > 0.0


def test_a_border_that_tells_missing_numbers_is_no_place_to_go(tmp_path) -> None:
    # CatBoost asks whether a number is missing by the lowest float32 as a border.
    lowest = float(np.finfo(np.float32).min)
    said = {
        "features_info": {
            "float_features": [
                {"feature_index": j, "flat_feature_index": j, "feature_id": f"x{j}",
                 "nan_value_treatment": "AsFalse"}
                for j in range(2)
            ]
        },
        "oblivious_trees": [
            {
                "splits": [
                    {"border": lowest, "float_feature_index": 0, "split_type": "FloatFeature"},
                    {"border": 0.5, "float_feature_index": 1, "split_type": "FloatFeature"},
                ],
                "leaf_values": [9.0, -1.0, 9.0, 1.0],
            }
        ],
        "scale_and_bias": [1.0, [0.0]],
    }  # fmt: skip
    (tmp_path / "model.json").write_text(json.dumps(said))
    X = np.round(np.random.default_rng(0).normal(size=(40, 2)) * 2.0)
    X[0, 0] = np.nan
    model = adopt(tmp_path / "model.json", X)
    for columns in ([], ["x0", "x1"]):
        advice = recommend(model, X, actions=ActionSet(**model.allowed(integer=columns)))
        assert model.predict_proba(X)[0, 1] > 0.99
        refused = model.predict_proba(X)[:, 1] < 0.5
        assert (advice.status[refused] == "FOUND").all()
        moves = np.nan_to_num(advice.x_new(X) - X)
        assert (moves[:, 0] == 0.0).all()
        assert (moves[refused, 1] > 0.0).all()
