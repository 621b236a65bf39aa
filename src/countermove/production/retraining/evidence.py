"""Rules that forget at several speeds, and evidence that the best predicts labels better.

Every look that brings new labels compares challenger and champion on people the challenger was not
fitted to. Looking often finds something sooner or later, so the limit is computed for the number of
looks a year: a champion that is as good as its challengers is replaced in a year with at most the
stated probability. A promotion shows that the world moves: for some months after it less is asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.production.retraining.policy import DriftActs, FollowingPolicy
from countermove.production.retraining.set_back import (
    LEAST_WEIGHT,
    SetBackRows,
    fit,
    log_likelihood,
    places,
    sandwich,
)
from countermove.randomness import generator

MOST_LOOKS = 366
"""More looks a year than days do not make the limit higher."""
YEAR = 365.25
MONTH = YEAR / 12.0
HALF = 0.5
"""The shorter step from the champion to the challenger that may be promoted."""
SCALE_WEIGHT = 0.05
"""People who count less do not matter for the scale of a rule."""


@dataclass(frozen=True)
class Look:
    """What one look at new labels showed, summed over people.

    Attributes
    ----------
    day
        When the newest of these people were seen, in days.
    n
        People with a new label.
    gain, squares
        Of the log-likelihood of challenger over champion: its sum and that of its squares.
    folds
        The sum of the gain fold by fold, each by a challenger fitted without the fold.
    right
        How many more people the challenger is right for than the champion, once they respond.
    half
        The same of the rule halfway from the champion to the challenger; None: not looked at.
    """

    day: float
    n: int
    gain: float
    squares: float
    folds: tuple[float, ...]
    right: float
    half: Look | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it, JSON-ready."""
        half = None if self.half is None else self.half.to_json()
        return asdict(self) | {"folds": list(self.folds), "half": half}

    @classmethod
    def from_json(cls, said: dict[str, Any]) -> Look:
        """Return a look that `to_json` wrote down; earlier releases wrote no ``half``."""
        half = said.get("half")
        own = None if half is None else cls.from_json(half)
        return cls(**said | {"folds": tuple(said["folds"]), "half": own})


@dataclass(frozen=True)
class Evidence:
    """All looks since the last promotion together, against the limit of a promotion.

    ``value`` is z, or the natural logarithm of an e-value, and ``limit`` what it has to exceed,
    less than ``full_limit`` for ``months`` after a promotion; None: the full limit is asked.
    ``step`` is how far the rule that it is about goes from the champion to the challenger.
    """

    kind: Literal["likelihood", "e_value"]
    value: float
    limit: float
    looks: int
    looks_a_year: int
    people: int
    right: float
    full_limit: float
    months: float | None = None
    step: float = 1.0

    @property
    def sufficient(self) -> bool:
        """Whether a promotion may rest on it."""
        # Once the world is known to move, the few people whom only one rule is right for say less
        # about the coming month than everybody's likelihood does.
        return self.value > self.limit and (self.right > 0.0 or self.months is not None)

    @property
    def words(self) -> str:
        """One sentence for people."""
        name = "z" if self.kind == "likelihood" else "log e-value"
        about = "the challenger" if self.step == 1.0 else "the rule halfway to the challenger"
        found = (
            f"on {self.people:,} people of {self.looks} look{'' if self.looks == 1 else 's'} whom "
            f"it was not fitted to, {about} predicts labels with {name} = "
            f"{self.value:.2f} over the champion; {self.limit:.2f} is required {self._asked}"
        )
        net = (
            f"it is right for {abs(self.right):.1f} people {'more' if self.right > 0 else 'fewer'}"
        )
        if self.sufficient:
            return f"{found}; {net}"
        if self.value > self.limit:
            return f"{found}; {net}: labels are predicted better, decisions are not"
        short = "contrary" if self.value <= 0.0 or self.right <= 0.0 else "short"
        return f"{found}; {net}: the evidence is {short}"

    @property
    def _asked(self) -> str:
        """Say why this limit is asked."""
        pace = f"at {self.looks_a_year} looks a year"
        if self.months is None:
            return pace
        after = f"in the {self.months:g} months after a promotion"
        return f"{after} ({self.full_limit:.2f} at other times, {pace})"

    def to_json(self) -> dict[str, Any]:
        """Return it, JSON-ready."""
        return asdict(self) | {"sufficient": self.sufficient, "words": self.words}


@lru_cache(maxsize=64)
def limit_for(looks: int, pooled: int, probability: float) -> float:
    r"""Return the limit that z exceeds in a year of looks with at most this probability.

    .. math:: P\Big(\max_{k \le K} \frac{\sum_{j=k-m+1}^k g_j}{\sqrt m} > c\Big) = \alpha

    for independent gains :math:`g_j` of mean 0, the newest ``pooled`` looks taken together; by
    simulation with a fixed seed (2.55 for twelve looks, three pooled, and .05).
    """
    if looks == 1:
        return NormalDist().inv_cdf(1.0 - probability)
    paths = 200_000 if looks <= 24 else 30_000
    draws = generator(0, f"limit of {looks} looks").standard_normal((paths, looks))
    sums = np.cumsum(draws, axis=1)
    sums[:, pooled:] -= sums[:, :-pooled].copy() if looks > pooled else 0.0
    sizes = np.minimum(np.arange(1, looks + 1), pooled)
    highest = (sums / np.sqrt(sizes)).max(axis=1)
    return float(np.quantile(highest, 1.0 - probability))


