"""The covariance of a linear rule: as refits on fresh rows show it, whatever the rule's scale."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from countermove.errors import DataError
from countermove.learning.simple_rules import linear_score, logistic_regression
from countermove.scores import LinearScore, MLPScore
from countermove.scores.covariance import RuleCovariance, covariance_of

WEIGHTS = np.array([1.0, -0.5, 0.0, 0.4])


def people(n, seed):
    """Return rows and labels of a logistic law; the last column has rare large values."""
    draws = np.random.default_rng(seed)
    X = draws.normal(size=(n, 4))
    X[:, 3] = draws.standard_t(4, size=n)
    chance = 1.0 / (1.0 + np.exp(-(X @ WEIGHTS + 0.3)))
    return X, np.where(draws.random(n) < chance, 1.0, -1.0)


def point(score):
    return np.append(score.weight.detach().numpy(), score.bias.detach().numpy())


def test_it_is_the_spread_of_refits():
    """Over 200 refits of 600 rows each, standard errors agree with the refits' to 15 %."""
    refits = np.array([point(logistic_regression(*people(600, seed))) for seed in range(200)])
    said = []
    for seed in range(20):
        X, y = people(600, seed)
        said.append(np.diag(covariance_of(logistic_regression(X, y), X, y).matrix))
    ratio = np.sqrt(np.mean(said, axis=0)) / refits.std(axis=0, ddof=1)
    np.testing.assert_allclose(ratio, 1.0, atol=0.15)


def test_it_scales_with_the_rule_and_shrinks_with_the_rows():
    """Three times the score has nine times the variance; the sample's share counts."""
    X, y = people(500, 0)
    score = logistic_regression(X, y)
    once = covariance_of(score, X, y)
    thrice = covariance_of(linear_score(3.0 * point(score)), X, y)
    np.testing.assert_allclose(thrice.matrix, 9.0 * once.matrix, rtol=1e-6)
    of_more = covariance_of(score, X, y, rows=5_000)
    np.testing.assert_allclose(of_more.matrix, once.matrix / 10.0)
    assert of_more.rows == 5_000


def test_what_a_rule_leaves_out_stays_out():
    """A weight of zero is not refitted: it has no variance."""
    X, y = people(500, 0)
    fitted = point(logistic_regression(X, y))
    fitted[2] = 0.0
    found = covariance_of(linear_score(fitted), X, y)
    assert not found.matrix[2].any()
    assert found.matrix[0, 0] > 0.0


def test_the_intercept_follows_the_weights_by_the_reach():
    """Of a rule that expects a move r, s(x) varies as the blind score does at x - r."""
    X, y = people(500, 0)
    score, move = logistic_regression(X, y), np.array([0.5, -0.2, 0.0, 0.1])
    blind, expecting = covariance_of(score, X, y), covariance_of(score, X, y, reach=move)
    np.testing.assert_allclose(
        expecting.score_variance(X[:20] + move), blind.score_variance(X[:20]), rtol=1e-9
    )


def test_the_fit_that_chose_an_action_overstates_it():
    """One true weight among nine of none: the mean overstatement is what is said, to a third."""
    truth, need, said, weights = np.append(1.0, np.zeros(9)), 2.0, [], []
    for seed in range(150):
        draws = np.random.default_rng(seed)
        X = draws.normal(size=(300, 10))
        y = np.where(draws.random(300) < 1.0 / (1.0 + np.exp(-X @ truth)), 1.0, -1.0)
        score = logistic_regression(X, y)
        weight = point(score)[:-1]
        weights.append(weight)
        action = need * weight / (weight @ weight)
        said.append(covariance_of(score, X, y).optimism(weight, action[None])[0])
    fits = np.array(weights)
    actions = need * fits / (fits**2).sum(axis=1, keepdims=True)
    seen = ((fits - fits.mean(axis=0)) * actions).sum(axis=1)
    assert np.mean(seen) > 0.1
    assert np.mean(said) == pytest.approx(np.mean(seen), rel=0.34)


def test_none_of_networks_of_constants_and_of_scores_that_do_not_rise_with_the_label():
    """There is no covariance to speak of: None, not a guess."""
    X, y = people(300, 0)
    assert (
        covariance_of(MLPScore(4, (3,), generator=torch.Generator().manual_seed(0)), X, y) is None
    )
    assert covariance_of(LinearScore(4), X, y) is None
    assert covariance_of(linear_score(-point(logistic_regression(X, y))), X, y) is None


def test_a_matrix_that_is_not_finite_is_refused():
    """A NaN would make every margin NaN."""
    with pytest.raises(DataError, match="finite"):
        RuleCovariance(np.full((2, 2), np.nan), 0.0, 10)
