"""Brittleness on rules whose boundary is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import norm

from countermove.recourse.audit_robustness import brittleness, deepfool, manifold_generator
from countermove.recourse.performance import approves, scores_of
from countermove.scores import LinearScore, MLPScore

X = np.random.default_rng(0).normal(size=(3_000, 3))


def line(weights=(1.0, 2.0, 0.0), bias=-0.5) -> LinearScore:
    score = LinearScore(3)
    with torch.no_grad():
        score.weight.copy_(torch.tensor(weights, dtype=torch.float64))
        score.bias.fill_(bias)
    return score


def test_deepfool_finds_the_nearest_point_of_a_line():
    change, crossed = deepfool(line(), X, np.array([True, True, True]))
    distance = np.abs(scores_of(line(), X)) / np.sqrt(5.0)
    assert crossed.all()
    np.testing.assert_allclose(np.linalg.norm(change, axis=1), distance, rtol=1e-9)


def test_deepfool_touches_only_the_features_it_may():
    change, crossed = deepfool(line(), X, np.array([True, False, False]))
    assert crossed.all()
    assert (change[:, 1:] == 0).all()
    np.testing.assert_allclose(np.abs(change[:, 0]), np.abs(scores_of(line(), X)))


def test_deepfool_crosses_the_boundary_of_a_network_and_gives_up_on_a_plateau():
    network = MLPScore(3, (20, 20), generator=torch.Generator().manual_seed(3))
    columns = np.ones(3, bool)
    change, crossed = deepfool(network, X[:300], columns)
    after = approves(network, X[:300] + 1.02 * change)
    assert (after != approves(network, X[:300]))[crossed].all()
    assert crossed.mean() > 0.9
    assert not deepfool(line((0.0, 0.0, 0.0)), X[:5], columns)[1].any()


def test_gaussian_noise_flips_as_often_as_theory_says():
    found = brittleness(line(), X, np.array([True, False, True]), X, sd=0.3)
    margin = np.abs(scores_of(line(), X)) / 0.3
    assert found.gaussian.low <= norm.cdf(margin).mean() <= found.gaussian.high
    within = np.abs(scores_of(line(), X)) <= 0.1
    assert found.deepfool.value == pytest.approx(1.0 - within.mean())
    assert found.on_manifold_searched.value <= found.on_manifold.value
    assert found == brittleness(line(), X, np.array([True, False, True]), X, sd=0.3)


def test_the_generator_moves_features_together_as_the_data_do():
    rng = np.random.default_rng(1)
    near = rng.normal(size=(800, 1)) * [1.0, 1.0] + 0.05 * rng.normal(size=(800, 2))
    far = rng.normal(size=(800, 1)) * [1.0, -1.0] + 0.05 * rng.normal(size=(800, 2)) + [12.0, 0.0]
    change, components = manifold_generator(np.vstack([near, far]), seed=0)
    assert components >= 2
    for people, sign in ((near, 1.0), (far, -1.0)):
        moved = change(people, rng)
        assert sign * np.corrcoef(moved.T)[0, 1] > 0.9


def test_a_table_of_a_few_distinct_rows_has_a_generator():
    few = np.tile(np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), (60, 1))
    change, _ = manifold_generator(few, seed=0)
    assert np.isfinite(change(few, np.random.default_rng(0))).all()


def test_a_handful_of_rows_is_enough_for_one_gaussian():
    assert manifold_generator(X[:12], seed=0)[1] == 1
