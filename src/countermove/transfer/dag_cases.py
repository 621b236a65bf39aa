"""The four cases of the paper's Figure 4, as the paper writes them and as they were released.

Two covariate shifts (a structural model whose first variable answers the decision) and two
target shifts (labels that change with the decision, features drawn given the label).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from countermove._types import Floats
from countermove.errors import ParameterError, nearest
from countermove.transfer.shifts import Transition
from countermove.transfer.structural import People, Shift, StructuralModel

Reading = Literal["paper", "released"]
Drawn = tuple[Floats, Floats]
"""Features, shape (n, 3), and labels in {-1, +1}, shape (n,)."""

STAY_OR_CHANGE = Transition(((0.15, 0.0), (0.8, 1.0)))
"""Of the released target shifts: the accepted keep their label, the refused may change it."""


@dataclass(frozen=True)
class CovariateCase:
    """A structural model with label +1 where the second variable is above 0.

    Parameters
    ----------
    model
        Makes the features.
    shift
        What a decision does.
    n
        Rows of the published experiment.
    """

    model: StructuralModel
    shift: Shift
    n: int

    def source(self, n: int, rng: np.random.Generator) -> Drawn:
        """Return n people before."""
        people, _ = self.model.draw(n, rng)
        return _seen(people)

    def induced(self, X: Floats, y: Floats, decision: Floats, rng: np.random.Generator) -> Drawn:
        """Return the same people after a decision in {-1, +1}; noise is drawn afresh."""
        people = dict(zip(self.model.equations, X.T, strict=True))
        noise = {name: e.draw(len(X), rng) for name, e in self.model.equations.items()}
        return _seen(self.model.answered(people, decision, self.shift, noise))


@dataclass(frozen=True)
class TargetCase:
    r"""Features given the label, and a label that answers the decision.

    :math:`X_1 \mid y \sim N_{[0,1]}(\mu_y, \sigma^2)`, :math:`X_2 = -0.8 X_1 + N(0, .15^2)`,
    :math:`X_3 = 0.2\,Y + N(0, .2^2)`.

    Parameters
    ----------
    means
        :math:`\mu_{-1}, \mu_{+1}`.
    spread
        :math:`\sigma`.
    n
        Rows of the published experiment.
    label_zero
        What :math:`Y` counts as in :math:`X_3` where the label is −1: −1 (paper) or 0
        (released).
    favourable
        Share of label +1 before.
    transition
        Chances to have label +1 after.
    matched
        False: as released, the first p(h)·n rows get :math:`X_1` of label −1 and the rest that
        of label +1 (the counts swapped), whatever their new label is; P(X | Y) then changes.
    """

    means: tuple[float, float]
    spread: float
    n: int
    label_zero: float = -1.0
    favourable: float = 0.5
    transition: Transition = STAY_OR_CHANGE
    matched: bool = True

    def source(self, n: int, rng: np.random.Generator) -> Drawn:
        """Return n people before, those of label −1 first."""
        y = np.sort(np.where(rng.random(n) < self.favourable, 1.0, -1.0))
        return self.features(y, rng), y

    def induced(self, X: Floats, y: Floats, decision: Floats, rng: np.random.Generator) -> Drawn:
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


Case = CovariateCase | TargetCase

COVARIATE = {"CS1": (0.15, 0.25, 500), "CS2": (0.25, 0.45, 800)}
"""Spread of X2, strength of the shift, rows."""

TARGET = {"TS1": ((0.0, 1.0), 0.25, 1000), "TS2": ((0.2, 0.8), 0.15, 500)}
"""Means of X1 by label, its spread, rows."""


def dag_case(name: str, reading: Reading = "paper") -> Case:
    """Return ``CS1``, ``CS2``, ``TS1`` or ``TS2``.

    The readings differ in :math:`X_3` (:math:`-X_1^2` in the paper, :math:`-0.8 X_1^2` as
    released; labels ±1 or 0 and 1) and in the answer of :math:`X_1` (see `Shift`).
    """
    if reading not in ("paper", "released"):
        raise ParameterError(f"reading is 'paper' or 'released', got {reading!r}")
    if name in TARGET:
        means, spread, n = TARGET[name]
        return TargetCase(means, spread, n, -1.0 if reading == "paper" else 0.0)
    if name not in COVARIATE:
        raise ParameterError(f"no case {name!r}; {nearest(name, [*COVARIATE, *TARGET])}")
    spread, strength, n = COVARIATE[name]
    model = StructuralModel.from_mapping(
        {
            "x1": {"uniform": [-1.0, 1.0]},
            "x2": {"causes": {"x1": 1.2}, "normal": spread},
            "x3": {"causes": {"x1^2": -1.0 if reading == "paper" else -0.8}, "normal": 0.1},
        }
    )
    return CovariateCase(model, Shift("x1", strength, reading), n)


def truncated_normal(mean: Floats, spread: float, rng: np.random.Generator) -> Floats:
    """Return one draw per mean from the normal restricted to [0, 1], by its quantiles."""
    from scipy.special import ndtr, ndtri

    low, high = ndtr((0.0 - mean) / spread), ndtr((1.0 - mean) / spread)
    inner = ndtri(low + rng.random(len(mean)) * (high - low))
    return np.asarray(np.clip(mean + spread * inner, 0.0, 1.0), np.float64)


def _seen(people: People) -> Drawn:
    X = np.column_stack(list(people.values()))
    return X, np.where(people["x2"] > 0.0, 1.0, -1.0)
