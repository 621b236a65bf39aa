"""A fitted model, adopted: the same probabilities, and recourse that the model itself confirms."""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np
import pytest
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.tree import DecisionTreeClassifier

from countermove import adopt
from countermove.errors import CountermoveError
from countermove.people import ActionSet
from countermove.recourse import calibrate_pare, recommend
from countermove.scores.adopted import AdoptedModel

MODELS: dict[str, Any] = {
    "tree": DecisionTreeClassifier(max_depth=6, random_state=0),
    "forest": RandomForestClassifier(15, max_depth=7, random_state=0),
    "extra": ExtraTreesClassifier(10, random_state=0),
    "boosted": GradientBoostingClassifier(n_estimators=25, random_state=0),
    "exponential": GradientBoostingClassifier(loss="exponential", n_estimators=25, random_state=0),
    "histograms": HistGradientBoostingClassifier(max_iter=25, random_state=0),
    "lightgbm": lightgbm.LGBMClassifier(n_estimators=25, verbose=-1, random_state=0),
}


def people(n: int = 600, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return amounts, a count, a share and a flag, and whether the loan was paid back."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 5))
    X = Z * [1.0, 3.0, 1e4, 1.0, 1.0] + [0.0, 5.0, 5e4, 0.0, 0.0]
    X[:, 1], X[:, 4] = np.round(X[:, 1]), X[:, 4] > 0.0
    y = (Z @ [1.0, 0.5, -1.0, 0.5, 0.5] + rng.normal(size=n) > 0.7).astype(int)
    return X, y


def holed(X: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(1)
    return np.where(rng.random(X.shape) < 0.1, np.nan, X)


@pytest.fixture(scope="module", params=list(MODELS))
def fitted(request: pytest.FixtureRequest) -> Any:
    return MODELS[request.param].fit(*people())


@pytest.fixture(scope="module")
def adopted(fitted: Any) -> AdoptedModel:
    return adopt(fitted, people()[0])


def actions(model: AdoptedModel) -> ActionSet:
    bounds = {"x4": (0.0, 1.0)}
    whole = ["x1", "x4"]
    return ActionSet(
        **model.allowed(immutable=["x3"], only_decrease=["x2"], integer=whole, bounds=bounds)
    )


@pytest.mark.parametrize("favourable", [0, 1])
def test_probabilities_are_the_models_own(fitted: Any, favourable: int) -> None:
    X = people(400, seed=5)[0]
    near = X.copy()
    near[:, 0] = X[:, 0].astype(np.float32)  # float32 values, and their neighbours in double
    near[::2, 0] = np.nextafter(near[::2, 0], np.inf)
    model = adopt(fitted, people()[0], favourable=favourable)
    for rows in (X, near):
        assert np.abs(model.predict_proba(rows) - fitted.predict_proba(rows)).max() <= 1e-6


@pytest.mark.parametrize("name", ["tree", "forest", "extra", "histograms", "lightgbm"])
def test_missing_values_go_where_the_model_sends_them(name: str) -> None:
    from sklearn.base import clone

    X, y = people()
    fitted = clone(MODELS[name]).fit(holed(X), y)
    model = adopt(fitted, holed(X))
    fresh = holed(people(400, seed=7)[0])
    assert np.abs(model.predict_proba(fresh) - fitted.predict_proba(fresh)).max() <= 1e-6


def test_rows_on_the_splits_themselves_fall_to_the_models_side(fitted: Any) -> None:
    model = adopt(fitted, people()[0])
    trees = model.score_.arrays
    nodes = np.flatnonzero((trees.left >= 0) & (trees.feature == 0))[:60]
    for nudge in (-np.inf, None, np.inf):
        X = people(len(nodes), seed=2)[0]
        split = trees.split[nodes]
        X[:, 0] = split if nudge is None else np.nextafter(split, nudge)
        assert np.abs(model.predict_proba(X) - fitted.predict_proba(X)).max() <= 1e-6


def test_advice_is_proven_cheapest_and_confirmed_by_the_model(
    fitted: Any, adopted: AdoptedModel
) -> None:
    X = people(150, seed=3)[0]
    allowed = actions(adopted)
    advice = recommend(adopted, X, actions=allowed)
    found = advice.status == "FOUND"
    assert found.sum() > 20
    assert advice.proven_cheapest[found].all()
    moved = advice.x_new(X)
    assert (fitted.predict(moved[found]) == 1).all()
    assert np.array_equal(moved[found, 1], np.round(moved[found, 1]))  # whole to the last digit
    assert (moved[found, 3] == X[found, 3]).all()
    assert not (advice.status == "NOT_FOUND").any()


def test_a_promise_is_calibrated_and_kept_on_fresh_people(adopted: AdoptedModel) -> None:
    allowed = actions(adopted)
    promise = calibrate_pare(adopted, people(300, seed=11)[0], actions=allowed)
    fresh = people(200, seed=12)[0]
    advice = recommend(adopted, fresh, actions=allowed, threshold=promise.threshold)
    helped = np.isin(advice.status, ("FOUND", "NOT_NEEDED")).mean()
    assert helped >= 0.9


def test_people_respond_to_the_standardised_score() -> None:
    from countermove.people import QuadraticCost
    from countermove.response import BestResponse

    X = people()[0]
    model = adopt(MODELS["boosted"].fit(*people()), X)
    rows = model.standardiser_.transform(X[:100])
    allowed = actions(model).after_standardising(
        model.standardiser_.mean, model.standardiser_.scale
    )
    response = BestResponse(QuadraticCost(), allowed)
    score = model.standardised_score_
    moves = response.respond(score, rows)
    after = score.of_raw(score.raw(moves.x_new)) >= 0.0
    assert np.array_equal(after, response.decisions_after(score, rows))
    assert moves.moved.any()
    assert (moves.cost[moves.moved] < 2.0).all()
    cost = response.crossing_cost(score, rows)
    assert np.array_equal(after, cost < 2.0)
    reach = response.scores_after(score, __import__("torch").from_numpy(rows)).numpy()
    assert np.array_equal(reach >= 0.0, after)


def test_a_value_that_was_never_missing_is_named() -> None:
    X, y = people()
    model = adopt(MODELS["histograms"].fit(X, y), X)
    with pytest.raises(CountermoveError, match=r"'x2' is missing in rows 3"):
        model.predict_proba(
            np.where((np.arange(5) == 2) & (np.arange(600) == 3)[:, None], np.nan, X)
        )


def test_more_than_two_classes_are_refused() -> None:
    X, _ = people()
    three = DecisionTreeClassifier().fit(X, np.arange(600) % 3)
    with pytest.raises(CountermoveError, match="3 classes"):
        adopt(three, X)


def test_a_label_the_model_does_not_know_is_refused() -> None:
    X, y = people()
    with pytest.raises(CountermoveError, match="favourable='good'"):
        adopt(DecisionTreeClassifier().fit(X, y), X, favourable="good")


def test_advice_is_audited_like_any_other() -> None:
    from countermove.recourse.audit import audit

    X, y = people()
    fitted = MODELS["boosted"].fit(X, y)
    model = adopt(fitted, X)
    rows, labels = people(120, seed=9)
    allowed = actions(model)
    advice = recommend(model, rows, actions=allowed)
    report = audit(model, rows, labels, advice, actions=allowed)
    assert report.robust_actions.n > 0
