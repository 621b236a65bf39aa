"""Transformers in front: people move in the columns of the table while the rule is trained."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

from countermove import ActionSet, StrategicClassifier, StrategicPipeline, adopt, after_response
from countermove.errors import ParameterError
from countermove.people import WeightedQuadraticCost

BOUNDED = ActionSet(max_value=[40.0, np.inf, np.inf], immutable=(2,), units="original")


@pytest.fixture(scope="module")
def loans() -> tuple[pd.DataFrame, np.ndarray]:
    """Return people in units as they come, and who repaid."""
    draws = np.random.default_rng(11)
    n = 600
    region = draws.choice(["north", "south", "west"], n)
    frame = pd.DataFrame(
        {
            "income": draws.normal(30.0, 8.0, n),
            "debts": draws.exponential(9_000.0, n),
            "age": draws.integers(20, 70, n).astype(float),
            "region": region,
            "note": draws.choice(["a", "b"], n),
        }
    )
    merit = 0.1 * frame.income - 1e-4 * frame.debts + 0.5 * (region == "south") - 2.0
    return frame, np.where(merit + draws.logistic(size=n) > 0.0, "repaid", "failed")


NUMBERS = ["income", "debts", "age"]
FRONTS = {
    "standard": [StandardScaler()],
    "range": [MinMaxScaler()],
    "robust": [RobustScaler()],
    "components": [StandardScaler(), PCA(whiten=True)],
    "by column": [ColumnTransformer([("a", MinMaxScaler(), [1, 0]), ("b", PCA(), [2])])],
}


def behind(front, **settings):
    steps = [(f"s{k}", step) for k, step in enumerate(front)]
    return StrategicPipeline([*steps, ("rule", StrategicClassifier(**settings))])


@pytest.mark.parametrize("front", FRONTS.values(), ids=FRONTS)
@pytest.mark.parametrize(
    "settings",
    [
        {"actions": BOUNDED},
        {"cost": WeightedQuadraticCost([1.0, 3.0, 2.0]), "selection": "none"},
        {"response": "smooth", "selection": "none"},
    ],
    ids=["bounds", "prices", "smooth"],
)
def test_the_rule_is_that_of_the_columns_themselves(loans, front, settings):
    X, y = np.ascontiguousarray(loans[0][NUMBERS]), loans[1]
    plain = StrategicClassifier(**settings).fit(X, y)
    rule = behind(front, **settings).fit(X, y)
    np.testing.assert_allclose(rule.decision_function(X), plain.decision_function(X), atol=1e-9)
    np.testing.assert_array_equal(rule.predict(X), plain.predict(X))
    np.testing.assert_array_equal(rule.respond(X).x_new, plain.respond(X).x_new)
    assert rule.score_after_response(X, y) == plain.score_after_response(X, y)
    np.testing.assert_array_equal(rule.predict_after_response(X), plain.predict_after_response(X))


def test_scaling_in_a_plain_pipeline_is_exact_but_components_are_not(loans):
    """Why there is another class: behind components scikit-learn's trains for other people."""
    X, y = loans[0][NUMBERS].to_numpy(), loans[1]
    held = {"actions": ActionSet(immutable=(1, 2)), "selection": "none"}
    plain = StrategicClassifier(**held).fit(X, y)
    scaled = make_pipeline(StandardScaler(), StrategicClassifier(**held)).fit(X, y)
    turned = make_pipeline(StandardScaler(), PCA(), StrategicClassifier(**held)).fit(X, y)
    expected = plain.decision_function(X)
    np.testing.assert_allclose(scaled.decision_function(X), expected, atol=1e-8)
    assert np.abs(turned.decision_function(X) - expected).max() > 0.1


@pytest.fixture
def by_column() -> ColumnTransformer:
    return ColumnTransformer(
        [
            ("n", StandardScaler(), ["debts", "income"]),
            ("c", OneHotEncoder(drop="first"), ["region"]),
        ]
    )


def test_categories_are_held_and_dropped_columns_are_not_read(loans, by_column):
    frame, y = loans
    rule = behind([by_column]).fit(frame, y)
    assert rule.columns_ == (
        "income",
        "debts",
        "region=north",
        "region=south",
        "region=west",
    )
    by_hand = np.column_stack(
        [frame[["income", "debts"]], pd.get_dummies(frame.region).to_numpy(float)]
    )
    people = StrategicClassifier(actions=ActionSet(immutable=(2, 3, 4))).fit(by_hand, y)
    expected = people.decision_function(by_hand)
    np.testing.assert_allclose(rule.decision_function(frame), expected, atol=1e-9)
    moved = rule.respond(frame)
    assert moved.moved.any()
    np.testing.assert_array_equal(moved.x_new[:, 2:], by_hand[:, 2:])


def test_whatever_takes_a_pipeline_takes_it(loans, by_column):
    X, y = loans[0][["income", "debts", "region"]], loans[1]
    rule = behind([by_column]).fit(X, y)
    assert adopt(rule, X).exactness == "affine"
    # Judged by people in the units of the same rows: those of training.
    judged = after_response("best", actions=rule.rule_.actions)(rule, X, y)
    assert judged == rule.score_after_response(X, y)


def test_it_is_cloned_searched_and_weighted_as_a_pipeline_is(loans):
    X, y = loans[0][NUMBERS], loans[1]
    rule = behind([StandardScaler()], selection="none")
    assert clone(rule).get_params()["rule__selection"] == "none"
    grid = {"rule__class_weight": [None, "balanced"]}
    found = GridSearchCV(rule, grid, scoring=after_response("best"), cv=2).fit(X, y)
    assert isinstance(found.best_estimator_, StrategicPipeline)
    twice = np.where(y == "repaid", 2.0, 1.0)
    weighted = clone(rule).fit(X, y, rule__sample_weight=twice)
    rows = np.repeat(np.arange(len(y)), twice.astype(int))
    repeated = clone(rule).fit(X.iloc[rows], y[rows])
    inside = weighted.rule_.coef_, repeated.rule_.coef_
    np.testing.assert_allclose(*inside, rtol=1e-6)


@pytest.mark.parametrize(
    ("front", "told"),
    [
        ([PolynomialFeatures()], "PolynomialFeatures is not followed"),
        ([PCA(2)], "keep 2 of the 3 directions"),
        ([OrdinalEncoder()], "one-hot"),
    ],
)
def test_what_no_rule_of_the_columns_stands_for_is_refused(loans, front, told):
    frame, y = loans
    X = frame[["region", "note"]] if isinstance(front[0], OrdinalEncoder) else frame[NUMBERS]
    with pytest.raises(ParameterError, match=told):
        behind(front).fit(X, y)


@pytest.mark.parametrize("last", [LogisticRegression(), StrategicClassifier("trees")])
def test_the_last_step_is_a_strategic_classifier_of_a_linear_score(loans, last):
    with pytest.raises(ParameterError, match="ends in a StrategicClassifier"):
        StrategicPipeline([("rule", last)]).fit(loans[0][NUMBERS], loans[1])
