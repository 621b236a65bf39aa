"""How an experiment sets the threshold of a trained rule: by F1, precision, a promise, or by hand.

Everything is chosen on selection and calibration rows; test rows are never looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import expit, logit

from countermove._types import Floats, Mask
from countermove.recourse.pare import threshold_bound
from countermove.recourse.performance import best_f1


@dataclass(frozen=True)
class ThresholdRows:
    """What a threshold may be chosen from: selection people, and the reach of calibration ones."""

    scores: Floats
    favourable: Mask
    reach: Floats  # the best score each calibration person can get to


class ThresholdRule(Protocol):
    """A way to set the threshold."""

    @property
    def name(self) -> str:
        """What the cells of this rule are called."""
        ...

    def threshold(self, seen: ThresholdRows) -> float:
        """Return the probability from which people are approved."""
        ...


@dataclass(frozen=True)
class HighestF1:
    """The threshold of the highest F1 on selection rows."""

    name: str = "highest_f1"

    def threshold(self, seen: ThresholdRows) -> float:
        """Return the probability from which people are approved."""
        return float(expit(best_f1(seen.scores, seen.favourable)[0]))


@dataclass(frozen=True)
class Promise:
    """The threshold of the highest F1 on selection rows among those that keep the promise."""

    miss_rate: float = 0.05
    failure_probability: float = 0.05

    @property
    def name(self) -> str:
        """What the cells of this rule are called."""
        return f"promise_{self.miss_rate:g}_{self.failure_probability:g}"

    def threshold(self, seen: ThresholdRows) -> float:
        """Return the probability from which people are approved."""
        # Every threshold below the bound keeps the promise too: choosing among them costs nothing.
        bound = threshold_bound(seen.reach, self.miss_rate, self.failure_probability)
        # People beyond the bound are approved at every allowed threshold: one cut stands for them.
        cut, _ = best_f1(np.minimum(seen.scores, logit(bound)), seen.favourable)
        return min(float(expit(cut)), bound)


@dataclass(frozen=True)
class NearestPrecision:
    """The threshold whose precision on selection rows is nearest to the one wanted, or lowest."""

    wanted: float = 0.65

    @property
    def name(self) -> str:
        """What the cells of this rule are called."""
        return f"precision_{self.wanted:g}"

    def threshold(self, seen: ThresholdRows) -> float:
        """Return the probability from which people are approved."""
        cuts = np.sort(seen.scores)
        order = np.argsort(seen.scores)
        deserving = np.cumsum(seen.favourable[order][::-1])[::-1]
        approved = np.arange(len(cuts), 0, -1)
        first = np.append(True, cuts[1:] != cuts[:-1])
        distance = np.where(first, np.abs(deserving / approved - self.wanted), np.inf)
        return float(expit(cuts[int(np.argmin(distance))]))


@dataclass(frozen=True)
class Fixed:
    """A threshold given beforehand."""

    at: float

    @property
    def name(self) -> str:
        """What the cells of this rule are called."""
        return f"fixed_{self.at:g}"

    def threshold(self, seen: ThresholdRows) -> float:
        """Return the probability from which people are approved."""
        return self.at
