"""The measures are scikit-learn's, plus what F1 must be read against."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics

from countermove.errors import DataError
from countermove.recourse.performance import approves, best_f1, performance, scores_of
from countermove.scores import LinearScore

RNG = np.random.default_rng(0)
SCORES = np.round(RNG.normal(size=200), 1)
DESERVING = SCORES + RNG.normal(size=200) > -0.4


def test_the_measures_are_scikit_learns():
    found, approved = performance(SCORES, DESERVING), SCORES >= 0
    assert found.accuracy == pytest.approx(metrics.accuracy_score(DESERVING, approved))
    balanced = metrics.balanced_accuracy_score(DESERVING, approved)
    assert found.balanced_accuracy == pytest.approx(balanced)
    assert found.precision == pytest.approx(metrics.precision_score(DESERVING, approved))
    assert found.recall == pytest.approx(metrics.recall_score(DESERVING, approved))
    assert found.f1 == pytest.approx(metrics.f1_score(DESERVING, approved))
    assert found.auc == pytest.approx(metrics.roc_auc_score(DESERVING, SCORES))
    everybody = metrics.f1_score(DESERVING, np.ones(200, bool))
    assert found.always_positive_f1 == pytest.approx(everybody)
    assert found.positive_rate == pytest.approx(approved.mean())


def test_the_best_f1_is_the_best_over_every_cut():
    cut, f1 = best_f1(SCORES, DESERVING)
    every = {s: metrics.f1_score(DESERVING, s <= SCORES) for s in np.unique(SCORES)}
    assert f1 == pytest.approx(max(every.values()))
    assert every[cut] == pytest.approx(f1)


def test_of_equal_cuts_the_strictest_is_taken():
    assert best_f1(np.array([3.0, 2.0, 1.0, 0.0]), np.array([1, 0, 0, 0], bool)) == (3.0, 1.0)


def test_without_one_class_or_approvals_shares_are_none():
    nobody = performance(np.array([-1.0, -2.0]), np.array([True, True]))
    assert nobody.precision is None
    assert nobody.auc is None
    assert nobody.balanced_accuracy is None
    assert nobody.recall == 0.0
    assert nobody.f1 == 0.0


def test_a_score_within_rounding_of_the_threshold_passes():
    rule, X = LinearScore(1), np.array([[-1e-12], [-1e-3]])
    rule.weight.data.fill_(1.0)
    assert approves(rule, X).tolist() == [True, False]
    assert scores_of(rule, X).tolist() == [0.0, -1e-3]


def test_labels_of_other_people_are_refused():
    with pytest.raises(DataError, match="same people"):
        performance(SCORES, DESERVING[:5])
