"""Frames of polars are read as those of pandas are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, QuantileTransformer, StandardScaler

from countermove import RecourseClassifier, StrategicClassifier, adopt, after_response, recommend

NUMBERS = ["age", "income"]


@pytest.fixture(scope="module")
def both() -> tuple[pd.DataFrame, pl.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    columns = {
        "age": rng.normal(size=120),
        "income": 1_000.0 * rng.normal(size=120),
        "area": rng.choice(["north", "south"], 120).tolist(),
    }
    signal = columns["age"] + columns["income"] / 1_000.0 + rng.normal(size=120)
    return pd.DataFrame(columns), pl.DataFrame(columns), np.where(signal > 0.0, "good", "bad")


def test_a_classifier_reads_either(both):
    pandas, polars, y = both
    ours = StrategicClassifier().fit(polars[NUMBERS], pl.Series(y.tolist()))
    theirs = StrategicClassifier().fit(pandas[NUMBERS], y)
    np.testing.assert_array_equal(ours.coef_, theirs.coef_)
    assert list(ours.feature_names_in_) == NUMBERS
    np.testing.assert_array_equal(ours.predict(pandas[NUMBERS]), theirs.predict(polars[NUMBERS]))
    weight = pl.Series(np.arange(120.0).tolist())
    asked = polars[NUMBERS], pl.Series(y.tolist())
    judged = ours.score_after_response(*asked, sample_weight=weight)
    assert judged == theirs.score_after_response(pandas[NUMBERS], y, sample_weight=np.arange(120.0))


def test_advice_reads_either(both):
    pandas, polars, y = both
    rule = RecourseClassifier(max_epochs=1).fit(polars[NUMBERS], pl.Series(y.tolist()))
    found = [recommend(rule, table[NUMBERS][:10]).action for table in (pandas, polars)]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("front", [StandardScaler(), QuantileTransformer(n_quantiles=10)])
@pytest.mark.filterwarnings("ignore:.*black box")
def test_a_pipeline_of_polars_is_adopted(both, front):
    pandas, polars, y = both
    columns = make_column_transformer((front, NUMBERS), (OneHotEncoder(), ["area"]))
    pipeline = make_pipeline(columns, LogisticRegression()).fit(polars, y)
    rule = adopt(pipeline, polars)
    np.testing.assert_allclose(rule.predict_proba(pandas), pipeline.predict_proba(polars))
    np.testing.assert_allclose(rule.predict_proba(polars), pipeline.predict_proba(polars))
    if isinstance(front, StandardScaler):
        scorer = after_response("best")
        assert scorer(pipeline, polars, y) == scorer(pipeline, pandas, y)
