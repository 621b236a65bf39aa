"""Candidate models of behaviour: likelihood, intervals, and the two that ignore the rule."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.learning.people_estimation._noise import (
    Advances,
    Noise,
    fit_noise,
    from_free,
    to_free,
)

STEP = 1e-4
"""Of the central differences, in logarithms and log-odds."""
DEAD = 1e-8
"""Information per person below this says nothing: the parameter sits on its floor."""


@dataclass(frozen=True)
class Interval:
    """A confidence interval; an open end is 0 or infinity."""

    low: float
    high: float
    # How it was found: "bracket" (certain, no noise), "likelihood" (change-point likelihood ratio),
    # "normal" (information matrix), "exact" (binomial) or "profile" (tests inverted; two samples).
    kind: str = "normal"

    def contains(self, value: float) -> bool:
        """Return whether the value lies inside, ends included."""
        return self.low <= value <= self.high

    @property
    def closed(self) -> bool:
        """Whether neither end is open."""
        return self.low > 0.0 and math.isfinite(self.high)


@dataclass(frozen=True)
class Candidate:
    """A fitted model of behaviour."""

    name: str  # "none", "drift", "best" or "smooth"
    log_likelihood: float
    parameters: int
    noise: Noise
    mean: Floats  # model advance of every person
    inside: Mask  # whom the model moves
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


def standard_errors(
    seen: Advances,
    rows: Callable[[Floats, Noise], Floats],
    noise: Noise,
    free: Floats | None = None,
    valid: NDArray[np.bool_] | None = None,
) -> Floats:
    """Return standard errors: first those of ``free`` (logarithms), then those of the noise."""
    scores = gradients(seen, rows, noise, free)
    if valid is not None:
        # Leaving out people whose likelihood is not smooth can only widen.
        scores = scores[valid]
    live = np.flatnonzero((scores**2).mean(axis=0) > DEAD)
    errors = np.full(scores.shape[1], np.inf)
    if live.size:
        information = scores[:, live].T @ scores[:, live]
        errors[live] = np.sqrt(np.diag(np.linalg.pinv(information, hermitian=True)))
    return errors


def gradients(
    seen: Advances,
    rows: Callable[[Floats, Noise], Floats],
    noise: Noise,
    free: Floats | None = None,
) -> Floats:
    """Return every person's derivative of the log-likelihood, shape (n, parameters)."""
    own = np.empty(0) if free is None else free
    at = np.concatenate([own, to_free(noise, seen)])

    def value(point: Floats) -> Floats:
        return rows(point[: len(own)], from_free(point[len(own) :], seen))

    columns = []
    for j in range(len(at)):
        step = np.zeros(len(at))
        step[j] = STEP
        columns.append((value(at + step) - value(at - step)) / (2.0 * STEP))
    return np.column_stack(columns)


def fit_none(seen: Advances, start: Noise) -> Candidate:
    """Fit measurement noise and strays to people of whom none responds to the rule."""
    nobody, nowhere = np.zeros(len(seen.values), dtype=bool), np.zeros(len(seen.values))
    noise, likelihood = fit_noise(seen, nowhere, nobody, start)
    quiet = Noise(measurement=noise.measurement, strays=noise.strays)
    parameters = 1 if seen.exact else 2
    return Candidate("none", likelihood, parameters, quiet, nowhere, nobody)


def fit_drift(seen: Advances) -> Candidate:
    """Fit a normal advance to everybody, wherever they are; some may stand still."""
    # A model that beats this one moved because of the rule, not because time passed.
    moved = seen.values[~seen.still] if seen.exact else seen.values
    n, k = len(seen.values), len(moved)
    centre = float(moved.mean()) if k else 0.0
    deviation = max(float(moved.std()) if k else 0.0, 1e-9 * seen.spread)
    likelihood = -k * (np.log(deviation * np.sqrt(2 * np.pi)) + 0.5)
    for count in (k, n - k):
        likelihood += count * np.log(count / n) if count else 0.0
    mean = np.full(n, centre)
    noise = Noise(non_movers=1.0 - k / n, measurement=deviation)
    everybody = np.ones(n, dtype=bool)
    # One parameter more than "nobody moves", of which it is the shifted version.
    return Candidate("drift", float(likelihood), 3, noise, mean, everybody)
