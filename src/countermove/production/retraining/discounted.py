"""Rules that forget at several speeds, fitted with and without each fold of the newest labels.

The one that predicts the newest labels best is the challenger. A rule that remembers lags behind a
world that moves; it may be moved on to the newest month.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.production.retraining.evidence import HALF, Look
from countermove.production.retraining.policy import DriftActs
from countermove.production.retraining.set_back import (
    LEAST_WEIGHT,
    SetBackRows,
    fit,
    log_likelihood,
    places,
    sandwich,
)
from countermove.randomness import generator

DISCOUNTS = (0.1, 0.4, 0.7, 1.0)
"""Weights of people a month older, among which the newest labels choose."""
FOLDS = 6
"""Of the newest labels; each is predicted by rules fitted without it."""
SCALE_WEIGHT = 0.05
"""People who count less do not matter for the scale of a rule."""


@dataclass(frozen=True)
class Remembered:
    """How older people count: a discount a month, and whether the rule is moved on to the newest.

    A rule that remembers is as old as its people are on average. Moved on, it has gone as much
    farther on its course from the rule of the longest memory as brings it to the newest labels.
    """

    discount: float
    trend: bool = False

    @property
    def name(self) -> str:
        """Key of its losses."""
        return f"{self.discount:g}{' moved on' if self.trend else ''}"


@dataclass(frozen=True, eq=False)
class Looked:
    """A look with the challenger it is about.

    ``without`` are the challengers fitted without each fold; ``half`` is both for the rule halfway.
    """

    look: Look
    theta: Floats
    memory: Remembered
    losses: dict[str, float]
    covariance: Floats
    without: tuple[Floats, ...]
    half: tuple[Floats, tuple[Floats, ...]]
    folds: tuple[NDArray[np.intp], ...] = ()

    def at(self, step: float) -> Looked:
        """Return it about the rule that goes so far to the challenger."""
        return self if step == 1.0 else replace(self, theta=self.half[0], without=self.half[1])


class DiscountedFits:
    """Rules that forget at several speeds, with and without each fold of the fresh labels."""

    def __init__(
        self,
        tables: Sequence[SetBackRows],
        ages: Sequence[float],
        fresh: Sequence[Mask],
        counts: Sequence[Floats],
        champion: Floats,
        day: float,
        seed: int,
        acts: DriftActs,
    ) -> None:
        self.tables, self.ages, self.fresh = tables, ages, fresh
        self.champion, self.day = champion, day
        self.discounts = DISCOUNTS[:-1] if acts.forget else DISCOUNTS
        draws = generator(seed, f"folds of day {day:.3f}")
        self.fold = [np.where(mask, draws.integers(0, FOLDS, len(mask)), -1) for mask in fresh]
        self.counts = counts
        self.weight: list[Floats] = list(counts)
        if acts.reweight:
            self.weight = [n * own for n, own in zip(counts, _as_newest(tables), strict=True)]

    def look(self, losses: Mapping[str, float]) -> Looked:
        """Return the comparison on the fresh labels."""
        # All are followed, also those that may not be chosen now: a memory whose losses of the
        # past are not known would look the best.
        folds, followed = range(FOLDS), self._memories(DISCOUNTS)
        whole = self._fits(None, self.champion, 25)
        parts = {f: self._fits(f, whole, 3) for f in folds}
        loss = {(m, f): self._loss(parts[f][m], f) for m in followed for f in folds}
        unknown = max(losses.values(), default=0.0)
        halved = {m: 0.5 * losses.get(m.name, unknown) for m in followed}
        allowed = self._memories(self.discounts)
        chosen = [
            min(allowed, key=lambda m: halved[m] + _mean(loss[m, q] for q in folds if q != f))
            for f in folds
        ]
        running = {m: halved[m] + _mean(loss[m, q] for q in folds) for m in followed}
        best = min(allowed, key=lambda m: running[m])
        champions = [self._rescaled(f, chosen[f].discount) for f in folds]
        without = [parts[f][chosen[f]] for f in folds]
        halfway = [_halfway(*pair) for pair in zip(champions, without, strict=True)]
        found = self._compared(without, champions)
        found = replace(found, half=self._compared(halfway, champions))
        kept = dict(losses) | {m.name: value for m, value in running.items()}
        theta = whole[best]
        spread = sandwich(self.tables, self._weights(best.discount, None), theta)
        half = (_halfway(self._rescaled(None, best.discount), theta), tuple(halfway))
        return Looked(found, theta, best, kept, spread, tuple(without), half)

    def _compared(self, rules: Sequence[Floats], champions: Sequence[Floats]) -> Look:
        """Compare the rule and the champion of every fold on the people of it."""
        both = zip(rules, champions, strict=True)
        gains = [self._gains(rule, champion, f) for f, (rule, champion) in enumerate(both)]
        every, rights = (np.concatenate(part) for part in zip(*gains, strict=True))
        return Look(
            self.day,
            len(every),
            float(every.sum()),
            float(every @ every),
            float(sum(right.sum() for _, right in gains)),
            float(rights @ rights),
        )

    def _memories(self, discounts: Sequence[float]) -> list[Remembered]:
        """Return the ways to weigh older people, the plain ones first."""
        plain = [Remembered(g) for g in discounts]
        moved = [Remembered(g, True) for g in discounts if g < max(DISCOUNTS)]
        return [*plain, *moved]

    def _fits(
        self, without: int | None, start: Floats | Mapping[Remembered, Floats], iterations: int
    ) -> dict[Remembered, Floats]:
        """Return a rule for every way to weigh older people, a fold left out."""
        every = DISCOUNTS
        found = {
            (plain := Remembered(g)): self._fit(
                g, start[plain] if isinstance(start, Mapping) else start, without, iterations
            )
            for g in every
        }
        longest = Remembered(max(every))
        ages = {g: self._mean_age(g, without) for g in every}
        for moved in self._memories(every)[len(every) :]:
            now, before = found[Remembered(moved.discount)], found[longest]
            lag = ages[longest.discount] - ages[moved.discount]
            course = (now - before) / lag if lag > 0.0 else np.zeros_like(now)
            found[moved] = now + ages[moved.discount] * course
        return found

    def _mean_age(self, discount: float, without: int | None) -> float:
        """Return how many months old people are on average, as they count."""
        counts = [weight.sum() for weight in self._weights(discount, without)]
        return float(np.average(self.ages, weights=counts))

    def _weights(self, discount: float, without: int | None) -> list[Floats]:
        return [
            discount**age * weight * ((fold != without) if without is not None else 1.0)
            for age, weight, fold in zip(self.ages, self.weight, self.fold, strict=True)
        ]

    def _fit(self, discount: float, start: Floats, without: int | None, iterations: int) -> Floats:
        """Fit all people, the older the less they count, a fold left out."""
        kept = [
            (rows, weight)
            for rows, weight in zip(self.tables, self._weights(discount, without), strict=True)
            if weight.max(initial=0.0) >= LEAST_WEIGHT
        ]
        within = "the rule of the newest labels" if without is None else None
        tables, weights = [rows for rows, _ in kept], [weight for _, weight in kept]
        return fit(tables, weights, start, iterations=iterations, within=within)

    def _held_out(self, fold: int) -> list[tuple[SetBackRows, Floats]]:
        """Return the people of a fold, and how much each counts."""
        return [
            (rows.take(which == fold), count[which == fold])
            for rows, which, count in zip(self.tables, self.fold, self.counts, strict=True)
            if (which == fold).any()
        ]

    def _loss(self, theta: Floats, fold: int) -> float:
        """Return the mean log-loss of a rule on a fold."""
        every = [(log_likelihood(rows, theta), count) for rows, count in self._held_out(fold)]
        if not every:
            return 0.0
        found, counts = (np.concatenate(part) for part in zip(*every, strict=True))
        return -float(np.average(found, weights=counts))

    def _gains(self, theta: Floats, champion: Floats, fold: int) -> tuple[Floats, Floats]:
        """Return everybody's gain of a fold in log-likelihood and in being judged rightly."""
        gains, rights = [np.zeros(0)], [np.zeros(0)]
        for rows, count in self._held_out(fold):
            gains.append(count * (log_likelihood(rows, theta) - log_likelihood(rows, champion)))
            likely = places(rows, champion)
            rights.append(count * (_right(rows, theta, likely) - _right(rows, champion, likely)))
        return np.concatenate(gains), np.concatenate(rights)

    def _rescaled(self, fold: int | None, discount: float) -> Floats:
        """Return the champion at the scale that fits as the challenger is fitted, fold left out."""
        kept = [
            (rows.projected(self.champion), weight)
            for rows, weight in zip(self.tables, self._weights(discount, fold), strict=True)
            if weight.max(initial=0.0) >= SCALE_WEIGHT
        ]
        tables, weights = [rows for rows, _ in kept], [weight for _, weight in kept]
        scale = fit(tables, weights, np.ones(1), ridge=1e-2, iterations=25)
        return self.champion * max(float(scale[0]), 0.02)


