"""People some of whom stand under a ceiling: there, the direction of a rule matters."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countermove.randomness import generator

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CeilingPopulation:
    r"""Rank is 0 or ``-drop``, each for half of the people of either class; with merit
    :math:`e \mid y \sim U(y\,s - u,\; y\,s + u)` (``separation`` :math:`s`, ``spread`` :math:`u`)

    .. math:: x = (\text{rank} + e,\; \text{rank}), \qquad x_1 \le s + u .

    Only :math:`e = x_1 - x_2` distinguishes the classes, so no rule beats
    :math:`x_1 - x_2 \ge 0`, right with probability :math:`(u + s) / 2u`. But people of rank 0
    stand right under the ceiling of :math:`x_1` and reach less far along that rule than the
    others: no intercept suits both. Weighing :math:`x_2` less makes up for it.
    """

    separation: float = 0.08
    spread: float = 0.1
    drop: float = 2.0

    @property
    def ceiling(self) -> Floats:
        """Upper bounds on both features, shape (2,)."""
        return np.array([self.separation + self.spread, math.inf])

    @property
    def best_accuracy(self) -> float:
        """Accuracy of the best rule, which a linear rule also has after response."""
        return (self.spread + self.separation) / (2 * self.spread)

    def sample(self, n: int, seed: int) -> tuple[Floats, Floats]:
        """Return ``n`` people: features (n, 2) and labels (n,) in {-1, +1}."""
        rng = generator(seed, "ceiling population")
        y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
        rank = np.where(rng.random(n) < 0.5, 0.0, -self.drop)
        merit = y * self.separation + rng.uniform(-self.spread, self.spread, n)
        return np.column_stack([rank + merit, rank]), y
