r"""What was fitted: one candidate model of behaviour, with its likelihood and intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from countermove._types import Floats, Mask
from countermove.learning.people_estimation.noise import Noise


@dataclass(frozen=True)
class Interval:
    """A confidence interval; an open end is 0 or infinity.

    ``kind`` says how it was found: ``bracket`` (certain, no noise), ``likelihood`` (change-point
    likelihood ratio), ``normal`` (information matrix), ``exact`` (binomial) or ``profile``
    (likelihood-ratio tests inverted; two samples).
    """

    low: float
    high: float
    kind: str = "normal"

    def contains(self, value: float) -> bool:
        """Return whether the value lies inside, ends included."""
        return self.low <= value <= self.high

    @property
    def closed(self) -> bool:
        """Whether both ends say something."""
        return self.low > 0.0 and math.isfinite(self.high)


@dataclass(frozen=True)
class Candidate:
    """A fitted model.

    Attributes
    ----------
    name
        ``none``, ``drift``, ``best`` or ``smooth``.
    log_likelihood
        At the fit.
    parameters
        How many were fitted.
    scale, temperature
        The fit, None where the model has none.
    noise
        The fit.
    mean, inside
        Model advance of every person, and whom the model moves.
    scale_interval, temperature_interval, non_movers_interval
        At the level asked for.
    """

    name: str
    log_likelihood: float
    parameters: int
    noise: Noise
    mean: Floats
    inside: Mask
    scale: float | None = None
    temperature: float | None = None
    scale_interval: Interval | None = None
    temperature_interval: Interval | None = None
    non_movers_interval: Interval = field(default_factory=lambda: Interval(0.0, 1.0))

    def criterion(self, n: float) -> float:
        """Return Schwarz's criterion (BIC), smaller is better."""
        return self.parameters * math.log(n) - 2.0 * self.log_likelihood


def share_interval(share: float, deviation: float, z: float) -> Interval:
    """Return an interval of a share whose log-odds have that standard deviation."""
    odds = math.log(share / (1.0 - share))
    ends = [1.0 / (1.0 + math.exp(-(odds + sign * z * deviation))) for sign in (-1.0, 1.0)]
    return Interval(ends[0], ends[1])


def positive_interval(value: float, deviation: float, z: float) -> Interval:
    """Return an interval of a positive number whose logarithm has that standard deviation."""
    wide = min(z * deviation, 300.0)
    return Interval(value * math.exp(-wide), value * math.exp(wide))
