"""The four cases of the paper's Figure 4, as the paper writes them and as they were released.

Two covariate shifts (a small structural model whose first variable moves with the decision, after
which everything that follows from it is made again) and two target shifts (labels that change
with the decision, features drawn given the label).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from countermove._types import Floats
from countermove.errors import ParameterError, nearest
from countermove.transfer.shifts import Transition

Reading = Literal["paper", "released"]
DrawnRows = tuple[Floats, Floats]
"""Features, shape (n, 3), and labels in {-1, +1}, shape (n,)."""

STAY_OR_CHANGE = Transition(((0.15, 0.0), (0.8, 1.0)))
"""Of the released target shifts: the accepted keep their label, the refused may change it."""


@dataclass(frozen=True)
class CovariateCase:
    r"""A structural model with label +1 where the second variable is above 0.

    :math:`X_1 \sim U[-1, 1]`, :math:`X_2 = 1.2 X_1 + N(0, \sigma^2)`,
    :math:`X_3 = a X_1^2 + N(0, .1^2)`; a decision :math:`h` moves :math:`X_1` by c (h - 1), so
    that only the refused move, down by 2c (paper), or by c h, so that both move (released).
    """

    spread: float
    strength: float
    n: int  # rows of the published experiment
    reading: Reading = "paper"

    def source(self, n: int, rng: np.random.Generator) -> DrawnRows:
        """Return n people before."""
        return self._made(rng.uniform(-1.0, 1.0, n), rng)

    def induced(
        self, X: Floats, y: Floats, decision: Floats, rng: np.random.Generator
    ) -> DrawnRows:
        """Return the same people after a decision in {-1, +1}; noise is drawn again."""
        rng.uniform(-1.0, 1.0, len(X))  # as published: a first variable nobody looks at
        step = decision - 1.0 if self.reading == "paper" else decision
        return self._made(X[:, 0] + self.strength * step, rng)

    def _made(self, first: Floats, rng: np.random.Generator) -> DrawnRows:
        bend = -1.0 if self.reading == "paper" else -0.8
        second = 1.2 * first + rng.normal(0.0, self.spread, len(first))
        third = bend * first**2 + rng.normal(0.0, 0.1, len(first))
        return np.column_stack([first, second, third]), np.where(second > 0.0, 1.0, -1.0)


@dataclass(frozen=True)
class TargetCase:
    r"""Features given the label, and a label that changes with the decision.

    :math:`X_1 \mid y \sim N_{[0,1]}(\mu_y, \sigma^2)`, :math:`X_2 = -0.8 X_1 + N(0, .15^2)`,
    :math:`X_3 = 0.2\,Y + N(0, .2^2)`.
    """

    means: tuple[float, float]  # of labels -1 and +1
    spread: float
    n: int  # rows of the published experiment
    label_zero: float = -1.0  # what Y counts as where it is -1; released: 0
    favourable: float = 0.5
    transition: Transition = STAY_OR_CHANGE
    # False: as released, the first p(h) n rows get the first variable of label -1 and the rest
    # that of label +1 (the counts swapped), whatever their new label is; P(X | Y) then changes.
    matched: bool = True

    def source(self, n: int, rng: np.random.Generator) -> DrawnRows:
        """Return n people before, those of label −1 first."""
        y = np.sort(np.where(rng.random(n) < self.favourable, 1.0, -1.0))
        return self.features(y, rng), y

    def induced(
        self, X: Floats, y: Floats, decision: Floats, rng: np.random.Generator
    ) -> DrawnRows:
        """Return people after: new labels, and features drawn to match them."""
        table = np.asarray(self.transition.chances)
        chances = table[(y > 0).astype(int), (decision > 0).astype(int)]
        after = np.where(rng.random(len(y)) < chances, 1.0, -1.0)
        return self.features(after, rng), after

    def features(self, y: Floats, rng: np.random.Generator) -> Floats:
        """Return features for labels, shape (n, 3)."""
        looks = y > 0
        if not self.matched:
            looks = np.arange(len(y)) >= int(np.sum(y > 0))
        x1 = truncated_normal(np.where(looks, self.means[1], self.means[0]), self.spread, rng)
        counted = np.where(y > 0, 1.0, self.label_zero)
        x2 = -0.8 * x1 + rng.normal(0.0, 0.15, len(y))
        return np.column_stack([x1, x2, 0.2 * counted + rng.normal(0.0, 0.2, len(y))])


DagCase = CovariateCase | TargetCase

COVARIATE = {"CS1": (0.15, 0.25, 500), "CS2": (0.25, 0.45, 800)}
"""Spread of X2, strength of the shift, rows."""

TARGET = {"TS1": ((0.0, 1.0), 0.25, 1000), "TS2": ((0.2, 0.8), 0.15, 500)}
"""Means of X1 by label, its spread, rows."""


def dag_case(name: str, reading: Reading = "paper") -> DagCase:
    """Return ``CS1``, ``CS2``, ``TS1`` or ``TS2`` in a reading."""
    if reading not in ("paper", "released"):
        raise ParameterError(f"reading is 'paper' or 'released', got {reading!r}")
    if name in TARGET:
        return TargetCase(*TARGET[name], -1.0 if reading == "paper" else 0.0)
    if name not in COVARIATE:
        raise ParameterError(f"no case {name!r}; {nearest(name, [*COVARIATE, *TARGET])}")
    return CovariateCase(*COVARIATE[name], reading)


def truncated_normal(mean: Floats, spread: float, rng: np.random.Generator) -> Floats:
    """Return one draw per mean from the normal restricted to [0, 1], by its quantiles."""
    from scipy.special import ndtr, ndtri

    low, high = ndtr((0.0 - mean) / spread), ndtr((1.0 - mean) / spread)
    inner = ndtri(low + rng.random(len(mean)) * (high - low))
    return np.asarray(np.clip(mean + spread * inner, 0.0, 1.0), np.float64)
