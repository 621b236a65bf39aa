"""People in the plane: the made-up tables of the SERM paper's section 4.4."""

from __future__ import annotations

import numpy as np

from countermove._types import Floats
from countermove.randomness import generator


def two_clouds(
    n: int, distance: float, spread: tuple[float, float], seed: int
) -> tuple[Floats, Floats]:
    """Return n people around (±``distance``, 0) and their labels, favourable on the right.

    Parameters
    ----------
    n
        People, half of them of either class.
    distance
        Of both centres from the origin.
    spread
        Standard deviations of the two features.
    seed
        Decides the draw and the order.
    """
    rng = generator(seed, "two clouds")
    y = np.where(np.arange(n) < n // 2, 1.0, -1.0)
    X = np.column_stack([distance * y, np.zeros(n)]) + rng.normal(size=(n, 2)) * np.array(spread)
    order = rng.permutation(n)
    return X[order], y[order]


def on_parabola(n: int, seed: int) -> tuple[Floats, Floats]:
    """Return n people on x2 = -x1², x1 evenly over [-5, 5], favourable on the left, shuffled."""
    half = n // 2
    left = np.linspace(-5.0, 0.0, half)
    right = np.linspace(5.0, 0.0, n - half, endpoint=False)
    y = np.where(np.arange(n) < half, 1.0, -1.0)
    order = generator(seed, "parabola").permutation(n)
    return parabola(np.concatenate([left, right]))[order], y[order]


def parabola(x: Floats) -> Floats:
    """Return the points of the curve at ``x``, shape (n, 2)."""
    return np.column_stack([x, -(x**2)])


class ParabolaTangents:
    """The true tangents of the curve."""

    def tangents(self, X: Floats) -> Floats:
        """Return the unit tangents, shape (n, 2, 1)."""
        directions = np.column_stack([np.ones(len(X)), -2.0 * X[:, 0]])
        lengths = np.linalg.norm(directions, axis=1, keepdims=True)
        unit: Floats = (directions / lengths)[:, :, None]
        return unit
