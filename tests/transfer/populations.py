"""Random finite populations in which every term of every bound is known exactly.

People stand on a grid of score cells and have one of two labels. ``mass[k, y]`` is the
probability of cell k and label y (y = 0: -1, y = 1: +1); a threshold t accepts cells >= t.
All populations of a batch are computed at once: the first axis counts them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from countermove.transfer.shifts import UniformResponse

CELLS = 8


@dataclass(frozen=True)
class Populations:
    """``mass``: (populations, cells, 2)."""

    mass: np.ndarray

    @property
    def favourable(self) -> np.ndarray:
        return self.mass[:, :, 1].sum(axis=1)

    def errors(self) -> np.ndarray:
        """Error of every threshold 0..CELLS, (populations, CELLS + 1)."""
        zero = np.zeros((len(self.mass), 1))
        missed = np.concatenate([zero, np.cumsum(self.mass[:, :, 1], axis=1)], axis=1)
        below = np.concatenate([zero, np.cumsum(self.mass[:, :, 0], axis=1)], axis=1)
        return missed + below[:, -1:] - below

    def error(self, threshold: np.ndarray) -> np.ndarray:
        return np.take_along_axis(self.errors(), threshold[:, None], axis=1)[:, 0]

    def accepted(self, threshold: np.ndarray) -> np.ndarray:
        above = np.arange(CELLS) >= threshold[:, None]
        return (self.mass.sum(axis=2) * above).sum(axis=1)

    def rates(self, threshold: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """True and false positive rate."""
        above = np.arange(CELLS) >= threshold[:, None]
        p = self.favourable
        true = (self.mass[:, :, 1] * above).sum(axis=1) / p
        return true, (self.mass[:, :, 0] * above).sum(axis=1) / (1 - p)


def random(rng: np.random.Generator, n: int) -> Populations:
    """Draw from smooth to spiky, some with empty cells."""
    shape = rng.choice([0.1, 0.5, 2.0], size=(n, 1, 1))
    mass = rng.gamma(shape, size=(n, CELLS, 2)) + 1e-6
    return Populations(mass / mass.sum(axis=(1, 2), keepdims=True))


def covariate_shift(rng: np.random.Generator, source: Populations, strength: float) -> Populations:
    """Move P(X), keep P(Y | X)."""
    marginal = source.mass.sum(axis=2)
    moved = marginal * np.exp(strength * rng.standard_normal(marginal.shape))
    moved /= moved.sum(axis=1, keepdims=True)
    return Populations(source.mass * (moved / marginal)[:, :, None])


def target_shift(rng: np.random.Generator, source: Populations) -> Populations:
    """Move P(Y), keep P(X | Y)."""
    return with_favourable(source, rng.uniform(0.02, 0.98, len(source.mass)))


def with_favourable(source: Populations, share: np.ndarray) -> Populations:
    p = source.favourable
    factor = np.stack([(1 - share) / (1 - p), share / p], axis=1)
    return Populations(source.mass * factor[:, None, :])


def divergence(one: Populations, other: Populations) -> np.ndarray:
    """Twice the largest difference of P(h != h') over pairs of thresholds, by brute force."""
    gap = (one.mass - other.mass).sum(axis=2)
    most = np.zeros(len(gap))
    for low in range(CELLS):
        for high in range(low + 1, CELLS + 1):
            most = np.maximum(most, np.abs(gap[:, low:high].sum(axis=1)))
    return 2 * most


def weight_variance(source: Populations, induced: Populations) -> np.ndarray:
    return (induced.mass**2 / source.mass).sum(axis=(1, 2)) - 1.0


def induced_error(people: UniformResponse, chances, cells: int = 20_000) -> float:
    """Return the error of a threshold on the people it induces, by the midpoint rule."""
    x = (np.arange(cells) + 0.5) / cells
    wrong = np.where(x >= people.threshold, 1.0 - chances(x), chances(x))
    return float(np.mean(people.weights(x) * wrong))
