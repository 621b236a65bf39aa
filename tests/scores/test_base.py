"""A score is read as it decides; its probabilities keep the order of people."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.special import expit

from countermove.errors import DataError, NotEnoughRowsError, ParameterError
from countermove.scores import LinearScore, MLPScore
from countermove.scores.base import SLICE, deciding, fit_slope, probability, score_of, values


def test_values_are_those_without_dropout_and_training_goes_on():
    score = MLPScore(3, hidden=(5,), dropout=0.5).train()
    X = np.random.default_rng(0).normal(size=(SLICE + 3, 3))
    found = values(score, X)
    assert score.training
    with deciding(score), torch.no_grad():
        assert not score.training
        assert np.allclose(found, score(torch.from_numpy(X)).numpy())


def test_a_model_holds_its_score_by_any_usual_name():
    score = LinearScore(2)
    for model in (score, SimpleNamespace(score=score), SimpleNamespace(score_=score)):
        assert score_of(model) is score
    with pytest.raises(ParameterError, match="holds no score"):
        score_of("rule")


@pytest.mark.parametrize("slope", [0.2, 1.0, 7.0])
def test_slope_of_a_known_scale_is_found(slope):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=40_000)
    y = np.where(rng.random(40_000) < expit(slope * scores), 1.0, -1.0)
    assert fit_slope(scores, y) == pytest.approx(slope, rel=0.05)
    assert fit_slope(1e6 * scores, y) == pytest.approx(slope / 1e6, rel=0.05)


def test_slope_minimises_the_log_loss():
    rng = np.random.default_rng(1)
    scores, y = rng.normal(size=200), np.where(rng.random(200) < 0.6, 1.0, -1.0)
    scores += 0.5 * y
    n_plus, n_minus = np.sum(y > 0), np.sum(y < 0)
    t = np.where(y > 0, (n_plus + 1) / (n_plus + 2), 1 / (n_minus + 2))

    def derivative(a):
        return np.sum(scores * (expit(a * scores) - t))

    assert derivative(fit_slope(scores, y)) == pytest.approx(0.0, abs=1e-4)


def test_separated_and_hopeless_scores_keep_a_positive_finite_slope():
    y = np.array([1.0, 1.0, -1.0, -1.0])
    for scores in (y, -y, 0.0 * y):
        assert 0.0 < fit_slope(scores, y) < np.inf


def test_half_is_where_the_decision_turns():
    assert probability(np.array([-1.0, 0.0, 1.0]), 3.0) == pytest.approx(expit([-3.0, 0.0, 3.0]))


def test_threshold_on_the_scaled_probability_is_folded_into_the_bias():
    rule = LinearScore(2).at_threshold(0.8, slope=2.0)
    assert float(rule.bias.detach()) == pytest.approx(-0.5 * np.log(4.0))


def test_bad_scores_are_named():
    with pytest.raises(DataError, match="rows 1"):
        fit_slope(np.array([0.0, np.nan]), np.array([1.0, -1.0]))
    with pytest.raises(NotEnoughRowsError):
        fit_slope(np.empty(0), np.empty(0))
