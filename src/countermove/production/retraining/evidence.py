"""Evidence that a challenger predicts labels better than the champion, and what is asked of it.

Every look that brings new labels compares challenger and champion on people the challenger was not
fitted to. Looking often finds something sooner or later, so the limit is computed for the number of
looks a year: a champion that is as good as its challengers is replaced in a year with at most the
stated probability. A promotion shows that the world moves: for some months after it less is asked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np

from countermove.production.retraining.policy import FollowingPolicy
from countermove.randomness import generator

POOLED_MONTHS = 3.0
"""Looks of how many months are taken together; so long less is asked after a promotion."""
MOST_LOOKS = 366
"""More looks a year than days do not make the limit higher."""
YEAR = 365.25
MONTH = YEAR / 12.0
HALF = 0.5
"""The shorter step from the champion to the challenger that may be promoted."""
MATERIAL = 0.01
"""A gain in accuracy that is worth somebody's attention."""
BOUND = NormalDist().inv_cdf(0.95)
"""Standard errors that an upper bound on the gain lies above it."""


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
    right
        How many more people the challenger is right for than the champion, once they respond.
    half
        The same of the rule halfway from the champion to the challenger; None: not looked at.
    right_squares
        The sum of the squares behind ``right``.
    """

    day: float
    n: int
    gain: float
    squares: float
    right: float
    right_squares: float
    half: Look | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it, JSON-ready."""
        half = None if self.half is None else self.half.to_json()
        return asdict(self) | {"half": half}

    @classmethod
    def from_json(cls, said: dict[str, Any]) -> Look:
        """Return a look that `to_json` wrote down."""
        half = said["half"]
        own = None if half is None else cls.from_json(half)
        return cls(**said | {"half": own})


@dataclass(frozen=True)
class Evidence:
    """All looks since the last promotion together, against the limit of a promotion.

    ``value`` is z and ``limit`` what it has to exceed,
    less than ``full_limit`` for ``months`` after a promotion; None: the full limit is asked.
    ``step`` is how far the rule that it is about goes from the champion to the challenger.
    ``largest_gain`` bounds the accuracy that the challenger gains over the champion once people
    respond, with 95 % confidence at each look; None: not known.
    """

    value: float
    limit: float
    looks: int
    looks_a_year: int
    people: int
    right: float
    full_limit: float
    months: float | None = None
    step: float = 1.0
    largest_gain: float | None = None

    @property
    def sufficient(self) -> bool:
        """Whether a promotion may rest on it."""
        # Once the world is known to move, the few people whom only one rule is right for say less
        # about the coming month than everybody's likelihood does.
        return self.value > self.limit and (self.right > 0.0 or self.months is not None)

    @property
    def immaterial(self) -> bool:
        """Whether the labels show that the challenger would gain next to nothing."""
        return self.largest_gain is not None and self.largest_gain <= MATERIAL

    @property
    def words(self) -> str:
        """One sentence for people."""
        about = "the challenger" if self.step == 1.0 else "the rule halfway to the challenger"
        found = (
            f"on {self.people:,} people of {self.looks} look{'' if self.looks == 1 else 's'} whom "
            f"it was not fitted to, {about} predicts labels with z = "
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
        said = f"{found}; {net}: the evidence is {short}"
        if self.largest_gain is None or not self.immaterial:
            return said
        most = f"{max(100.0 * self.largest_gain, 0.0):.1f} points of accuracy"
        return f"{said}, and with 95 % confidence at most {most} would be gained"

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
        said = {"sufficient": self.sufficient, "immaterial": self.immaterial, "words": self.words}
        return asdict(self) | said


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
        How often a champion as good as its challengers may be replaced.
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
    yearly, newest = looks_a_year(every_day, opened), looks[-1].day
    pooled = [look for look in looks if newest - look.day < (POOLED_MONTHS - 0.5) * MONTH]
    squares = sum(look.squares for look in pooled)
    value = sum(look.gain for look in pooled) / math.sqrt(squares) if squares > 0.0 else 0.0
    people, right = sum(look.n for look in pooled), sum(look.right for look in pooled)
    full, after = _limits(policy, yearly)
    moving = promoted is not None and newest - promoted < (POOLED_MONTHS + 0.5) * MONTH
    limit, said = (after, POOLED_MONTHS) if moving and after < full else (full, None)
    found = (value, limit, len(pooled), yearly, people, right, full, said)
    return Evidence(*found, largest_gain=_largest_gain(pooled))


def _largest_gain(looks: Sequence[Look]) -> float | None:
    """Return an upper bound on the gain in accuracy; None without people."""
    people = sum(look.n for look in looks)
    if people == 0:
        return None
    # As in a score interval, so that it holds where the rules agree about nearly everybody.
    spread = math.sqrt(sum(look.right_squares for look in looks) + BOUND**2)
    return (sum(look.right for look in looks) + BOUND * spread) / people


def _limits(policy: FollowingPolicy, yearly: int) -> tuple[float, float]:
    """Return what is asked at so many looks a year, and in the months after a promotion."""
    monthly = policy.monthly_false_promotions
    together = max(1, round(POOLED_MONTHS * yearly / 12.0))
    full = limit_for(yearly, together, policy.yearly_false_promotions)
    looks = max(1, round(yearly / 12.0))
    return full, math.inf if monthly is None else limit_for(looks, min(looks, together), monthly)
