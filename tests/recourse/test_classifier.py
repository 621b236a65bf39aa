"""A good scikit-learn citizen that leaves the refused recourse."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from countermove.errors import (
    DataError,
    InfeasibleActionsError,
    NotEnoughRowsError,
    ParameterError,
    UnknownNameError,
)
from countermove.people import ActionSet
from countermove.recourse import RecourseClassifier
from countermove.recourse.objective import RecourseRisk, single_step, usual_actions
from countermove.response import BestResponse, Population, named_response
from countermove.scores import LinearScore, MLPScore
from countermove.training import Loss
from countermove.training.second_order import PRIOR_SD

from .applicants import second_feature_only, some_applicants

SMALL = {"hidden": (16,), "dropout": 0.1, "learning_rate": 0.01, "batch_size": 32}


@pytest.fixture(scope="module")
def applicants():
    return some_applicants()


@pytest.fixture(scope="module")
def one_feature():
    return second_feature_only()


def test_a_linear_rule_without_the_recourse_term_is_trained_to_the_optimum(applicants, one_feature):
    X, y = applicants
    settings = {"actions": one_feature, "score": LinearScore(3)}
    plain = [RecourseClassifier(**settings, recourse_weight=0.0, random_state=k) for k in (0, 1)]
    rules = [rule.fit(X, y, validation=(X, y)) for rule in plain]
    assert rules[0].history_.method == "newton"
    assert rules[0].history_.converged
    np.testing.assert_array_equal(rules[0].coef_, rules[1].coef_)
    charged = RecourseClassifier(**settings, max_epochs=1).fit(X, y)
    assert charged.history_.method == "adam"


def by_mini_batches(estimator) -> dict[str, str]:
    """Return the check that scikit-learn's own estimators by mini-batches fail too."""
    return {
        "check_sample_weight_equivalence_on_dense_data": "repeated rows come in other mini-batches"
    }


