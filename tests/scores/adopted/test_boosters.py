"""XGBoost and CatBoost themselves, where they are installed (`make test-models`)."""

from __future__ import annotations

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