def _halfway(champion: Floats, challenger: Floats) -> Floats:
    found: Floats = champion + HALF * (challenger - champion)
    return found


def _right(rows: SetBackRows, theta: Floats, likely: Floats) -> Floats:
    """Return the chance that a rule about people before they moved judges each rightly."""
    score = rows.X @ theta
    approved = (score >= 0.0).astype(np.float64)
    if len(rows.prior):
        there = score[rows.moved][:, None] - rows.steps * float(rows.way @ theta)
        approved[rows.moved] = (likely * (there >= 0.0)).sum(axis=1)
    return np.where(rows.y > 0.5, approved, 1.0 - approved)


def _mean(numbers: Iterable[float]) -> float:
    return float(np.mean(list(numbers)))


def _as_newest(tables: Sequence[SetBackRows]) -> list[Floats]:
    """Return weights under which everybody's unchangeable features are as the newest people's."""
    still = np.flatnonzero(np.all([np.abs(rows.way) < 1e-12 for rows in tables], axis=0))
    newest = tables[-1].X[:, still]
    found = []
    for rows in tables[:-1]:
        both = replace(
            rows,
            X=np.vstack([rows.X[:, still], newest]),
            y=np.append(np.zeros(rows.n), np.ones(len(newest))),
            moved=np.zeros(rows.n + len(newest), dtype=np.bool_),
            way=np.zeros(len(still)),
            prior=rows.prior[:0],
        )
        ratio = np.exp(
            np.clip(both.X[: rows.n] @ fit([both], [1.0], np.zeros(len(still))), -2.0, 2.0)
        )
        found.append(ratio / ratio.mean())
    return [*found, np.ones(tables[-1].n)]
