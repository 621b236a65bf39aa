"""Worlds that drift while people respond to the rule of the month: what retraining has to follow.

Five features, two of which nobody can change, moves at a squared cost of scale 1 to 4, labels by a
logistic law that stands still or turns. Each month's people are seen after they responded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from countermove.people import ActionSet, QuadraticCost
from countermove.production.retraining.reach import ReachModel
from countermove.response import BestResponse

Floats, Mask = NDArray[np.float64], NDArray[np.bool_]
FEATURES, MOVABLE = 5, 3
BASE, MONTHLY, MONTHS = 3_000, 1_500, 12
STEEP = 4.0
"""Log-odds per unit of the law's direction."""
JUDGES = 6_000
CHANGE = 7
"""Month of the abrupt change and of the change of price."""
LOG_PRICE = 0.3
"""Log-sd of prices in rough worlds."""
OVERSHOOT, DIGITS = 0.02, 2


@dataclass(frozen=True)
class Arrivals:
    """The people of a month: as they are recorded, their labels, and who was approved."""

    X: Floats
    y: Floats
    approved: Mask


class DriftingWorld:
    """One world; ``rough`` people overshoot, differ in price, and are recorded in two digits."""

    def __init__(self, kind: str, seed: int, rough: bool = False) -> None:
        draws = np.random.default_rng([20_261_117, seed])
        self.kind, self.seed, self.rough = kind, seed, rough
        self.judges: dict[int, tuple[Floats, Floats]] = {}
        mixed = draws.standard_normal((FEATURES, FEATURES))
        spread = 0.75 * np.eye(FEATURES) + 0.25 * mixed @ mixed.T / FEATURES
        sd = np.sqrt(np.diag(spread))
        self.factor = np.linalg.cholesky(spread / np.outer(sd, sd))
        first = draws.standard_normal(FEATURES) * np.array([1.0, 1.0, 1.0, 0.7, 0.7])
        self.first = first / np.linalg.norm(first)
        other = draws.standard_normal(FEATURES)
        other -= other @ self.first * self.first
        self.other = other / np.linalg.norm(other)
        self.intercept = draws.uniform(-0.3, 0.3)
        self.scale = draws.uniform(1.0, 4.0)
        self.drifted = draws.choice([-1.0, 1.0], FEATURES - MOVABLE)

    @property
    def movers(self) -> BestResponse:
        """The people the first champion is made for."""
        actions = ActionSet(immutable=tuple(range(MOVABLE, FEATURES)))
        return BestResponse(QuadraticCost(self.scale), actions)

    @property
    def people(self) -> ReachModel:
        """The same as the policy knows them at first."""
        return ReachModel(log_sd=0.5 * LOG_PRICE if self.rough else 0.0)

    def reach(self, month: int) -> float:
        """Return the median reach of a month."""
        halved = self.kind == "price" and month >= CHANGE
        return math.sqrt(2.0 / self.scale) * (math.sqrt(2.0) if halved else 1.0)

    def law(self, month: int) -> tuple[Floats, float]:
        """Return direction and intercept of a month's labels."""
        angle = shift = 0.0
        if self.kind == "rotation":
            angle = 75.0 * month / 12.0
        elif self.kind == "abrupt":
            angle = 50.0 if month >= CHANGE else 0.0
        elif self.kind == "season":
            angle = 30.0 * math.sin(2.0 * math.pi * month / 12.0)
            shift = 0.3 * math.sin(2.0 * math.pi * month / 12.0)
        turned = math.radians(angle)
        direction = math.cos(turned) * self.first + math.sin(turned) * self.other
        return direction, self.intercept + shift

    def people_of(self, month: int, n: int, stage: int) -> tuple[Floats, Floats]:
        """Return people of a month before they respond, and the chance of their labels."""
        draws = np.random.default_rng([7, self.seed, month, stage])
        X = draws.standard_normal((n, FEATURES)) @ self.factor.T
        if self.kind == "immutables":
            X[:, MOVABLE:] += self.drifted * month / 12.0
        direction, intercept = self.law(month)
        return X, expit(STEEP * (X @ direction + intercept))

    def base(self) -> tuple[Floats, Floats]:
        """Return the base table and its labels ±1."""
        X, chance = self.people_of(0, BASE, 0)
        draws = np.random.default_rng([8, self.seed])
        return self.recorded(X), np.where(draws.random(BASE) < chance, 1.0, -1.0)

    def arrivals(self, month: int, weight: Floats, bias: float) -> Arrivals:
        """Return a month's people after they responded to a rule."""
        X, chance = self.people_of(month, MONTHLY, 1)
        draws = np.random.default_rng([9, self.seed, month])
        y = np.where(draws.random(MONTHLY) < chance, 1.0, -1.0)
        movable = np.where(np.arange(FEATURES) < MOVABLE, weight, 0.0)
        norm = float(np.linalg.norm(movable)) + 1e-12
        gap = -(X @ weight + bias) / norm
        reach = np.full(MONTHLY, self.reach(month))
        if self.rough:
            reach *= np.exp(0.5 * LOG_PRICE * draws.standard_normal(MONTHLY))
        moved = (gap > 0.0) & (gap <= reach)
        step = np.where(moved, gap * (1.0 + OVERSHOOT if self.rough else 1.0), 0.0)
        there = X + step[:, None] * movable / norm
        return Arrivals(self.recorded(there), y, gap <= reach)

    def recorded(self, X: Floats) -> Floats:
        """Return features as they are written down."""
        if not self.rough:
            return X
        digits = DIGITS - 1 - np.floor(np.log10(np.maximum(np.abs(X), 1e-9)))
        return np.round(X * 10.0**digits) / 10.0**digits

    def accuracy(self, month: int, weight: Floats, bias: float) -> float:
        """Return the expected accuracy of a rule on people of a month who respond to it."""
        if month not in self.judges:
            self.judges[month] = self.people_of(month, JUDGES, 2)
        X, chance = self.judges[month]
        gap = -(X @ weight + bias) / (float(np.linalg.norm(weight[:MOVABLE])) + 1e-12)
        approved = self._approved(gap, self.reach(month))
        return float(np.mean(chance * approved + (1.0 - chance) * (1.0 - approved)))

    def _approved(self, gap: Floats, reach: float) -> Floats:
        if not self.rough:
            return (gap <= reach).astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = ndtr((math.log(reach) - np.log(gap)) / (0.5 * LOG_PRICE))
        return np.where(gap <= 0.0, 1.0, share)

    def oracle(self, month: int) -> float:
        """Return the accuracy of the law's own direction at its best threshold."""
        direction, intercept = self.law(month)
        reach = float(np.linalg.norm(direction[:MOVABLE])) * self.reach(month)
        if not self.rough:
            return self.accuracy(month, direction, intercept - reach)
        cuts = reach * np.linspace(0.5, 1.4, 31)
        return max(self.accuracy(month, direction, intercept - cut) for cut in cuts)
