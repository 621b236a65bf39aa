r"""Populations whose every quantity is known, to hold bounds against the truth (App. G).

Covariate shift: the paper's strategic people with any law P(Y | x), on cells fine enough
that nothing is approximated. Target shift: normal classes and replicator dynamics. In
both, :math:`h_S` and :math:`h_T` are the best of all thresholds considered.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from countermove._types import Floats
from countermove.errors import DataError, ParameterError
from countermove.transfer import formulas
from countermove.transfer.bandit import BanditRun
from countermove.transfer.minimise import GaussianClasses
from countermove.transfer.shifts import Replicator, UniformResponse

GRID = 200
"""Cells of the unit interval; budgets must be whole numbers of cells."""


@dataclass(frozen=True)
class Checked:
    """A bound, the quantity it bounds, and on which side; ``printed_false`` as the paper has it."""

    name: str
    bound: float
    truth: float
    upper: bool
    printed_false: bool = False

    @property
    def violated(self) -> bool:
        """Whether the truth lies beyond the bound by more than rounding."""
        beyond = self.truth - self.bound if self.upper else self.bound - self.truth
        return beyond > 1e-9


@lru_cache(maxsize=8)
def strategic_weights(budget: float) -> tuple[Floats, Floats]:
    r"""Return thresholds in :math:`[B, 1-B]`, shape (k,), and their weights, shape (k, cells)."""
    width = budget * GRID
    if not (0.0 < budget < 0.5 and abs(width - round(width)) < 1e-9):
        raise ParameterError(
            f"budget must lie in (0, 0.5) and be a multiple of {1 / GRID}, got {budget!r}"
        )
    steps = np.arange(round(width), GRID - round(width) + 1)
    middles = (np.arange(GRID) + 0.5) / GRID
    # Weights are linear within a cell, so their value in the middle is their mean.
    weights = np.stack([UniformResponse(k / GRID, budget).weights(middles) for k in steps])
    return steps / GRID, weights


def strategic_bounds(chances: Floats, budget: float) -> list[Checked]:
    """Return every bound for covariate shift beside the truth, for one law of the label."""
    if chances.shape != (GRID,) or np.any((chances < 0.0) | (chances > 1.0)):
        raise DataError(f"expected {GRID} chances in [0, 1], one per cell")
    thresholds, weights = strategic_weights(budget)
    middles = (np.arange(GRID) + 0.5) / GRID
    accepts = middles >= thresholds[:, None]
    wrong = np.where(accepts, 1.0 - chances, chances)
    source, induced = wrong.mean(axis=1), (weights * wrong).mean(axis=1)
    own, best = int(np.argmin(source)), int(np.argmin(induced))
    variance = 2.0 * budget / 3.0
    label = float(chances.mean()), float((weights[own] * chances).mean())
    accepted = float(accepts[own].mean()), float((weights[own] * accepts[own]).mean())
    across = float((weights[best] * wrong[own]).mean())
    between = _between(wrong, weights[own], weights[best])
    loss, after = float(induced[own] - induced[best]), float(induced[own])
    larger = float(max(source[own], after))
    from_source = _between(wrong, np.ones(GRID), weights[own])
    variation = 0.5 * float(np.abs(weights[own] - 1.0).mean())
    upper = {
        "3.1": (formulas.theorem_3_1(source[own], *from_source), after),
        "3.2": (formulas.theorem_3_2(after, across, *between), loss),
        "3.2 solved": (formulas.theorem_3_2_solved(induced[best], across, *between), after),
        "4.2": (formulas.theorem_4_2(source[best], variance, variance), loss),
        "4.2 tighter": (
            formulas.theorem_4_2_tighter(source[own], source[best], variance, variance),
            loss,
        ),
        "4.7": (formulas.proposition_4_7(source[best], budget), loss),
    }
    lower = {
        "3.3": formulas.theorem_3_3(*label, *accepted),
        "3.4": formulas.corollary_3_4(*label, variation),
    }
    return [
        *(Checked(name, float(bound), truth, upper=True) for name, (bound, truth) in upper.items()),
        Checked("4.7 as printed", variance * float(source[best]), loss, True, printed_false=True),
        *(Checked(name, float(bound), larger, upper=False) for name, bound in lower.items()),
    ]


def _between(wrong: Floats, one: Floats, other: Floats) -> tuple[float, float]:
    """Return the joint error and the divergence of thresholds between two densities."""
    joint = float(((one + other) * wrong).mean(axis=1).min())
    gap = np.append(0.0, np.cumsum(one - other) / GRID)
    return joint, float(2.0 * (gap.max() - gap.min()))


def target_bounds(
    favourable: float,
    replicator: Replicator,
    classes: GaussianClasses,
    thresholds: Floats,
) -> list[Checked]:
    """Return every bound for target shift beside the truth."""
    rates = classes.rates(thresholds)
    after = np.asarray(replicator.share(favourable, *rates))
    source = np.asarray(formulas.error_of_rates(favourable, *rates))
    induced = np.asarray(formulas.error_of_rates(after, *rates))
    own, best = int(np.argmin(source)), int(np.argmin(induced))
    loss = float(induced[own] - induced[best])
    shares = favourable, float(after[own]), float(after[best])
    of_own, of_best = ((float(rates[0][i]), float(rates[1][i])) for i in (own, best))
    changes = of_own[0] - of_best[0], of_own[1] - of_best[1]
    held = [
        Checked("5.1", float(formulas.theorem_5_1(*shares, *changes)), loss, upper=True),
        Checked(
            "5.1 sharper",
            float(formulas.theorem_5_1_sharper(*shares, of_own, of_best)),
            loss,
            upper=True,
        ),
        Checked(
            "5.2",
            float(formulas.theorem_5_2(favourable, shares[1], *of_own)),
            float(max(source[own], induced[own])),
            upper=False,
        ),
    ]
    if replicator == Replicator():
        held += proposition_5_3_both(favourable, (of_own, of_best))
    return held


def proposition_5_3_both(
    favourable: float, rates: tuple[tuple[float, float], tuple[float, float]]
) -> list[Checked]:
    """Return Prop. 5.3 right and as printed, for two rules with these (TPR, FPR)."""
    errors = [float(formulas.error_of_rates(favourable, *pair)) for pair in rates]
    after = [float(Replicator().share(favourable, *pair)) for pair in rates]
    apart = abs(after[0] - after[1])
    right = formulas.proposition_5_3(favourable, errors[0], errors[1], rates[0][0], rates[1][0])
    product = abs(errors[0] - errors[1]) * abs(rates[0][0] - rates[1][0])
    printed = favourable * product / ((1.0 - errors[0]) * (1.0 - errors[1]))
    return [
        Checked("5.3", float(right), apart, upper=True),
        Checked("5.3 as printed", printed, apart, upper=True, printed_false=True),
    ]


def random_law(rng: np.random.Generator) -> Floats:
    """Return a law of the label on the cells: a logistic curve, a step, or a broken line."""
    x = (np.arange(GRID) + 0.5) / GRID
    kind = rng.integers(3)
    if kind == 0:
        slope, middle = np.exp(rng.uniform(0.0, 4.0)), rng.uniform(0.0, 1.0)
        return np.asarray(1.0 / (1.0 + np.exp(-slope * (x - middle))))
    if kind == 1:
        low, high = np.sort(rng.random(2))
        return np.asarray(np.where(x >= rng.random(), high, low), np.float64)
    knots = np.linspace(0.0, 1.0, int(rng.integers(3, 8)))
    return np.asarray(np.interp(x, knots, rng.random(len(knots))))


@dataclass(frozen=True)
class MeanEstimation:
    """A population with a known answer: guess a mean that moves along with the guess."""

    # People are z ~ N(mu + strength * guess, I), the loss is half the squared distance to the
    # guess; the induced risk is convex with its minimiser at mu / (1 - strength).

    optimum: tuple[float, ...] = (2.0, -1.0)
    response_strength: float = 0.5
    rows: int = 50  # people met per deployment

    def __post_init__(self) -> None:
        if not 0.0 <= self.response_strength < 1.0 or self.rows < 1:
            raise ParameterError(
                "expected a response_strength in [0, 1) and at least one row, got "
                f"{self.response_strength} and {self.rows}"
            )

    def watch(self, rule: Floats, rng: np.random.Generator) -> float:
        """Return the average loss of the people a rule meets."""
        # The sum of squared distances is noncentral chi-squared, so nobody needs to be drawn.
        away = (1.0 - self.response_strength) * (np.asarray(self.optimum) - rule)
        noncentrality = self.rows * float(away @ away)
        total = rng.noncentral_chisquare(self.rows * len(rule), noncentrality)
        return float(total) / (2.0 * self.rows)

    def distance(self, run: BanditRun) -> float:
        """Return how far a run ended from the optimum."""
        return float(np.linalg.norm(run.rule - np.asarray(self.optimum)))
