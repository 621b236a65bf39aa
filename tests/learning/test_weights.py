"""A weight is a number of rows: of two it is the row twice, of 0 it is not there."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from countermove import (
    ActionSet,
    RecourseClassifier,
    StrategicClassifier,
    after_response,
    audit,
    calibrate_pare,
    recommend,
)
from countermove.errors import DataError, NotEnoughRowsError, ParameterError, UnknownNameError
from countermove.learning import ExpectedUtility, Recourse, SocialBurden
from countermove.scores import LinearScore

MOVES = ActionSet(immutable=[2], lower=[-1.0] * 3, upper=[1.5] * 3)
KINDS = {
    "default": {},
    "bounded": {"actions": MOVES},
    "blind": {"response": "none"},
    "smooth": {"response": "smooth", "selection": "none"},
    "robust": {"response": ["best", "none"]},
    "differ": {"response": {"kind": "population", "never": 0.3}, "selection": "none"},
    "utility": {"regulariser": ExpectedUtility(0.1), "selection": "none"},
    "burden": {"regulariser": SocialBurden(0.1), "selection": "none"},
    "recourse": {"regulariser": Recourse(0.1), "selection": "none"},
    "balanced": {"class_weight": "balanced"},
    "classes": {"class_weight": {0: 3.0, 1: 1.0}, "actions": MOVES},
}


@pytest.fixture(scope="module")
def crowd() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(11)
    X = rng.normal(size=(70, 3)) * [1.0, 40.0, 0.1]
    y = (X[:, 0] + X[:, 1] / 40.0 + rng.normal(size=70) > 0.3).astype(int)
    return X, y, rng.integers(0, 4, size=70)


@pytest.mark.parametrize("kind", KINDS)
def test_a_weight_is_a_number_of_rows(crowd, kind):
    X, y, times = crowd
    weighted = StrategicClassifier(**KINDS[kind]).fit(X, y, sample_weight=times)
    repeated = StrategicClassifier(**KINDS[kind]).fit(np.repeat(X, times, 0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=2e-5, atol=1e-7)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, rtol=2e-5, atol=1e-6)
    if weighted.choice_ is not None:
        ours, theirs = weighted.choice_.rules, repeated.choice_.rules
        assert weighted.choice_.kept == repeated.choice_.kept
        for name, record in ours.items():
            assert record.value == pytest.approx(theirs[name].value)
            assert record.standard_error == pytest.approx(theirs[name].standard_error, rel=1e-6)


@pytest.mark.parametrize("settings", [{}, {"loss": "hinge", "max_epochs": 2}])
def test_nobody_of_weight_nought_is_seen(crowd, settings):
    X, y, times = crowd
    present = times > 0
    weight = np.where(present, 1.0 + times / 7.0, 0.0)
    limits = np.linspace(0.2, 2.0, len(y))[:, None] * np.ones(3)
    every = StrategicClassifier(actions=ActionSet(-limits, limits), **settings)
    some = StrategicClassifier(actions=ActionSet(-limits[present], limits[present]), **settings)
    every.fit(X, y, sample_weight=weight)
    some.fit(X[present], y[present], sample_weight=weight[present])
    np.testing.assert_array_equal(every.coef_, some.coef_)
    np.testing.assert_array_equal(every.predict_proba(X), some.predict_proba(X))


def test_nobody_of_weight_nought_is_seen_in_training_for_recourse(crowd):
    X, y, times = crowd
    present = times > 0
    limits = np.linspace(0.2, 2.0, len(y))[:, None] * np.ones(3)
    every = RecourseClassifier(ActionSet(-limits, limits), max_epochs=1)
    some = RecourseClassifier(ActionSet(-limits[present], limits[present]), max_epochs=1)
    every.fit(X, y, sample_weight=times)
    some.fit(X[present], y[present], sample_weight=times[present])
    np.testing.assert_array_equal(every.predict_proba(X), some.predict_proba(X))


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_a_recourse_classifier_trained_to_the_optimum_counts_rows_alike(crowd, class_weight):
    X, y, times = crowd
    settings = {"score": LinearScore(3), "recourse_weight": 0.0, "class_weight": class_weight}
    weighted = RecourseClassifier(**settings).fit(X, y, sample_weight=times)
    repeated = RecourseClassifier(**settings).fit(np.repeat(X, times, 0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6)


def test_weights_reach_mini_batches_and_both_terms(crowd):
    X, y, _ = crowd
    settings = {"max_epochs": 3, "batch_size": 15, "learning_rate": 0.01}
    plain = RecourseClassifier(**settings).fit(X, y)
    alike = RecourseClassifier(**settings).fit(X, y, sample_weight=np.full(len(y), 2.0))
    np.testing.assert_allclose(alike.predict_proba(X), plain.predict_proba(X), rtol=1e-6)
    heavy = RecourseClassifier(**settings).fit(X, y, sample_weight=np.where(y > 0, 50.0, 1.0))
    assert heavy.predict_proba(X)[:, 1].mean() > plain.predict_proba(X)[:, 1].mean() + 0.1


def test_measures_count_by_weight(crowd):
    X, y, times = crowd
    fitted = StrategicClassifier(selection="none").fit(X, y)
    there = np.repeat(X, times, 0), np.repeat(y, times)
    for measure in (fitted.score, fitted.score_after_response):
        assert measure(X, y, sample_weight=times) == pytest.approx(measure(*there))


@pytest.mark.parametrize("class_weight", ["balanced", {0: 5.0, 1: 1.0}])
def test_class_weights_are_those_of_scikit_learn(crowd, class_weight):
    X, y, _ = crowd
    ours = StrategicClassifier(response="none", calibrate=False, class_weight=class_weight)
    theirs = LogisticRegression(C=1e6, class_weight=class_weight, max_iter=500, tol=1e-8)
    unit = StandardScaler().fit(X)
    theirs.fit(unit.transform(X), y)
    odds = theirs.decision_function(unit.transform(X))
    found = ours.fit(X, y).decision_function(X)
    # The prior shrinks ours by a little.
    assert np.corrcoef(found, odds)[0, 1] > 0.9999
    assert np.mean((found >= 0.0) == (odds >= 0.0)) > 0.98


@pytest.mark.parametrize(
    ("weight", "error"),
    [
        (np.ones(3), DataError),
        (-np.ones(70), DataError),
        (np.full(70, np.nan), DataError),
        (np.zeros(70), NotEnoughRowsError),
    ],
    ids=["short", "negative", "nan", "nobody"],
)
def test_weights_that_are_none_are_refused(crowd, weight, error):
    X, y, _ = crowd
    for estimator in (StrategicClassifier(), RecourseClassifier()):
        with pytest.raises(error):
            estimator.fit(X, y, sample_weight=weight)


def test_unknown_class_weights_are_refused(crowd):
    X, y, _ = crowd
    for given, error in (("ballanced", UnknownNameError), ({0: 1.0}, ParameterError)):
        with pytest.raises(error, match="class_weight"):
            StrategicClassifier(class_weight=given).fit(X, y)


def test_weights_are_routed_through_pipelines_and_searches(crowd):
    X, y, times = crowd
    with sklearn.config_context(enable_metadata_routing=True):
        end = StrategicClassifier(response="none").set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, end.set_score_request(sample_weight=True))
        pipeline.fit(X, y, sample_weight=times)
        alone = StrategicClassifier(response="none").fit(pipeline[:1].transform(X), y, times)
        np.testing.assert_allclose(pipeline[-1].coef_, alone.coef_)
        scorer = after_response("best").set_score_request(sample_weight=True)
        search = GridSearchCV(
            pipeline, {"strategicclassifier__start": [None]}, scoring=scorer, cv=2
        )
        search.fit(X, y, sample_weight=times)
        plain = GridSearchCV(
            pipeline,
            {"strategicclassifier__start": [None]},
            scoring=after_response("best").set_score_request(sample_weight=False),
            cv=2,
        ).fit(X, y, sample_weight=times)
        assert search.best_score_ != plain.best_score_
        found = cross_validate(
            pipeline, X, y, params={"sample_weight": times}, cv=2, error_score="raise"
        )
    assert np.isfinite(found["test_score"]).all()


def test_a_data_frame_and_its_values_are_one(crowd):
    X, y, times = crowd
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    ours = StrategicClassifier().fit(frame, pd.Series(y), sample_weight=pd.Series(times))
    np.testing.assert_array_equal(ours.coef_, StrategicClassifier().fit(X, y, times).coef_)


def test_promises_and_audits_say_why_they_take_no_weights(crowd):
    X, y, sizes = crowd
    rule = StrategicClassifier(response="none").fit(X, y)
    advice = recommend(rule, X, actions=ActionSet())
    for asked in (
        lambda weights: calibrate_pare(rule, X, actions=ActionSet(), sample_weight=weights),
        lambda weights: audit(rule, X, y, advice, actions=ActionSet(), sample_weight=weights),
    ):
        asked(None)
        with pytest.raises(ParameterError, match="people drawn alike"):
            asked(sizes)


SHARES = {"sum 1": 1.0, "tiny": 1e-9, "near the smallest number": 1e-300, "large": 1e12 / 3.0}


@pytest.mark.parametrize("kind", ["default", "blind", "smooth", "utility"])
@pytest.mark.parametrize("size", SHARES.values(), ids=SHARES)
def test_weights_that_are_no_numbers_of_rows_have_no_scale(crowd, kind, size):
    X, y, _ = crowd
    plain = StrategicClassifier(**KINDS[kind]).fit(X, y)
    shares = np.full(len(y), size / len(y))
    weighted = StrategicClassifier(**KINDS[kind]).fit(X, y, sample_weight=shares)
    np.testing.assert_allclose(weighted.coef_, plain.coef_, rtol=1e-6)
    np.testing.assert_allclose(weighted.intercept_, plain.intercept_, rtol=1e-6, atol=1e-9)
    assert (weighted.choice_ is None) == (plain.choice_ is None)
    if plain.choice_ is not None:
        assert weighted.choice_.kept == plain.choice_.kept


def test_shares_count_in_proportion_and_zero_leaves_out(crowd):
    X, y, times = crowd
    shares = times / times.sum() * 0.5
    whole = StrategicClassifier(selection="none").fit(X, y, sample_weight=shares)
    left = times > 0
    some = StrategicClassifier(selection="none").fit(X[left], y[left], sample_weight=shares[left])
    np.testing.assert_allclose(whole.coef_, some.coef_, rtol=1e-6)
    mean_one = shares * left.sum() / shares.sum()
    same = StrategicClassifier(selection="none").fit(X, y, sample_weight=mean_one)
    np.testing.assert_allclose(whole.coef_, same.coef_, rtol=1e-9)


def test_a_recourse_classifier_takes_shares_too(crowd):
    X, y, _ = crowd
    plain = RecourseClassifier(actions=MOVES).fit(X, y)
    shares = RecourseClassifier(actions=MOVES).fit(X, y, sample_weight=np.full(len(y), 1e-7))
    np.testing.assert_allclose(
        shares.decision_function(X), plain.decision_function(X), rtol=1e-6, atol=1e-8
    )
