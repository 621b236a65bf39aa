"""Learned surfaces: their tangents are the true ones where those are known."""

from __future__ import annotations

import numpy as np
import pytest

from countermove.data.synthetic import ParabolaTangents, on_parabola
from countermove.errors import DataError, ParameterError
from countermove.people.manifold import ContractiveAutoencoder


@pytest.fixture(scope="module")
def learned():
    X, _ = on_parabola(200, seed=0)
    return X, ContractiveAutoencoder(max_iterations=120, starts=1).fit(X)


def test_tangents_are_orthonormal_and_close_to_the_true_ones(learned):
    X, surface = learned
    found = surface.tangents(X)
    assert found.shape == (200, 2, 1)
    assert np.allclose(np.linalg.norm(found, axis=1), 1.0)
    alike = np.abs((found * ParabolaTangents().tangents(X)).sum(axis=1))
    # A random direction would have a mean of 2/pi.
    assert alike.mean() > 0.95


def test_a_plane_in_three_dimensions_is_found():
    rng = np.random.default_rng(1)
    basis = np.linalg.qr(rng.normal(size=(3, 2)))[0]
    X = rng.normal(size=(150, 2)) @ basis.T
    model = ContractiveAutoencoder(dimension=2, max_iterations=120, starts=1)
    found = model.fit(X).tangents(X)
    inside = np.linalg.norm(basis.T @ found, axis=1)
    assert inside.mean() > 0.95


def test_the_same_seed_gives_the_same_surface(learned):
    X, surface = learned
    again = ContractiveAutoencoder(max_iterations=120, starts=1).fit(X)
    assert np.array_equal(again.tangents(X), surface.tangents(X))


def test_where_the_code_does_not_change_the_rows_are_named(learned):
    _, surface = learned
    far = np.array([[0.0, 0.0], [1e6, -1e6]])
    with pytest.raises(DataError, match="no tangent of rank 1 at rows 1") as caught:
        surface.tangents(far)
    assert caught.value.rows == (1,)


@pytest.mark.parametrize("dimension", [0, 2])
def test_a_surface_has_fewer_dimensions_than_there_are_features(dimension):
    with pytest.raises(ParameterError, match="between 1 and 1"):
        ContractiveAutoencoder(dimension=dimension).fit(np.zeros((5, 2)))


def test_rows_that_teach_nothing_are_refused():
    with pytest.raises(DataError, match="columns 1 never vary"):
        ContractiveAutoencoder().fit(np.array([[0.0, 1.0], [1.0, 1.0]]))
    with pytest.raises(DataError, match="finite rows"):
        ContractiveAutoencoder().fit(np.array([[0.0, np.nan]]))


def test_of_several_starts_the_lowest_loss_is_kept():
    X, _ = on_parabola(100, seed=1)
    losses = [
        ContractiveAutoencoder(max_iterations=40, starts=starts, seed=1).fit(X).loss
        for starts in (1, 2, 4)
    ]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0]
