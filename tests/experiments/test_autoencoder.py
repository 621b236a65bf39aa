"""Codes of an auto-encoder distinguish what differs, and are the same every time."""

import numpy as np
import pytest

from countermove.errors import DataError, ParameterError
from countermove.experiments.collective.autoencoder import VariationalAutoencoder


def two_shapes(n=60):
    rng = np.random.default_rng(0)
    shapes = np.array([[1.0, 1.0, 0.0, 0.0] * 3, [0.0, 0.0, 1.0, 1.0] * 3])
    y = np.arange(n) % 2
    return np.clip(shapes[y] + rng.normal(scale=0.1, size=(n, 12)), 0.0, 1.0), y


@pytest.mark.parametrize("optimiser", ["adam", "sgd"])
def test_codes_tell_shapes_apart(optimiser):
    X, y = two_shapes()
    rate = {"adam": 0.01, "sgd": 0.05}[optimiser]
    learner = VariationalAutoencoder(
        2, (16, 16), optimiser=optimiser, learning_rate=rate, epochs=60, batch_size=20
    )
    codes = learner.codes(X)
    assert codes.shape == (60, 2)
    between = np.linalg.norm(codes[y == 0].mean(axis=0) - codes[y == 1].mean(axis=0))
    assert between > 3 * np.mean([codes[y == c].std(axis=0).max() for c in (0, 1)])
    assert np.array_equal(codes, learner.codes(X))


def test_nonsense_is_refused():
    with pytest.raises(DataError, match=r"\[0, 1\]"):
        VariationalAutoencoder().codes(np.array([[0.0, 2.0]]))
    with pytest.raises(ParameterError, match="learning rate"):
        VariationalAutoencoder(learning_rate=0.0)
