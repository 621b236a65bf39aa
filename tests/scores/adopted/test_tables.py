"""Preprocessing is folded in: people move in the columns of the table the model is given."""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)

from countermove import adopt
from countermove.errors import CountermoveError
from countermove.people import ActionSet
from countermove.recourse import calibrate_pare, recommend

JOBS = ["clerk", "driver", "nurse", "teacher"]


def table(n: int = 500, seed: int = 0, missing: bool = False) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    income, debt = rng.gamma(4.0, 8e3, n), rng.gamma(2.0, 5e3, n)
    job, late = rng.integers(4, size=n), rng.poisson(1.0, n)
    logit = 4e-5 * income - 8e-5 * debt - 0.8 * late + 0.6 * (job == 3) - 0.5 * (job == 1)
    y = (logit + rng.logistic(size=n) > 0).astype(int)
    frame = pd.DataFrame(
        {"income": income, "job": np.array(JOBS)[job], "debt": debt, "late": late.astype(float)}
    )
    if missing:
        frame.loc[rng.random(n) < 0.1, "debt"] = np.nan
    return frame, y


def preparation(encoder: Any, missing: bool = False) -> ColumnTransformer:
    scaler: Any = make_pipeline(SimpleImputer(), StandardScaler()) if missing else StandardScaler()
    return ColumnTransformer(
        [("amounts", scaler, ["income", "debt"]), ("job", encoder, ["job"])],
        remainder=MinMaxScaler(),
    )


ENCODERS = {
    "one-hot": OneHotEncoder(),
    "dropped": OneHotEncoder(drop="first", sparse_output=False),
    "ordinal": OrdinalEncoder(),
}
ENDS = {
    "logistic": LogisticRegression(),
    "boosted": GradientBoostingClassifier(n_estimators=15, random_state=0),
    "forest": RandomForestClassifier(10, max_depth=5, random_state=0),
    "histograms": HistGradientBoostingClassifier(max_iter=15, random_state=0),
}


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("encoder", list(ENCODERS))
@pytest.mark.parametrize("end", list(ENDS))
def test_a_pipeline_is_folded_into_the_tables_columns(
    end: str, encoder: str, missing: bool
) -> None:
    if end == "histograms" and encoder == "one-hot":
        encoder = "dropped"  # it takes no sparse rows
    from sklearn.base import clone

    frame, y = table(missing=missing)
    prepared = preparation(clone(ENCODERS[encoder]), missing)
    fitted = make_pipeline(prepared, clone(ENDS[end])).fit(frame, y)
    model = adopt(fitted, frame)
    assert model.exactness == ("affine" if end == "logistic" else "trees")
    assert model.columns.matrix_names[1] == "job=clerk"
    fresh = table(300, seed=1, missing=missing)[0]
    assert np.abs(model.predict_proba(fresh) - fitted.predict_proba(fresh)).max() <= 1e-6


@pytest.mark.parametrize("end", ["logistic", "boosted", "histograms"])
def test_people_move_in_original_columns_and_the_pipeline_confirms_it(end: str) -> None:
    frame, y = table()
    fitted = make_pipeline(preparation(OrdinalEncoder()), ENDS[end]).fit(frame, y)
    model = adopt(fitted, frame)
    allowed = ActionSet(
        **model.allowed(integer=["late"], only_decrease=["late"], bounds={"late": (0, 20)})
    )
    fresh = table(80, seed=3)[0]
    advice = recommend(model, fresh, actions=allowed)
    found = advice.status == "FOUND"
    assert found.sum() > 10
    assert advice.proven_cheapest[found].all()
    moved = model.columns.decode(advice.x_new(model.encode(fresh))[found])
    assert (fitted.predict(moved) == 1).all()
    assert set(moved["job"]) <= set(JOBS)
    assert (moved["late"] <= fresh["late"][found].to_numpy()).all()
    promise = calibrate_pare(model, table(120, seed=4)[0], actions=allowed, miss_rate=0.1)
    assert promise.threshold > 0.0


def test_columns_pandas_holds_as_categories_are_one_hot_for_lightgbm() -> None:
    frame, y = table()
    frame["job"] = frame["job"].astype("category")
    fitted = lightgbm.LGBMClassifier(n_estimators=20, verbose=-1).fit(frame, y)
    model = adopt(fitted, frame)
    assert model.score_.ensemble.codes_left
    assert np.abs(model.predict_proba(frame) - fitted.predict_proba(frame)).max() <= 1e-6
    advice = recommend(model, frame.head(60), actions=ActionSet(**model.allowed(integer=["late"])))
    assert (advice.status == "FOUND").any()
    assert not (advice.status == "NOT_FOUND").any()


def test_categories_of_histograms_are_read() -> None:
    frame, y = table()
    frame["job"] = frame["job"].astype("category")
    fitted = HistGradientBoostingClassifier(
        max_iter=15, categorical_features="from_dtype", random_state=0
    ).fit(frame, y)
    model = adopt(fitted, frame)
    assert model.exactness == "trees"
    assert np.abs(model.predict_proba(frame) - fitted.predict_proba(frame)).max() <= 1e-6


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("end", ["boosted", "forest", "logistic"])
def test_a_single_calibrator_is_a_monotone_map(end: str, method: str) -> None:
    frame, y = table()
    inner = make_pipeline(preparation(OneHotEncoder()), ENDS[end])
    fitted = CalibratedClassifierCV(inner, method=method, ensemble=False, cv=3).fit(frame, y)
    if end == "logistic" and method == "isotonic":
        with pytest.warns(UserWarning, match="black box"):
            model = adopt(fitted, frame)
        assert model.exactness == "black_box"
    else:
        model = adopt(fitted, frame)
        assert model.exactness != "black_box"
    assert np.abs(model.predict_proba(frame) - fitted.predict_proba(frame)).max() <= 1e-6


