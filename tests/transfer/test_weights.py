"""Cells' weights satisfy the identity; reweighted training finds the best deployed threshold."""

from __future__ import annotations

import numpy as np
import pytest
from tests.transfer.populations import induced_error

from countermove.errors import DataError, ParameterError
from countermove.transfer.sample import Pair, Sample
from countermove.transfer.shifts import UniformResponse
from countermove.transfer.weights import cell_weights, reweighted_erm, score_edges, variance_upper


@pytest.fixture
def pair():
    rng = np.random.default_rng(0)
    score = rng.normal(size=3000)
    label = np.where(rng.random(3000) < 1 / (1 + np.exp(-score)), 1.0, -1.0)
    moved = np.where((score < 0) & (score > -0.5), 0.01, score)
    return Pair(Sample(score, label), Sample(moved, label), "kept", paired=True)


def test_reweighted_source_errors_are_induced_errors(pair):
    edges = score_edges(pair.source, 6)
    weights = cell_weights(pair, edges)
    cell = np.searchsorted(edges, pair.source.score, "right")
    w = weights.ratio[cell, pair.source.favourable.astype(int)]
    assert np.mean(w) == pytest.approx(1.0)
    assert np.mean(w * pair.source.wrong()) == pytest.approx(pair.induced.error())
    assert np.var(w) == pytest.approx(weights.variance)
    assert variance_upper(pair, edges, 0.05) > weights.variance


def test_threshold_is_an_edge_and_cells_are_filled(pair):
    for threshold in (-0.7, 0.0, 1.3):
        edges = score_edges(pair.source, 8, threshold)
        assert threshold in edges
        assert len(edges) <= 8
        assert np.all(np.diff(edges) > 0)


def test_fewer_bins_never_raise_the_variance(pair):
    variances = [cell_weights(pair, score_edges(pair.source, k)).variance for k in (2, 4, 8)]
    assert variances[0] <= variances[1] + 1e-12
    assert variances[1] <= variances[2] + 1e-12


def test_mass_outside_the_source_is_told_and_leaves_no_variance(pair):
    away = Sample(np.append(pair.source.score[1:], 9.0), pair.source.label)
    outside = cell_weights(Pair(pair.source, away, "kept", False), np.array([0.0, 8.0]))
    assert outside.outside == pytest.approx(1 / 3000)
    assert outside.variance is None
    with pytest.raises(DataError, match=r"0.03% of the induced people .*Theorem 4.2\) drop out"):
        outside.ratio  # noqa: B018
    left = Pair(pair.source, away, "kept", False)
    assert variance_upper(left, np.array([0.0, 8.0]), 0.05) == np.inf


def test_threshold_outside_the_scores_is_refused(pair):
    with pytest.raises(ParameterError, match="outside the range of the scores"):
        score_edges(pair.source, 6, 50.0)
    with pytest.raises(ParameterError, match="at least 2"):
        score_edges(pair.source, 1)


def test_reweighting_the_source_finds_the_best_deployed_threshold():
    def chances(x):
        return 1.0 / (1.0 + np.exp(-15.0 * (x - 0.5)))

    rng = np.random.default_rng(0)
    x = rng.random(60_000)
    y = rng.random(60_000) < chances(x)
    thresholds = np.linspace(0.25, 0.75, 21)
    people = [UniformResponse(float(t), 0.2) for t in thresholds]
    weights = np.stack([person.weights(x) for person in people])
    losses = np.stack([(x >= t) != y for t in thresholds]).astype(float)
    found = reweighted_erm(weights, losses)
    exact = np.array([induced_error(person, chances) for person in people])
    assert found.risks == pytest.approx(exact, abs=0.01)
    assert exact[found.index] == pytest.approx(exact.min(), abs=0.002)
    assert weights.mean(axis=1) == pytest.approx(1.0, abs=0.01)
    # The source-optimal threshold is another one.
    assert abs(thresholds[found.index] - 0.5) > 0.05


def test_negative_weights_are_refused_by_row():
    with pytest.raises(DataError, match="candidate 0, row 2") as error:
        reweighted_erm(np.array([[1.0, 1.0, -0.5]]), np.zeros((1, 3)))
    assert error.value.rows == (2,)


def test_candidates_whose_people_are_nowhere_are_refused():
    with pytest.raises(DataError, match=r"candidate\(s\) 1"):
        reweighted_erm(np.array([[1.0, 1.0], [0.0, 0.0]]), np.zeros((2, 2)))


def test_shapes_must_agree():
    with pytest.raises(ParameterError, match="shape"):
        reweighted_erm(np.ones((2, 3)), np.ones((3, 2)))
