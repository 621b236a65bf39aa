"""XGBoost and CatBoost themselves, where they are installed (`make test-models`); their borders."""

from __future__ import annotations

import numpy as np
import pytest

from countermove import adopt
from countermove.people import ActionSet
from countermove.recourse import calibrate_pare, recommend
from countermove.scores.trees import TreeEnsemble, TreeScore


def people(n: int = 500, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * [1.0, 3.0, 1e4, 1.0]
    X[:, 1] = np.round(X[:, 1])
    y = (X / [1.0, 3.0, 1e4, 1.0] @ [1.0, 0.5, -1.0, 0.5] + rng.normal(size=n) > 0.5).astype(int)
    return np.where(rng.random(X.shape) < 0.05, np.nan, X), y


def test_an_xgboost_model_is_adopted_advised_and_calibrated() -> None:
    xgboost = pytest.importorskip("xgboost")
    X, y = people()
    theirs = xgboost.XGBClassifier(n_estimators=15, max_depth=3, n_jobs=1).fit(X, y)
    model = adopt(theirs, X)
    assert np.abs(model.predict_proba(X) - theirs.predict_proba(X)).max() <= 1e-6
    allowed = ActionSet(**model.allowed(integer=["x1"], immutable=["x3"]))
    advice = recommend(model, X[:80], actions=allowed)
    found = advice.status == "FOUND"
    assert (found & np.isnan(X[:80]).any(axis=1)).any()
    assert advice.proven_cheapest[found].all()
    assert (theirs.predict(advice.x_new(X[:80])[found]) == 1).all()
    assert calibrate_pare(model, X[80:280], actions=allowed).threshold > 0.0


@pytest.mark.filterwarnings("ignore:CatBoostClassifier is adopted as a black box")
def test_a_catboost_model_is_asked_and_never_proven_about() -> None:
    catboost = pytest.importorskip("catboost")
    X, y = people()
    X = np.nan_to_num(X)
    theirs = catboost.CatBoostClassifier(
        iterations=15, depth=3, verbose=False, allow_writing_files=False, thread_count=1
    ).fit(X, y)
    model = adopt(theirs, X)
    assert model.exactness == "black_box"
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(X), atol=1e-12)
    advice = recommend(model, X[:40], actions=ActionSet(**model.allowed(immutable=["x3"])))
    found = advice.status == "FOUND"
    assert found.any()
    assert not advice.proven_cheapest.any()
    assert (theirs.predict(advice.x_new(X[:40])[found]) == 1).all()


def test_a_border_that_tells_missing_numbers_is_no_place_to_go() -> None:
    """Some libraries ask whether a number is missing by the lowest float32 as a border."""
    lowest = float(np.finfo(np.float32).min)
    ensemble = TreeEnsemble(
        2, np.array([1, 0, 0, 0, 0, 0, 0]), np.array([0.5, lowest, lowest, 0.0, 0.0, 0.0, 0.0]),
        np.array([1, 3, 5, -1, -1, -1, -1]), np.array([2, 4, 6, -1, -1, -1, -1]),
        np.ones(7, bool), np.array([0.0, 0.0, 0.0, 9.0, -1.0, 9.0, 1.0]), np.array([0]), {},
    )  # fmt: skip
    X = np.round(np.random.default_rng(0).normal(size=(40, 2)) * 2.0)
    X[0, 0] = np.nan
    score = TreeScore(ensemble)
    now = score.raw(X)
    assert now[0] > 4.0
    for columns in ([], [0, 1]):
        advice = recommend(score, X, actions=ActionSet(integer=columns))
        assert (advice.status[now < 0.0] == "FOUND").all()
        moves = np.nan_to_num(advice.x_new(X) - X)
        assert (moves[:, 0] == 0.0).all()
        assert (moves[now < 0.0, 1] > 0.0).all()