def test_a_black_box_is_searched_and_never_proven_to_have_none() -> None:
    frame, y = table()
    rows = frame[["income", "debt", "late"]].to_numpy()
    fitted = make_pipeline(StandardScaler(), PolynomialFeatures(), GaussianNB()).fit(rows, y)
    with pytest.warns(UserWarning, match="PolynomialFeatures"):
        model = adopt(fitted, rows)
    allowed = ActionSet(
        **model.allowed(immutable=["x0"], integer=["x2"], bounds={"x2": (0, 20), "x1": (0, 1e6)})
    )
    advice = recommend(model, rows[:60], actions=allowed)
    found = advice.status == "FOUND"
    assert found.sum() > 5
    assert (fitted.predict(advice.x_new(rows[:60])[found]) == 1).all()
    assert not advice.proven_cheapest.any()
    assert not (advice.status == "PROVEN_NONE").any()
    promise = calibrate_pare(model, rows[60:160], actions=allowed, miss_rate=0.1)
    assert 0.0 < promise.threshold < 1.0


def test_a_function_is_a_black_box() -> None:
    rows = np.random.default_rng(0).normal(size=(200, 3))

    def chance(X: np.ndarray) -> np.ndarray:
        return 1.0 / (1.0 + np.exp(-(X[:, 0] + np.sin(3.0 * X[:, 1]) - 1.0)))

    model = adopt(chance, rows)
    assert np.abs(model.predict_proba(rows)[:, 1] - chance(rows)).max() <= 1e-9
    advice = recommend(model, rows[:40], actions=ActionSet(immutable=[2]))
    found = advice.status == "FOUND"
    assert (chance(advice.x_new(rows[:40])[found]) >= 0.5).all()
    # x0 alone costs (1 - s)²; the search finds something at most a tenth more expensive.
    need = np.maximum(0.0, 1.0 - np.sin(3.0 * rows[:40, 1]) - rows[:40, 0]) / rows[:, 0].std()
    assert (advice.cost[found] <= 1.1 * need[found] ** 2 + 1e-3).mean() > 0.9


def test_a_torch_module_keeps_its_gradient() -> None:
    torch.manual_seed(0)
    rows = np.random.default_rng(0).normal(size=(150, 3)) * [1.0, 10.0, 100.0]
    module = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    model = adopt(module, rows)
    with torch.no_grad():
        expected = torch.sigmoid(module(torch.tensor(rows, dtype=torch.float32)))[:, 0].numpy()
    assert model.exactness == "gradient"
    assert np.abs(model.predict_proba(rows)[:, 1] - expected).max() <= 1e-6
    advice = recommend(model, rows[:30], actions=ActionSet(immutable=[0]))
    assert set(advice.status) <= {"FOUND", "NOT_FOUND", "NOT_NEEDED"}


def test_an_onnx_session_is_a_black_box() -> None:
    import onnxruntime
    from skl2onnx import to_onnx

    rows = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32)
    y = (rows @ [1.0, -1.0, 0.5, 0.0] > 0.2).astype(int)
    fitted = RandomForestClassifier(8, max_depth=4, random_state=0).fit(rows, y)
    for zipmap in (False, True):
        graph = to_onnx(fitted, rows[:1], options={"zipmap": zipmap}).SerializeToString()
        session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
        model = adopt(session, rows)
        assert model.exactness == "black_box"
        found = model.predict_proba(rows.astype(float))
        assert np.abs(found - fitted.predict_proba(rows)).max() <= 1e-5
        turned = adopt(session, rows, favourable=0).predict_proba(rows.astype(float))
        np.testing.assert_allclose(turned, found)
    advice = recommend(model, rows[:20].astype(float), actions=ActionSet(immutable=[3]))
    assert (advice.status == "FOUND").any()
    assert "PROVEN_NONE" not in advice.status


def test_columns_that_disagree_are_both_named() -> None:
    frame, y = table()
    model = adopt(make_pipeline(preparation(OneHotEncoder()), ENDS["boosted"]).fit(frame, y), frame)
    with pytest.raises(CountermoveError, match=r"'salary'.*lacks 'income'"):
        model.predict_proba(frame.rename(columns={"income": "salary"}))


def test_a_category_the_model_does_not_know_is_named() -> None:
    frame, y = table()
    model = adopt(make_pipeline(preparation(OneHotEncoder()), ENDS["boosted"]).fit(frame, y), frame)
    with pytest.raises(CountermoveError, match=r"'job' holds 'pilot' in rows 0"):
        model.predict_proba(frame.assign(job=["pilot", *frame["job"][1:]]))


def test_a_regression_is_refused() -> None:
    from sklearn.linear_model import LinearRegression

    frame, y = table()
    rows = frame[["income", "debt"]]
    with pytest.raises(CountermoveError, match="predicts a number"):
        adopt(LinearRegression().fit(rows, y), rows)
