"""Rules that forget at several speeds, and the best of them against the champion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.production.retraining.evidence import Look
from countermove.production.retraining.following import DriftActs
from countermove.production.retraining.policy import FollowingPolicy
from countermove.production.retraining.set_back import (
    LEAST_WEIGHT,
    SetBackRows,
    fit,
    log_likelihood,
    places,
    sandwich,
)
from countermove.randomness import generator

SCALE_WEIGHT = 0.05
"""People who count less do not matter for the scale of a rule."""


@dataclass(frozen=True, eq=False)
class Looked:
    """A look with the challenger it is about."""

    look: Look
    theta: Floats
    discount: float
    losses: dict[str, float]
    covariance: Floats
    without: tuple[Floats, ...]
    folds: tuple[NDArray[np.intp], ...] = ()


class DiscountedFits:
    """Rules that forget at several speeds, with and without each fold of the fresh labels."""

    def __init__(
        self,
        policy: FollowingPolicy,
        tables: Sequence[SetBackRows],
        ages: Sequence[float],
        fresh: Sequence[Mask],
        counts: Sequence[Floats],
        champion: Floats,
        day: float,
        seed: int,
        acts: DriftActs,
    ) -> None:
        self.policy, self.tables, self.ages, self.fresh = policy, tables, ages, fresh
        self.champion, self.day = champion, day
        speeds = policy.discounts
        self.discounts = tuple(g for g in speeds if g < 1.0) or speeds if acts.forget else speeds
        draws = generator(seed, f"folds of day {day:.3f}")
        self.fold = [
            np.where(mask, draws.integers(0, policy.folds, len(mask)), -1) for mask in fresh
        ]
        self.counts = counts
        self.weight: list[Floats] = list(counts)
        if acts.reweight:
            self.weight = [n * own for n, own in zip(counts, _as_newest(tables), strict=True)]

    def look(self, losses: Mapping[str, float]) -> Looked:
        """Return the comparison on the fresh labels."""
        # All are followed, also those that may not be chosen now: a discount whose losses of the
        # past are not known would look the best.
        folds, speeds = range(self.policy.folds), self.policy.discounts
        whole = {g: self._fit(g, self.champion, None, 25) for g in speeds}
        parts = {(g, f): self._fit(g, whole[g], f, 3) for g in speeds for f in folds}
        loss = {(g, f): self._loss(parts[g, f], f) for g in speeds for f in folds}
        unknown = max(losses.values(), default=0.0)
        halved = {g: 0.5 * losses.get(f"{g:g}", unknown) for g in speeds}
        chosen = [
            min(
                self.discounts, key=lambda g: halved[g] + _mean(loss[g, q] for q in folds if q != f)
            )
            for f in folds
        ]
        running = {g: halved[g] + _mean(loss[g, q] for q in folds) for g in speeds}
        discount = min(self.discounts, key=lambda g: running[g])
        gains = [self._gains(parts[chosen[f], f], f, chosen[f]) for f in folds]
        every = np.concatenate([gain for gain, _ in gains])
        found = Look(
            self.day,
            len(every),
            float(every.sum()),
            float(every @ every),
            tuple(float(gain.sum()) for gain, _ in gains),
            float(sum(right.sum() for _, right in gains)),
        )
        said = {f"{g:g}": value for g, value in running.items()}
        theta = whole[discount]
        spread = sandwich(self.tables, self._weights(discount, None), theta)
        without = tuple(parts[chosen[f], f] for f in folds)
        return Looked(found, theta, discount, dict(losses) | said, spread, without)

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

    def _gains(self, theta: Floats, fold: int, discount: float) -> tuple[Floats, Floats]:
        """Return everybody's gain of a fold in log-likelihood and in being judged rightly."""
        champion = self._rescaled(fold, discount)
        gains, rights = [np.zeros(0)], [np.zeros(0)]
        for rows, count in self._held_out(fold):
            gains.append(count * (log_likelihood(rows, theta) - log_likelihood(rows, champion)))
            likely = places(rows, champion)
            rights.append(count * (_right(rows, theta, likely) - _right(rows, champion, likely)))
        return np.concatenate(gains), np.concatenate(rights)

    def _rescaled(self, fold: int, discount: float) -> Floats:
        """Return the champion at the scale that fits as the challenger is fitted, fold left out."""
        kept = [
            (rows.projected(self.champion), weight)
            for rows, weight in zip(self.tables, self._weights(discount, fold), strict=True)
            if weight.max(initial=0.0) >= SCALE_WEIGHT
        ]
        tables, weights = [rows for rows, _ in kept], [weight for _, weight in kept]
        scale = fit(tables, weights, np.ones(1), ridge=1e-2, iterations=25)
        return self.champion * max(float(scale[0]), 0.02)


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
