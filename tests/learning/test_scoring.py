"""Scorers after response: one population for every candidate, moving in the original columns."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, QuantileTransformer, StandardScaler

from countermove import ActionSet, StrategicClassifier, adopt, after_response
from countermove.errors import ParameterError, UnknownNameError
from countermove.learning import accuracy_after
from countermove.people import QuadraticCost
from countermove.response import BestResponse, NoResponse
from countermove.scores import MLPScore

PEOPLE = BestResponse(QuadraticCost(2.0))


@pytest.fixture(scope="module")
def table() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(160, 3)) * [1.0, 300.0, 0.05] + [0.0, 2_000.0, 1.0]
    y = (X[:, 0] + X[:, 1] / 300.0 - 7.0 + 0.5 * rng.normal(size=160) > 0).astype(int)
    frame = pd.DataFrame(X, columns=["age", "income", "share"])
    return frame, y


@pytest.fixture(scope="module")
def fitted(table) -> StrategicClassifier:
    return StrategicClassifier(selection="none").fit(*table)


@pytest.mark.parametrize("response", ["best", "smooth", "none", PEOPLE, ["best", "none"]])
def test_a_scorer_measures_what_the_classifier_measures(fitted, table, response):
    expected = fitted.score_after_response(*table, response=response)
    assert after_response(response)(fitted, *table) == pytest.approx(expected, abs=1e-12)


def test_people_are_the_same_whatever_a_candidate_assumes(table):
    search = GridSearchCV(
        StrategicClassifier(selection="none"),
        {"cost": [QuadraticCost(2.0), QuadraticCost(50.0)]},
        scoring=after_response(PEOPLE),
        cv=2,
    ).fit(*table)
    # The rule made for the people there are does best.
    assert float(search.best_params_["cost"].scale) == 2.0
    best, other = search.cv_results_["mean_test_score"]
    assert best > other + 0.05
    # Identical people: the blind rule scores alike whatever cost it was given.
    blind = GridSearchCV(
        StrategicClassifier(response="none"),
        {"cost": [QuadraticCost(1.0), QuadraticCost(50.0)]},
        scoring=after_response(PEOPLE),
        cv=2,
    ).fit(*table)
    assert np.ptp(blind.cv_results_["mean_test_score"]) == 0.0


GRIDS = [
    {"cost": [QuadraticCost(1.0), QuadraticCost(9.0)]},
    {"response": ["best", "none"]},
    {"actions": [None, ActionSet(immutable=[0])]},
]


@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: next(iter(grid)))
@pytest.mark.parametrize("scoring", [after_response(), {"own": after_response()}], ids=type)
def test_a_search_over_assumptions_by_own_people_is_refused(table, grid, scoring):
    search = GridSearchCV(StrategicClassifier(), grid, scoring=scoring, cv=2, refit=False)
    with pytest.raises(ParameterError, match="cannot move would win"):
        search.fit(*table)


def test_a_search_in_a_pipeline_and_by_a_function_is_refused_too(table):
    pipeline = make_pipeline(StandardScaler(), StrategicClassifier())
    grid = {"strategicclassifier__cost": [QuadraticCost(1.0), QuadraticCost(9.0)]}
    with pytest.raises(ParameterError, match="cannot move would win"):
        GridSearchCV(pipeline, grid, scoring=after_response(), cv=2).fit(*table)

    def own(estimator, X, y):
        return estimator.score_after_response(X, y)

    search = GridSearchCV(StrategicClassifier(), GRIDS[1], scoring=own, cv=2, error_score="raise")
    with pytest.raises(ParameterError, match="cannot move would win"):
        search.fit(*table)


def test_a_search_over_assumptions_by_plain_accuracy_is_warned_of(table):
    search = GridSearchCV(StrategicClassifier(selection="none"), GRIDS[1], cv=2)
    with pytest.warns(UserWarning, match="search over response .* scoring=after_response"):
        search.fit(*table)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        StrategicClassifier().set_params(response="none").fit(*table).score(*table)


def test_other_searches_may_use_own_people(table):
    search = GridSearchCV(
        StrategicClassifier(selection="none"),
        {"calibrate": [True, False]},
        scoring=after_response(),
        cv=2,
    ).fit(*table)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.score_after_response(*table) > 0.5
    found = cross_val_score(StrategicClassifier(), *table, scoring=after_response(), cv=2)
    assert (found > 0.5).all()


def moved_by_hand(pipeline, X, y, response) -> float:
    """Return the accuracy of people who move in the table's own columns, per standard deviation."""
    rule = adopt(pipeline, X)
    rows = rule.standardiser_.transform(rule.encode(X))
    after = response.respond(rule.standardised_score_, rows).x_new
    there = rule.columns.decode(rule.standardiser_.inverse(after))
    # Those who moved just crossed: judged by the pipeline itself, rounding apart.
    chance = pipeline.predict_proba(there)[:, 1] >= 0.5 - 1e-9
    return float(np.mean(chance == (y > 0)))


