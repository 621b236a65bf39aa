"""Evidence that a challenger predicts labels better, and how much of it a promotion needs.

Every look that brings new labels compares challenger and champion on people the challenger was not
fitted to. Looking often finds something sooner or later, so the limit is computed for the number of
looks a year: a champion that is as good as its challengers is replaced in a year with at most the
stated probability.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from countermove.randomness import generator

MOST_LOOKS = 366
"""More looks a year than days do not make the limit higher."""
YEAR = 365.25
MONTH = YEAR / 12.0


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
    """

    day: float
    n: int
    gain: float
    squares: float
    folds: tuple[float, ...]
    right: float

    def to_json(self) -> dict[str, Any]:
        """Return it, JSON-ready."""
        return asdict(self) | {"folds": list(self.folds)}

    @classmethod
    def from_json(cls, said: dict[str, Any]) -> Look:
        """Return a look that `to_json` wrote down."""
        return cls(**said | {"folds": tuple(said["folds"])})


@dataclass(frozen=True)
class Evidence:
    """All looks since the last promotion together, against the limit of a promotion.

    ``value`` is z, or the natural logarithm of an e-value, and ``limit`` what it has to exceed.
    """

    kind: Literal["likelihood", "e_value"]
    value: float
    limit: float
    looks: int
    looks_a_year: int
    people: int
    right: float

    @property
    def sufficient(self) -> bool:
        """Whether a promotion may rest on it."""
        return self.value > self.limit and self.right > 0.0

    @property
    def words(self) -> str:
        """One sentence for people."""
        name = "z" if self.kind == "likelihood" else "log e-value"
        found = (
            f"on {self.people:,} people of {self.looks} look{'' if self.looks == 1 else 's'} whom "
            f"it was not fitted to, the challenger predicts labels with {name} = "
            f"{self.value:.2f} over the champion; {self.limit:.2f} is required at "
            f"{self.looks_a_year} looks a year"
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
    kind: Literal["likelihood", "e_value"],
    probability: float,
    months: float,
) -> Evidence:
    """Weigh the looks since the last promotion, the newest last.

    Parameters
    ----------
    looks
        Since the last promotion.
    every_day
        Of all looks ever, the newest last: they say how often is looked.
    opened
        Day of the first deployment.
    kind
        ``likelihood``: z of the looks of the last ``months``. ``e_value``: the average of the
        folds' likelihood ratios, multiplied over all looks.
    probability
        Of a promotion within a year where no challenger is better.
    months
        How far back looks are pooled.
    """
    yearly = looks_a_year(every_day, opened)
    if kind == "e_value":
        value = sum(_log_mean_exp(look.folds) for look in looks)
        limit, pooled = math.log(1.0 / probability), list(looks)
    else:
        newest = looks[-1].day
        pooled = [look for look in looks if newest - look.day < (months - 0.5) * MONTH]
        squares = sum(look.squares for look in pooled)
        value = sum(look.gain for look in pooled) / math.sqrt(squares) if squares > 0.0 else 0.0
        together = max(1, round(months * yearly / 12.0))
        limit = limit_for(yearly, together, probability)
    people, right = sum(look.n for look in pooled), sum(look.right for look in pooled)
    return Evidence(kind, value, limit, len(pooled), yearly, people, right)


def _log_mean_exp(values: Sequence[float]) -> float:
    highest = max(values)
    return highest + math.log(sum(math.exp(value - highest) for value in values) / len(values))
