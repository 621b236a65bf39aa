"""A scikit-learn classifier that accounts for people's response."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from countermove import RecourseClassifier, StrategicClassifier, recommend
from countermove.errors import (
    CostError,
    CountermoveError,
    DataError,
    NotEnoughRowsError,
    ParameterError,
    UnknownNameError,
)
from countermove.learning import L2
from countermove.people import ActionSet, QuadraticCost
from countermove.response import BestResponse, NoResponse, Population, named_response
from countermove.scores import LinearScore, MLPScore, PartlyLinearScore
from countermove.scores.base import fit_slope

ROBUST = {"kind": "robust", "members": ["best", {"kind": "smooth", "temperature": 0.3}]}


@parametrize_with_checks([StrategicClassifier()])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([StrategicClassifier(response="none")])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learns_own_checks_where_nobody_moves(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def fitted(crowd) -> StrategicClassifier:
    return StrategicClassifier().fit(*crowd)


def test_accounting_for_the_response_pays(crowd):
    settings = {"cost": QuadraticCost(0.5)}
    blind = StrategicClassifier(response="none", **settings).fit(*crowd)
    strategic = StrategicClassifier(response="best", **settings).fit(*crowd)
    assert blind.score(*crowd) > 0.9
    assert blind.score_after_response(*crowd, response="best") < 0.75
    assert strategic.score_after_response(*crowd) > 0.9


def test_the_published_rule_is_linear_and_readable(fitted, crowd):
    X, _ = crowd
    values = X @ fitted.coef_[0] + fitted.intercept_[0]
    np.testing.assert_allclose(fitted.decision_function(X), values)
    np.testing.assert_allclose(
        fitted.predict_proba(X)[:, 1], expit(fitted.probability_slope_ * values)
    )
    np.testing.assert_allclose(fitted.predict_proba(X).sum(axis=1), 1.0)
    assert fitted.coef_.shape == (1, 4)
    assert fitted.intercept_.shape == (1,)


def test_people_move_to_where_the_rule_favours_them(fitted, crowd):
    X, _ = crowd
    after = fitted.respond(X)
    assert np.all(fitted.predict(after.x_new)[after.moved] == 1.0)
    np.testing.assert_array_equal(fitted.predict(after.x_new), fitted.predict_after_response(X))
    assert np.all(after.cost[after.moved] < 2.0)


def test_accuracy_after_response_may_be_asked_under_any_population(fitted, crowd):
    X, y = crowd
    best = fitted.score_after_response(X, y)
    assert fitted.score_after_response(X, y, response=BestResponse()) == best
    assert fitted.score_after_response(X, y, response="none") == fitted.score(X, y)
    members = ["best", "none"]
    assert fitted.score_after_response(X, y, response=members) == min(best, fitted.score(X, y))
    mixed = {"kind": "robust", "members": members, "weights": [0.5, 0.5]}
    mean = 0.5 * (best + fitted.score(X, y))
    assert fitted.score_after_response(X, y, response=mixed) == pytest.approx(mean)


def test_robust_training_raises_the_worst_case(crowd):
    single = StrategicClassifier(response="best").fit(*crowd)
    robust = StrategicClassifier(response=["best", "none"]).fit(*crowd)
    worst = single.score_after_response(*crowd, response=["best", "none"])
    assert robust.score_after_response(*crowd) > worst + 0.1


def test_a_robust_population_trains_and_has_no_single_response(crowd):
    robust = StrategicClassifier(response=ROBUST).fit(*crowd)
    assert 0.5 <= robust.score_after_response(*crowd) <= 1.0
    with pytest.raises(ParameterError, match="no single behaviour"):
        robust.respond(crowd[0])
    assert len(robust.respond(crowd[0], response="best").x_new) == len(crowd[0])


@pytest.mark.parametrize("response", ["smooth", "published", BestResponse(), NoResponse()])
def test_every_way_to_name_a_population_trains(crowd, response):
    classifier = StrategicClassifier(response=response).fit(*crowd)
    assert 0.5 <= classifier.score_after_response(*crowd) <= 1.0


@pytest.mark.parametrize("favourable", ["bad", "good"])
def test_the_favourable_label_is_the_one_people_move_to(crowd, favourable):
    X, y = crowd
    labels = np.where(y > 0, favourable, "good" if favourable == "bad" else "bad")
    classifier = StrategicClassifier(favourable=favourable).fit(X, labels)
    after = classifier.respond(X)
    assert list(classifier.classes_) == ["bad", "good"]
    assert set(classifier.predict(after.x_new)[after.moved]) == {favourable}
    column = list(classifier.classes_).index(favourable)
    scores = X @ classifier.coef_[0] + classifier.intercept_[0]
    odds = classifier.probability_slope_ * scores
    np.testing.assert_allclose(classifier.predict_proba(X)[:, column], expit(odds))
    above = classifier.classes_[(classifier.decision_function(X) > 0).astype(int)]
    np.testing.assert_array_equal(above, classifier.predict(X))


def test_works_in_a_pipeline_and_a_grid_search(crowd):
    X, y = crowd
    pipeline = make_pipeline(StandardScaler(), StrategicClassifier())
    grid = {"strategicclassifier__cost": [QuadraticCost(1.0), QuadraticCost(50.0)]}
    with pytest.warns(UserWarning, match="nobody moving"):
        search = GridSearchCV(pipeline, grid, cv=2).fit(X, y)
    # Judged where people stand, the rule that expects short moves does best.
    assert float(search.best_params_["strategicclassifier__cost"].scale) == 50.0
    assert cross_val_score(pipeline, X, y, cv=2, scoring="roc_auc").min() > 0.9


def test_clones_keep_every_parameter_and_the_score_stays_a_method(crowd):
    start = LinearScore(4)
    classifier = StrategicClassifier(score=start, cost=QuadraticCost(3.0), regulariser=L2(0.1))
    copied = clone(classifier)
    assert isinstance(copied.get_params()["score"], LinearScore)
    assert copied.get_params()["score"] is not start
    assert float(copied.cost.scale) == 3.0
    classifier.set_params(score=None)
    assert classifier.get_params()["score"] is None
    assert 0.0 <= classifier.fit(*crowd).score(*crowd) <= 1.0


def test_reads_data_frames_by_their_column_names(crowd):
    X, y = crowd
    frame = pd.DataFrame(X, columns=["income", "debt", "age", "cards"])
    classifier = StrategicClassifier().fit(frame, pd.Series(y))
    assert list(classifier.feature_names_in_) == ["income", "debt", "age", "cards"]
    np.testing.assert_array_equal(
        classifier.predict(frame), StrategicClassifier().fit(X, y).predict(X)
    )
    with pytest.raises(ValueError, match="feature names"):
        classifier.predict(frame[["debt", "income", "age", "cards"]])


def test_same_seed_same_rule_other_seed_other_rule(crowd):
    """Of Adam: shuffles, and the rows that are set aside, come from the seed."""
    settings = {"optimiser": "adam", "max_epochs": 4, "selection": "none"}
    rules = [StrategicClassifier(random_state=s, **settings).fit(*crowd) for s in (0, 0, 1)]
    np.testing.assert_array_equal(rules[0].coef_, rules[1].coef_)
    assert not np.array_equal(rules[0].coef_, rules[2].coef_)


@pytest.mark.parametrize("response", ["none", "best", ["best", "none"]], ids=str)
def test_the_optimum_depends_neither_on_the_seed_nor_on_the_order_of_the_rows(crowd, response):
    X, y = crowd
    order = np.random.default_rng(1).permutation(len(y))
    first = StrategicClassifier(response=response, random_state=0).fit(X, y)
    other = StrategicClassifier(response=response, random_state=1).fit(X[order], y[order])
    np.testing.assert_allclose(first.coef_, other.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(first.intercept_, other.intercept_, rtol=1e-6, atol=1e-9)
    assert first.history_.method == "newton"
    assert first.history_.converged


def test_people_who_differ_may_be_written_as_a_mapping(crowd):
    said = {"kind": "population", "never": 0.2, "log_sd": 0.4}
    written = StrategicClassifier(response=said, selection="none").fit(*crowd)
    built = Population(BestResponse(QuadraticCost(1.0)), never=0.2, log_sd=0.4)
    given = StrategicClassifier(response=built, selection="none").fit(*crowd)
    np.testing.assert_array_equal(written.coef_, given.coef_)
    with pytest.raises(ParameterError, match="never"):
        StrategicClassifier(response={"kind": "population", "nevr": 0.2}).fit(*crowd)


def test_epoch_settings_beside_newton_are_warned_about_once(crowd):
    with pytest.warns(UserWarning, match="max_epochs, patience set how epochs") as seen:
        StrategicClassifier(max_epochs=3, patience=2).fit(*crowd)
    assert len(seen) == 1


def test_newton_asked_for_where_it_does_not_apply_says_why(crowd):
    for settings, why in (
        ({"loss": "hinge"}, "hinge loss has kinks"),
        ({"response": "published"}, "no smooth scores"),
        ({"score": MLPScore(4, (3,)), "response": "ascent"}, "not linear in its parameters"),
        ({"stop_by": "average"}, "mean of many steps"),
    ):
        with pytest.raises(ParameterError, match=why):
            StrategicClassifier(optimiser="newton", **settings).fit(*crowd)


def test_validation_rows_may_be_brought(crowd):
    X, y = crowd
    classifier = StrategicClassifier()
    classifier.fit(X[:160], y[:160], validation=(X[160:], y[160:]))
    assert classifier.score_after_response(X[160:], y[160:]) > 0.85


@pytest.mark.parametrize("optimiser", ["newton", "adam"])
def test_an_interrupted_fit_resumes_to_the_same_rule(crowd, tmp_path, optimiser):
    path = tmp_path / "fit.safetensors"
    settings = {"optimiser": optimiser, "selection": "none"}
    whole = StrategicClassifier(**settings).fit(*crowd)
    StrategicClassifier(**settings).fit(*crowd, checkpoint=path)
    resumed = StrategicClassifier(**settings).fit(*crowd, checkpoint=path)
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)
    np.testing.assert_array_equal(resumed.intercept_, whole.intercept_)


def test_a_score_that_is_a_network_in_what_cannot_move(crowd):
    X, y = crowd
    rng = np.random.default_rng(0)
    X = np.column_stack([X, rng.normal(size=len(X))])
    y = np.where(X[:, 4] > 0.5, 1.0, np.where(X[:, 4] < -0.5, -1.0, y))
    X[:, 4] = np.abs(X[:, 4] + 3.0 * (X[:, 4] > 0.5))
    actions = ActionSet(immutable=(4,))
    network = PartlyLinearScore(5, movable=range(4), generator=torch.Generator().manual_seed(0))
    bent = StrategicClassifier(score=network, actions=actions, patience=30).fit(X, y)
    # Everybody reaches alike, so no direction is owed to the response: the blind network is kept.
    assert bent.choice_.kept == "blind"
    straight = StrategicClassifier(actions=actions).fit(X, y)
    assert bent.score_after_response(X, y) > straight.score_after_response(X, y) + 0.02
    assert not hasattr(bent, "coef_")


def test_a_fitted_classifier_can_be_pickled(fitted, crowd):
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(crowd[0]), fitted.predict(crowd[0]))


def test_history_tells_the_epochs(fitted):
    frame = fitted.history_.to_frame()
    assert frame["kept"].sum() == 1
    assert frame["epoch"].iloc[0] == 0


def test_nothing_to_ask_before_fitting(crowd):
    for method in ("predict", "respond", "predict_after_response"):
        with pytest.raises(NotFittedError):
            getattr(StrategicClassifier(), method)(crowd[0])
    with pytest.raises(NotFittedError):
        StrategicClassifier().score_after_response(*crowd)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"response": "bset"}, UnknownNameError, "did you mean 'best'"),
        ({"response": 3}, ParameterError, "a response is a name"),
        ({"response": []}, ParameterError, "needs members"),
        ({"response": {"kind": "robust", "member": []}}, ParameterError, "did you mean 'members'"),
        ({"response": {"kind": "smooth", "temprature": 1}}, ParameterError, "temperature"),
        ({"loss": "hinges"}, UnknownNameError, "did you mean 'hinge'"),
        ({"optimiser": "sgd"}, UnknownNameError, "known: adam, auto, lbfgs, newton"),
        ({"start": "blnd"}, UnknownNameError, "did you mean 'blind'"),
        ({"start": "given"}, ParameterError, "needs a score"),
        ({"score": LinearScore(7)}, ParameterError, "reads 7 features, X has 4"),
        ({"favourable": "yes"}, ParameterError, "none of the labels"),
        ({"validation_fraction": 1.0}, ParameterError, "validation_fraction"),
        ({"max_epochs": -1}, ParameterError, "max_epochs"),
        ({"score": 3}, ParameterError, "a score is a Score to start from, or None; got 3"),
        ({"cost": "cheap"}, CostError, "or its scale, for example 2.0; got 'cheap'"),
        ({"cost": np.float64(0.0)}, CostError, "must be positive, got 0.0"),
        ({"actions": {"immutable": [0]}}, ParameterError, "actions are an ActionSet"),
        ({"actions": ActionSet(immutable=["c0"])}, ParameterError, "known: x0, x1"),
        ({"regulariser": "l2"}, ParameterError, "for example L2\\(0.1\\), or None; got 'l2'"),
        ({"refits": -1}, ParameterError, "refits is a number of fits"),
        ({"temperature": "warm"}, ParameterError, "temperature must be a positive finite number"),
        ({"validation_fraction": "a"}, ParameterError, "lies in \\[0, 1\\), got 'a'"),
    ],
)
def test_settings_that_make_no_sense_are_refused_at_fit(crowd, settings, error, message):
    classifier = StrategicClassifier(**settings)
    with pytest.raises(error, match=message):
        classifier.fit(*crowd)


def test_a_number_is_the_scale_of_a_quadratic_cost(crowd):
    ours = StrategicClassifier(cost=2.0).fit(*crowd)
    same = StrategicClassifier(cost=QuadraticCost(2.0)).fit(*crowd)
    assert ours.coef_.tolist() == same.coef_.tolist()
    assert ours.cost_.scale == 2.0


def test_actions_may_name_the_columns_of_a_frame(crowd):
    X, y = crowd
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    named = ActionSet(immutable=["c0"], only_increase=["c2"], integer=["c1"], steps={"c1": 2.0})
    by_name = StrategicClassifier(actions=named).fit(frame, y)
    placed = ActionSet(immutable=[0], only_increase=[2], integer=[1], steps={1: 2.0})
    by_place = StrategicClassifier(actions=placed).fit(X, y)
    np.testing.assert_allclose(by_name.coef_, by_place.coef_, rtol=1e-12)
    moves = by_name.respond(frame).x_new - X
    assert moves[:, 0].tolist() == [0.0] * len(X)
    assert (moves[:, 2] >= 0.0).all()
    # Whatever takes the fitted rule looks names up as it does.
    theirs = recommend(by_name, frame, actions=ActionSet(immutable=["c1"]))
    ours = recommend(by_place, X, actions=ActionSet(immutable=[1]))
    np.testing.assert_allclose(theirs.action, ours.action, rtol=1e-12)
    with pytest.raises(ParameterError, match=r"'c9', which is none: .* known: c0, c1, c2, c3"):
        recommend(by_name, frame, actions=ActionSet(immutable=["c9"]))


def test_one_class_is_refused(crowd):
    X, _ = crowd
    with pytest.raises(NotEnoughRowsError, match="one class"):
        StrategicClassifier().fit(X, np.ones(len(X)))


def test_labels_not_trained_on_are_refused_with_their_rows(fitted, crowd):
    X, y = crowd
    strange = y.copy()
    strange[[3, 5]] = 0.0
    with pytest.raises(DataError, match="rows 3, 5") as caught:
        fitted.score_after_response(X, strange)
    assert caught.value.rows == (3, 5)
    assert isinstance(caught.value, CountermoveError)


def test_missing_values_are_refused(crowd):
    X, y = crowd
    X = X.copy()
    X[2, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        StrategicClassifier().fit(X, y)


def test_a_handful_of_people_is_enough_to_train_on():
    X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([0, 0, 1, 1])
    assert StrategicClassifier(cost=QuadraticCost(8.0)).fit(X, y).score_after_response(X, y) == 1.0


def test_constant_features_train_to_the_larger_class():
    X, y = np.ones((30, 2)), np.arange(30) % 3 == 0
    assert StrategicClassifier().fit(X, y).score_after_response(X, y) == pytest.approx(2 / 3)


@pytest.mark.parametrize("response", ["none", "best"])
def test_hinge_probabilities_fit_the_validation_people_and_keep_the_decision(crowd, response):
    """As the rule judges them, that is after response; at 1/2 where the decision turns."""
    X, y = crowd
    clf = StrategicClassifier(response=response, loss="hinge", max_epochs=5, selection="none")
    clf.fit(X[:120], y[:120], validation=(X[120:], y[120:]))
    assert np.array_equal(clf.predict_proba(X)[:, 1] >= 0.5, clf.predict(X) == 1)
    people = named_response(response)
    with torch.no_grad():
        seen = torch.from_numpy(clf.standardiser_.transform(X[120:]))
        after = people.scores_after(clf.standardised_score_, seen).numpy()
    assert clf.probability_slope_ == pytest.approx(fit_slope(after, y[120:]))
    assert clf.probability_slope_ != pytest.approx(1.0)
    logistic = StrategicClassifier(response=response, loss="logistic").fit(X, y)
    assert logistic.probability_slope_ == 1.0


@pytest.mark.parametrize("verbose", [0, 1])
def test_verbose_shows_a_bar_where_somebody_watches(crowd, verbose, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("CI", "")
    settings = {"loss": "hinge", "max_epochs": 2, "selection": "none"}
    StrategicClassifier(verbose=verbose, **settings).fit(*crowd)
    RecourseClassifier(verbose=verbose, max_epochs=2).fit(*crowd)
    assert (capsys.readouterr().err.count("2/2") >= 2) is bool(verbose)


@pytest.mark.parametrize("n", [12, 60, 3_000])
def test_where_nobody_moves_it_is_logistic_regression_with_c_of_6_25(n):
    # A normal prior of sd 2.5 per standard deviation: C is its variance.
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 4)) * [1.0, 200.0, 0.01, 3.0] + [0.0, 5_000.0, 1.0, -4.0]
    X[:, 3] = 2.0 * X[:, 0] + 1.0  # collinear columns have one optimum, too
    y = (X[:, 0] + X[:, 1] / 200.0 - 25.0 + rng.normal(size=n) > 0.0).astype(int)
    settings = {"response": "none", "loss": "logistic", "selection": "none", "calibrate": False}
    ours = StrategicClassifier(**settings).fit(X, y).standardised_score_
    theirs = LogisticRegression(C=6.25, tol=1e-10, max_iter=10_000)
    theirs.fit(StandardScaler().fit_transform(X), y)
    np.testing.assert_allclose(ours.weight.detach(), theirs.coef_[0], atol=1e-6)
    np.testing.assert_allclose(ours.bias.item(), theirs.intercept_[0], atol=1e-6)