FRONTS = {
    "scaled": StandardScaler(),
    "ranged": MinMaxScaler(),
    "components": make_pipeline(StandardScaler(), PCA(2, whiten=True)),
    "singular": make_pipeline(MinMaxScaler(), TruncatedSVD(2), StandardScaler()),
}


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize(
    "end",
    [LogisticRegression(), StrategicClassifier(response="none"), StrategicClassifier()],
    ids=["logistic", "blind", "strategic"],
)
def test_affine_transformers_are_part_of_the_rule(table, front, end):
    X, y = table
    pipeline = make_pipeline(FRONTS[front], end).fit(X, y)
    rule = adopt(pipeline, X)
    assert rule.exactness == "affine"
    np.testing.assert_allclose(rule.predict_proba(X), pipeline.predict_proba(X), atol=1e-9)
    found = after_response(PEOPLE)(pipeline, X, y)
    assert found == pytest.approx(moved_by_hand(pipeline, X, y, PEOPLE))
    direct = accuracy_after(
        rule.standardised_score_,
        rule.standardiser_.transform(X.to_numpy()),
        np.where(y > 0, 1.0, -1.0),
        PEOPLE,
    )
    assert found == direct.accuracy


def test_a_column_transformer_lets_people_change_categories(table):
    X, y = table
    mixed = X.assign(area=np.where(X["age"] > 0.5, "north", "south"))
    front = make_column_transformer(
        (StandardScaler(), ["age", "income"]), (OneHotEncoder(), ["area"])
    )
    pipeline = make_pipeline(front, StrategicClassifier(response="none")).fit(mixed, y)
    rule = adopt(pipeline, mixed)
    assert rule.exactness == "affine"
    assert rule.columns.matrix_names == ("age", "income", "share", "area=north", "area=south")
    np.testing.assert_allclose(rule.predict_proba(mixed), pipeline.predict_proba(mixed), atol=1e-9)
    free = after_response("best")(pipeline, mixed, y)
    stuck = ActionSet(**rule.allowed(immutable=list(mixed.columns)))
    assert after_response("best", actions=stuck)(pipeline, mixed, y) == pipeline.score(mixed, y)
    assert free < pipeline.score(mixed, y)


def test_other_transformers_are_asked(table):
    X, y = table
    front = QuantileTransformer(n_quantiles=20)
    pipeline = make_pipeline(front, LogisticRegression()).fit(X[:60], y[:60])
    with pytest.warns(UserWarning, match="black box"):
        found = after_response(NoResponse())(pipeline, X[:60], y[:60])
    assert found == pipeline.score(X[:60], y[:60])


def test_networks_hinges_and_the_other_label_are_read_exactly(table):
    X, y = table
    labels = np.where(y > 0, "yes", "no")
    for own in (
        {"score": MLPScore(2, (4,)), "response": "none", "max_epochs": 2},
        {"loss": "hinge", "max_epochs": 2, "selection": "none", "favourable": "no"},
    ):
        pipeline = make_pipeline(PCA(2), StrategicClassifier(**own)).fit(X, labels)
        rule = adopt(pipeline, X)
        assert rule.favourable_ == own.get("favourable", "yes")
        np.testing.assert_allclose(rule.predict_proba(X), pipeline.predict_proba(X), atol=1e-9)
        assert rule.exactness == ("gradient" if "score" in own else "affine")


def test_trees_keep_their_exact_response(table):
    X, y = table
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    actions = ActionSet(upper=[0.5] * 3, lower=[-0.5] * 3)
    people = BestResponse(QuadraticCost(2.0), actions)
    assert after_response(people)(forest, X, y) <= forest.score(X, y)


def test_weights_and_units_are_those_asked_for(fitted, table):
    X, y = table
    scorer = after_response(PEOPLE)
    weight = np.where(np.arange(len(y)) < 80, 3.0, 0.0)
    half = scorer(fitted, X[:80], y[:80])
    assert after_response(PEOPLE, background=X)(fitted, X[:80], y[:80]) == pytest.approx(
        after_response(PEOPLE, background=X)(fitted, X, y, sample_weight=weight)
    )
    assert isinstance(half, float)
    wide = pd.concat([X, X + 1e3])
    expensive = after_response(PEOPLE, background=wide)(fitted, X, y)
    assert expensive != scorer(fitted, X, y)


def test_several_scorers_at_once_and_what_is_not_understood(table):
    X, y = table
    scoring = {"after": after_response(PEOPLE), "before": "accuracy"}
    found = cross_validate(LogisticRegression(), X, y, scoring=scoring, cv=2)
    assert (found["test_after"] < found["test_before"]).all()
    with pytest.raises(UnknownNameError, match="best"):
        after_response("bets")
    with pytest.raises(ParameterError, match="given by name"):
        after_response(cost=QuadraticCost(1.0))
    with pytest.raises(ParameterError, match="who its people are"):
        after_response()(LogisticRegression().fit(X, y), X, y)