def looks_a_year(days: Sequence[float], opened: float) -> int:
    """Return how many looks a year there are at the pace of the newest, or were in the last one."""
    # ``days`` of all looks, the newest last; ``opened``: when the first champion was deployed.
    newest = days[-1]
    gap = newest - (days[-2] if len(days) > 1 else opened)
    recent = sum(newest - day < YEAR - 0.5 * MONTH for day in days)
    pace = math.ceil(YEAR / gap - 0.2) if gap > 0.0 else MOST_LOOKS
    return int(min(max(recent, pace, 1), MOST_LOOKS))


def weigh(
    looks: Sequence[Look],
    every_day: Sequence[float],
    opened: float,
    policy: FollowingPolicy,
    promoted: float | None = None,
) -> Evidence:
    """Weigh the looks since the last promotion, the newest last.

    Where the full limit is asked and the challenger does not exceed it, the rule halfway to it may.

    Parameters
    ----------
    looks
        Since the last promotion.
    every_day
        Of all looks ever, the newest last: they say how often is looked.
    opened
        Day of the first deployment.
    policy
        ``evidence`` ``likelihood``: z of the looks of the last ``pooled_months``. ``e_value``: the
        average of the folds' likelihood ratios, multiplied over all looks.
    promoted
        Day of the look that the last promotion of a rule rests on; None: there was none.
    """
    whole = _weighed(looks, every_day, opened, policy, promoted)
    halves = [look.half for look in looks if look.half is not None]
    if whole.sufficient or whole.months is not None or len(halves) < len(looks):
        return whole
    # Against a change that is small beside the challenger's own error, half the way is shown to be
    # better a month or two sooner; what is shown is what is promoted.
    half = replace(_weighed(halves, every_day, opened, policy, promoted), step=HALF)
    return half if half.sufficient else whole


def _weighed(
    looks: Sequence[Look],
    every_day: Sequence[float],
    opened: float,
    policy: FollowingPolicy,
    promoted: float | None,
) -> Evidence:
    yearly, months = looks_a_year(every_day, opened), policy.pooled_months
    newest, pooled = looks[-1].day, list(looks)
    if policy.evidence == "e_value":
        value = sum(_log_mean_exp(look.folds) for look in looks)
    else:
        pooled = [look for look in looks if newest - look.day < (months - 0.5) * MONTH]
        squares = sum(look.squares for look in pooled)
        value = sum(look.gain for look in pooled) / math.sqrt(squares) if squares > 0.0 else 0.0
    people, right = sum(look.n for look in pooled), sum(look.right for look in pooled)
    full, after = _limits(policy, yearly)
    moving = promoted is not None and newest - promoted < (months + 0.5) * MONTH
    limit, said = (after, months) if moving and after < full else (full, None)
    found = (policy.evidence, value, limit, len(pooled), yearly, people, right, full, said)
    return Evidence(*found)


def _limits(policy: FollowingPolicy, yearly: int) -> tuple[float, float]:
    """Return what is asked at so many looks a year, and in the months after a promotion."""
    monthly = policy.monthly_false_promotions
    rates = (policy.yearly_false_promotions, monthly)
    if policy.evidence == "e_value":
        full, after = (math.inf if rate is None else math.log(1.0 / rate) for rate in rates)
        return full, after
    together = max(1, round(policy.pooled_months * yearly / 12.0))
    full = limit_for(yearly, together, policy.yearly_false_promotions)
    looks = max(1, round(yearly / 12.0))
    return full, math.inf if monthly is None else limit_for(looks, min(looks, together), monthly)


def _log_mean_exp(values: Sequence[float]) -> float:
    highest = max(values)
    return highest + math.log(sum(math.exp(value - highest) for value in values) / len(values))


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
        # All are followed, also those that may not be chosen now: a memory whose losses of the
        # past are not known would look the best.
        folds, followed = range(self.policy.folds), self._memories(self.policy.discounts)
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
        every = np.concatenate([gain for gain, _ in gains])
        return Look(
            self.day,
            len(every),
            float(every.sum()),
            float(every @ every),
            tuple(float(gain.sum()) for gain, _ in gains),
            float(sum(right.sum() for _, right in gains)),
        )

    def _memories(self, discounts: Sequence[float]) -> list[Remembered]:
        """Return the ways to weigh older people, the plain ones first."""
        plain = [Remembered(g) for g in discounts]
        moved = [Remembered(g, True) for g in discounts if g < max(self.policy.discounts)]
        return [*plain, *moved] if self.policy.trend else plain

    def _fits(
        self, without: int | None, start: Floats | Mapping[Remembered, Floats], iterations: int
    ) -> dict[Remembered, Floats]:
        """Return a rule for every way to weigh older people, a fold left out."""
        every = self.policy.discounts
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