@parametrize_with_checks(
    [RecourseClassifier(**SMALL, max_epochs=20)], expected_failed_checks=by_mini_batches
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        RecourseClassifier(),
        RecourseClassifier(**SMALL, recourse_weight=0.0, selection="accuracy", max_epochs=60),
    ],
    expected_failed_checks=by_mini_batches,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learns_own_checks_as_published_and_of_plain_training(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def fitted(applicants, one_feature) -> RecourseClassifier:
    classifier = RecourseClassifier(one_feature, **SMALL, max_epochs=10)
    return classifier.fit(*applicants, ids=np.arange(600) + 7)


def test_what_is_left_behind(fitted, one_feature):
    assert isinstance(fitted.score_, MLPScore)
    assert not fitted.score_.training
    unit = fitted.standardiser_.scale
    np.testing.assert_allclose(fitted.actions_.upper, one_feature.upper * unit)
    assert fitted.actions_.immutable == one_feature.immutable
    assert fitted.classes_.tolist() == [0, 1]
    assert fitted.history_.best.validation_merit == max(
        record.validation_merit for record in fitted.history_.records
    )
    assert fitted.train_ids_.tolist() == list(range(7, 607))


def test_decisions_probabilities_and_scores_agree(fitted, applicants):
    X, y = applicants
    with torch.no_grad():
        values = fitted.score_(torch.from_numpy(X)).numpy()
    np.testing.assert_array_equal(fitted.decision_function(X), values)
    np.testing.assert_allclose(fitted.predict_proba(X)[:, 1], 1 / (1 + np.exp(-values)))
    np.testing.assert_array_equal(fitted.predict(X), values >= 0)
    assert fitted.score(X, y) == np.mean((values >= 0) == y)


def recourse_share(classifier: RecourseClassifier, X: np.ndarray) -> float:
    after = X + single_step(classifier.score_, X, classifier.actions_)
    refused = classifier.predict(X) == 0
    return float(np.mean(classifier.predict(after)[refused] == 1))


def test_recourse_rises_with_its_weight(applicants, one_feature):
    X, y = applicants
    settings = SMALL | {"max_epochs": 15, "selection": "loss"}
    shares = [
        recourse_share(RecourseClassifier(one_feature, w, **settings).fit(X, y), X)
        for w in (0.0, 0.8, 2.0)
    ]
    assert shares[0] + 0.05 < shares[1] < shares[2]


def test_only_what_may_move_is_used(applicants):
    X, y = applicants
    nobody = ActionSet(lower=[0.0] * 3, upper=[0.0] * 3)
    settings = SMALL | {"max_epochs": 15, "selection": "loss"}
    stuck = RecourseClassifier(nobody, 0.8, **settings).fit(X, y)
    assert recourse_share(stuck, X) == 0.0


def test_limits_may_differ_from_person_to_person(applicants):
    X, y = applicants
    high = np.full(X.shape, 0.5)
    high[::2] = 0.0
    actions = ActionSet(lower=-high, upper=high)
    own = RecourseClassifier(actions, **SMALL, max_epochs=2).fit(X, y)
    common = RecourseClassifier(ActionSet(lower=[-0.5] * 3, upper=[0.5] * 3), **SMALL, max_epochs=2)
    assert not np.array_equal(own.decision_function(X), common.fit(X, y).decision_function(X))


def test_a_response_and_recourse_together(applicants, one_feature):
    X, y = applicants
    settings = SMALL | {"max_epochs": 8, "score": LinearScore(3), "learning_rate": 0.05}
    for response in ("best", BestResponse()):
        both = RecourseClassifier(one_feature, 0.3, response=response, **settings).fit(X, y)
        assert isinstance(both.score_, LinearScore)
        assert both.coef_.shape == (1, 3)
    blind = RecourseClassifier(one_feature, 0.3, **settings).fit(X, y)
    answer = BestResponse()
    after = [np.mean(answer.decisions_after(c.score_, X) == y) for c in (both, blind)]
    assert after[0] > after[1] + 0.1


def test_balanced_classes_favour_the_rare_label(applicants):
    X, y = applicants
    rare = (X[:, 0] + 0.5 * X[:, 1] > 1.4).astype(int)
    settings = SMALL | {"max_epochs": 10, "recourse_weight": 0.0, "selection": "loss"}
    plain = RecourseClassifier(**settings).fit(X, rare)
    for weight in ("balanced", {0: 1.0, 1: 6.0}):
        heavy = RecourseClassifier(class_weight=weight, **settings).fit(X, rare)
        assert heavy.predict(X).mean() > plain.predict(X).mean()
    assert y.mean() > rare.mean()


def test_same_seed_same_rule_whatever_torchs_own_state(applicants):
    X, y = applicants
    rules = []
    for seed, own in ((0, 1), (0, 2), (1, 1)):
        torch.manual_seed(own)
        rules.append(RecourseClassifier(**SMALL, max_epochs=2, random_state=seed).fit(X, y))
    values = [rule.decision_function(X) for rule in rules]
    np.testing.assert_array_equal(values[0], values[1])
    assert not np.array_equal(values[0], values[2])


def test_data_frames_names_other_labels_and_pickles(applicants):
    X, y = applicants
    frame = pd.DataFrame(X, columns=["priors", "stay", "age"])
    labels = np.where(y == 1, "ok", "reoffends")
    classifier = RecourseClassifier(**SMALL, max_epochs=3, favourable="ok").fit(frame, labels)
    assert list(classifier.feature_names_in_) == ["priors", "stay", "age"]
    assert classifier.score(frame, labels) > 0.6
    again = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(again.predict(frame), classifier.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        classifier.predict(frame[["stay", "priors", "age"]])


def test_a_clone_keeps_every_parameter(one_feature):
    classifier = RecourseClassifier(one_feature, score=LinearScore(3), class_weight="balanced")
    copied = clone(classifier)
    assert isinstance(copied.get_params()["score"], LinearScore)
    assert repr(copied.actions) == repr(one_feature)
    assert copied.class_weight == "balanced"


def test_a_given_network_is_the_start_and_stays_untouched(applicants):
    X, y = applicants
    given = MLPScore(3, (4,))
    before = given(torch.from_numpy(X))
    fitted = RecourseClassifier(score=given, max_epochs=1).fit(X, y)
    assert fitted.score_.hidden == (4,)
    assert torch.equal(given(torch.from_numpy(X)), before)


def test_validation_rows_may_be_brought_and_runs_resumed(applicants, tmp_path):
    X, y = applicants
    settings = SMALL | {"max_epochs": 3}
    validation = (X[400:], y[400:])
    path = tmp_path / "run.safetensors"
    first = RecourseClassifier(**settings).fit(
        X[:400], y[:400], validation=validation, checkpoint=path
    )
    again = RecourseClassifier(**settings).fit(
        X[:400], y[:400], validation=validation, checkpoint=path
    )
    np.testing.assert_array_equal(again.decision_function(X), first.decision_function(X))


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"recourse_weight": -1.0}, ParameterError, "recourse_weight"),
        ({"hidden": ()}, ParameterError, "hidden"),
        ({"hidden": (10, -1)}, ParameterError, "hidden"),
        ({"activation": "thanh"}, UnknownNameError, "did you mean 'tanh'"),
        ({"dropout": 1.5}, ParameterError, "dropout"),
        ({"selection": "f2"}, UnknownNameError, "did you mean 'f1'"),
        ({"class_weight": "balance"}, UnknownNameError, "did you mean 'balanced'"),
        ({"class_weight": {0: 1.0}}, ParameterError, "each of the labels 0, 1"),
        ({"class_weight": {0: 1.0, 1: -1.0}}, ParameterError, "positive"),
        ({"response": "best"}, ParameterError, "LinearScore"),
        ({"response": 3, "score": LinearScore(3)}, ParameterError, "response"),
        ({"response": "bst", "score": LinearScore(3)}, UnknownNameError, "did you mean 'best'"),
        ({"score": LinearScore(5)}, ParameterError, "reads 5 features"),
        ({"actions": ActionSet(lower=[-1.0] * 4)}, ParameterError, "4 features"),
        ({"actions": ActionSet()}, ParameterError, "nothing bounds"),
        (
            {"actions": ActionSet(lower=[1.0] * 3, upper=[2.0] * 3, max_value=[-9.0] * 3)},
            InfeasibleActionsError,
            "no action is allowed",
        ),
        ({"favourable": "yes"}, ParameterError, "none of the labels"),
        ({"max_epochs": 1.5}, ParameterError, "max_epochs"),
    ],
)
def test_settings_that_make_no_sense_are_refused_at_fit(applicants, settings, error, message):
    with pytest.raises(error, match=message):
        RecourseClassifier(**settings).fit(*applicants)


