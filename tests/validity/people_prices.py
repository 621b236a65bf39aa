"""Deployments of 5,000 people whose prices differ, with known answers.

Everybody has a price t = 2 exp(sigma z) and never moves with probability ``never``; refused at gap
g they go o beyond the boundary, or stay if t (g + o)^2 >= 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from countermove.learning.people_estimation import PeopleEstimate, estimate_people

from .people_deployments import PEOPLE, SLOPE, UNIT, gaps, rule

PRICE = 2.0


@dataclass(frozen=True)
class Cell:
    """Who the people are."""

    sigma: float = 0.5
    never: float = 0.2
    overshoot: str = "none"
    noise: float = 0.0
    drift: float = 0.0  # of the record per unit of gap: regression to the mean
    misfit: str = ""


def _up(gap: np.ndarray, step: float) -> np.ndarray:
    return np.ceil(gap / step) * step - gap


OVERSHOOTS = {
    "none": lambda gap, draws: 0.0 * gap,
    "0.01 %": lambda gap, draws: 1e-4 * gap,
    "5 %": lambda gap, draws: 0.05 * gap * draws,
    "margin": lambda gap, draws: 0.05 + 0.0 * gap,
    "up to 0.01": lambda gap, draws: _up(gap, 0.01),
    "up to 0.1": lambda gap, draws: _up(gap, 0.1),
    "0.1": lambda gap, draws: 0.1 * draws,
}
"""How far people go beyond the boundary; ``draws`` are exponential with mean one."""

CELLS = {
    **{
        f"sigma {sigma}, never {never}": Cell(sigma, never)
        for sigma in (0.15, 0.3, 1.0)
        for never in (0.0, 0.2, 0.5)
    },
    **{
        f"overshoot {name}": Cell(overshoot=name)
        for name in ("0.01 %", "5 %", "margin", "up to 0.01", "up to 0.1")
    },
    "noise 0.1": Cell(noise=0.1),
    "one price": Cell(sigma=0.0),
}
MISFITS = {
    # Half of the people pay 0.7, half 5.7, each with log-sd 0.3.
    "two prices": Cell(sigma=0.3, misfit="two prices"),
    # One half, by a label that is no feature, pays 2.25 times as much as the other.
    "price by group": Cell(misfit="price by group"),
    # 27 % of those at the boundary respond, 82 % of those one standard deviation away.
    "awareness by gap": Cell(never=0.0, misfit="awareness by gap"),
    # Three movers in ten stop after 30 to 95 % of the way.
    "stop short": Cell(misfit="stop short"),
}


def deployed(cell: Cell, seed: int, n: int = PEOPLE) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return people before and after, and a label."""
    rng = np.random.default_rng([20, seed])
    X = rng.normal(size=(n, len(SLOPE)))
    gap, label = gaps(X), rng.random(n) < 0.5
    price = PRICE * np.exp(cell.sigma * rng.standard_normal(n))
    aware = np.full(n, 1.0 - cell.never)
    if cell.misfit == "two prices":
        price *= np.where(rng.random(n) < 0.5, math.sqrt(8.0), 1.0 / math.sqrt(8.0))
    if cell.misfit == "price by group":
        price *= np.where(label, 1.5, 1.0 / 1.5)
    if cell.misfit == "awareness by gap":
        aware = 1.0 / (1.0 + np.exp(1.0 - 2.5 * gap))
    whole = gap + OVERSHOOTS[cell.overshoot](gap, rng.exponential(size=n))
    crosses = (gap > 0.0) & (rng.random(n) < aware) & (price * whole**2 < 2.0)
    advance = np.where(crosses, whole, 0.0)
    if cell.misfit == "stop short":
        stops = rng.random(n) < 0.3
        advance = np.where(crosses & stops, gap * rng.uniform(0.3, 0.95, n), advance)
    advance = advance + cell.drift * (gap - gap.mean())
    after = X + advance[:, None] * SLOPE / UNIT
    return X, after + cell.noise * rng.standard_normal(X.shape), label


def estimated(cell: Cell, seed: int, n: int = PEOPLE) -> PeopleEstimate:
    """Return the estimate from one deployment."""
    X, after, label = deployed(cell, seed, n)
    ids = np.arange(n)
    groups = label if cell.misfit else None
    return estimate_people(rule(), X, after, key=(ids, ids), groups=groups)