def test_one_class_and_too_few_ids_are_refused(applicants):
    X, y = applicants
    with pytest.raises(NotEnoughRowsError, match="one class"):
        RecourseClassifier().fit(X, np.ones(len(X)))
    with pytest.raises(DataError, match="as many ids"):
        RecourseClassifier(**SMALL, max_epochs=0).fit(X, y, ids=[1, 2])


PLAIN = {"recourse_weight": 0.0, "score": LinearScore(3)}


@pytest.mark.parametrize(
    "response", [None, "best", "smooth", Population(BestResponse(), log_sd=0.3)]
)
def test_without_a_penalty_a_linear_score_is_trained_to_the_optimum(applicants, response):
    """Whatever the seed: the gradient of the weighted loss after response vanishes."""
    X, y = applicants
    weights = {0: 0.7, 1: 1.9}
    rules = [
        RecourseClassifier(**PLAIN, response=response, class_weight=weights, random_state=seed).fit(
            X, y
        )
        for seed in (0, 5)
    ]
    assert rules[0].history_.method == "newton"
    assert rules[0].history_.converged
    assert rules[0].history_.ended.startswith("converged")
    np.testing.assert_array_equal(rules[0].coef_, rules[1].coef_)
    rows = torch.from_numpy(rules[0].standardiser_.transform(X))
    signs = torch.from_numpy(np.where(y > 0, 1.0, -1.0))
    risk = RecourseRisk(
        3,
        0.0,
        Loss("logistic", (0.7, 1.9)),
        named_response(response, actions=usual_actions(3))
        if isinstance(response, str)
        else response,
    )
    score = rules[0].standardised_score_
    risk.loss(score, rows, signs).backward()
    assert float(score.bias.grad.abs()) < 1e-6
    prior = score.weight.detach() / (PRIOR_SD**2 * len(y))
    assert float((score.weight.grad + prior).abs().max()) < 1e-6


def test_a_penalty_a_network_or_the_name_keep_adam(applicants):
    X, y = applicants
    for settings in (
        {"score": LinearScore(3), "recourse_weight": 0.1},
        {"hidden": (4,), "recourse_weight": 0.0},
        PLAIN | {"optimiser": "adam"},
    ):
        rule = RecourseClassifier(**settings, max_epochs=1).fit(X, y)
        assert rule.history_.method == "adam"
        assert rule.history_.converged is None
    with pytest.raises(ParameterError, match="the best action of the recourse term jumps"):
        RecourseClassifier(score=LinearScore(3), optimiser="newton").fit(X, y)
    with pytest.warns(UserWarning, match="max_epochs, selection set how epochs are taken"):
        RecourseClassifier(**PLAIN, max_epochs=3, selection="loss").fit(X, y)
