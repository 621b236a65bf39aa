r"""Candidate models of behaviour: noise, likelihood, intervals, and the two that ignore the rule.

With model advance :math:`m` a person is seen to advance by
- :math:`m(1 + \sigma_o \varepsilon) + \sigma_m \varepsilon'`, who moves, with optimisation error;
- :math:`\sigma_m \varepsilon'` with probability :math:`\pi`: non-movers;
- anything, with a small probability: strays.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Mask

if TYPE_CHECKING:
    from countermove.learning.people_estimation._price_fit import PriceFit


LEAST_SHARE = 1e-6
LEAST_ERROR = 1e-6
"""Floors of shares and of errors (the latter relative): zero in all but name, finite logarithms."""


@dataclass(frozen=True)
class Noise:
    r"""The four kinds.

    Attributes
    ----------
    non_movers
        :math:`\pi`, the share of people who never respond to a rule.
    optimisation_error
        :math:`\sigma_o`, the standard deviation by which movers under- and overshoot,
        as a share of their move.
    measurement
        :math:`\sigma_m`, the standard deviation of the record after the move along the
        rule, in units of distance. The record before is what the rule decided on, and is
        where the person stood.
    strays
        Share of people who moved for reasons of their own.
    """

    non_movers: float = 0.0
    optimisation_error: float = 0.0
    measurement: float = 0.0
    strays: float = 0.0


@dataclass(frozen=True)
class Advances:
    """Observed advances, and how to read them."""

    values: Floats  # shape (n,), units of distance
    still: Mask  # who did not change at all; only read if exact
    exact: bool  # records have no measurement noise, so that staying is seen as such
    spread: float  # standard deviation of strays' advances

    def of_rows(self, rows: NDArray[np.intp]) -> Advances:
        """Return those of some people."""
        return replace(self, values=self.values[rows], still=self.still[rows])


def densities(seen: Advances, mean: Floats, noise: Noise) -> tuple[Floats, Floats, Floats]:
    """Return the densities of staying, of moving by ``mean`` and of straying, each (n,)."""
    # Where records are exact, staying is an event of its own and the others have densities on the
    # people who moved only.
    variance, _ = _variance(seen, mean, noise)
    if seen.exact:
        moved = (~seen.still).astype(np.float64)
        return (
            seen.still.astype(np.float64),
            moved * _normal(seen.values - mean, np.sqrt(variance)),
            moved * _normal(seen.values, seen.spread),
        )
    floor = max(noise.measurement, LEAST_ERROR * seen.spread)
    return (
        _normal(seen.values, floor),
        _normal(seen.values - mean, np.sqrt(variance)),
        _normal(seen.values, math.hypot(seen.spread, floor)),
    )


def likelihoods(seen: Advances, mean: Floats, noise: Noise) -> tuple[Floats, Floats]:
    """Return the likelihood of each person if the model moves them, and if it does not."""
    # strays f_s + (1 - strays) [share f_0 + (1 - share) f_m], and without the move
    stay, move, stray = densities(seen, mean, noise)
    other = max(noise.strays, LEAST_SHARE / len(seen.values)) * stray
    share = min(max(noise.non_movers, LEAST_SHARE), 1.0 - LEAST_SHARE)
    kept = 1.0 - noise.strays
    tiny = np.finfo(np.float64).tiny
    return (
        other + kept * (share * stay + (1.0 - share) * move) + tiny,
        other + kept * stay + tiny,
    )


def log_likelihood(seen: Advances, mean: Floats, inside: Mask, noise: Noise) -> Floats:
    """Return the log-likelihood of every person; ``inside`` are those the model moves."""
    moving, staying = likelihoods(seen, mean, noise)
    result: Floats = np.log(np.where(inside, moving, staying))
    return result


def fit_noise(seen: Advances, mean: Floats, inside: Mask, start: Noise) -> tuple[Noise, float]:
    """Return the likeliest noise for given model advances, and the log-likelihood."""
    from scipy.optimize import minimize

    low, high = _limits(seen)
    begin = np.clip(to_free(start, seen), low, high)
    first = _badness(begin, seen, mean, inside)[0]
    scale = max(1.0, abs(first))

    def badness(free: Floats) -> tuple[float, Floats]:
        value, slope = _badness(free, seen, mean, inside)
        return value / scale, slope / scale

    found = minimize(
        badness,
        begin,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(low, high, strict=True)),
        options={"maxiter": 100, "ftol": 1e-11},
    )
    if found.fun * scale > first:
        return from_free(begin, seen), -first
    return from_free(found.x, seen), -float(found.fun) * scale


def _badness(free: Floats, seen: Advances, mean: Floats, inside: Mask) -> tuple[float, Floats]:
    """Return minus the log-likelihood and its derivatives by the free numbers."""
    noise = from_free(free, seen)
    stay, move, stray = densities(seen, mean, noise)
    moving, staying = likelihoods(seen, mean, noise)
    total = np.where(inside, moving, staying)
    share, other, kept = noise.non_movers, noise.strays, 1.0 - noise.strays
    within = np.where(inside, share * stay + (1.0 - share) * move, stay)
    walks = np.where(inside, kept * (1.0 - share) * move, 0.0) / total
    variance, error = _variance(seen, mean, noise)
    stretch = walks * ((seen.values - mean) ** 2 / variance - 1.0) / variance
    slopes = [
        float(np.sum(np.where(inside, stay - move, 0.0) / total)) * kept * share * (1.0 - share),
        float(np.sum(stretch * error**2)),
    ]
    if not seen.exact:
        noisy = noise.measurement**2
        rests = np.where(inside, kept * share, kept) * stay / total
        wide = seen.spread**2 + noisy
        part = rests * (seen.values**2 / noisy - 1.0) + stretch * noisy
        part += other * stray / total * (seen.values**2 / wide - 1.0) * noisy / wide
        slopes.append(float(np.sum(part)))
    slopes.append(float(np.sum((stray - within) / total)) * other * kept)
    return -float(np.log(total).sum()), -np.array(slopes)


def _variance(seen: Advances, mean: Floats, noise: Noise) -> tuple[Floats, Floats]:
    """Return the variance of movers' advances, and their optimisation error."""
    error = noise.optimisation_error * np.abs(mean)
    floor = LEAST_ERROR * seen.spread
    if seen.exact:
        return np.maximum(error, floor) ** 2, error
    return max(noise.measurement, floor) ** 2 + error**2, error


def refit_noise(seen: Advances, mean: Floats, inside: Mask, noise: Noise) -> tuple[Noise, float]:
    """Fit the noise again, also from a plain start: an error once near zero has no slope there."""
    plain = replace(noise, optimisation_error=0.1, non_movers=max(noise.non_movers, 0.02))
    fits = [fit_noise(seen, mean, inside, start) for start in (noise, plain)]
    return max(fits, key=lambda fit: fit[1])


def to_free(noise: Noise, seen: Advances) -> Floats:
    """Return noise as free numbers: log-odds of shares, logarithms of errors."""
    entries = [_logit(noise.non_movers), math.log(max(noise.optimisation_error, LEAST_ERROR))]
    if not seen.exact:
        entries.append(math.log(max(noise.measurement / seen.spread, LEAST_ERROR)))
    return np.array([*entries, _logit(noise.strays)])


def from_free(free: Floats, seen: Advances) -> Noise:
    """Return what `to_free` wrote."""
    values = free.tolist()
    return Noise(
        non_movers=expit(values[0]),
        optimisation_error=math.exp(values[1]),
        measurement=0.0 if seen.exact else math.exp(values[2]) * seen.spread,
        strays=expit(values[-1]),
    )


def _limits(seen: Advances) -> tuple[Floats, Floats]:
    edge, floor = _logit(LEAST_SHARE), math.log(LEAST_ERROR)
    low, high = [edge, floor], [-edge, 1.0]
    if not seen.exact:
        low, high = [*low, floor], [*high, 1.0]
    return np.array([*low, edge]), np.array([*high, 0.0])


def _normal(value: Floats, deviation: Floats | float) -> Floats:
    result: Floats = np.exp(-0.5 * (value / deviation) ** 2) / (deviation * math.sqrt(2 * math.pi))
    return result


def _logit(share: float) -> float:
    share = min(max(share, LEAST_SHARE), 1.0 - LEAST_SHARE)
    return math.log(share / (1.0 - share))


def expit(odds: float) -> float:
    """Return the share of log-odds, infinite ones included."""
    return 1.0 / (1.0 + math.exp(-odds)) if odds > -700.0 else 0.0


def exponential(end: float) -> float:
    """Return the number whose logarithm is an end of an interval, infinite ones included."""
    return math.exp(end) if end < 700.0 else math.inf


STEP = 1e-4
"""Of the central differences, in logarithms and log-odds."""
OPEN = math.log(1e6)
"""Of an interval, in logarithms."""
DEAD = 1e-8
"""Information per person below this says nothing: the parameter sits on its floor."""


@dataclass(frozen=True)
class Interval:
    """A confidence interval; an open end is 0 or infinity."""

    low: float
    high: float
    # How it was found: "bracket" (certain, no noise), "profile" (likelihood ratios inverted) or
    # "normal" (information matrix).
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
    log_sd: float = 0.0  # of prices among those who move
    log_sd_interval: Interval | None = None
    prices: PriceFit | None = None
    drift: tuple[float, float] = (0.0, 0.0)  # of everybody: constant, and per unit of gap
    at_level: Callable[[float], Candidate] | None = None  # the same with intervals of that level

    @property
    def chance(self) -> Floats:
        """Everybody's chance of moving as the model says."""
        if self.prices is not None:
            return self.prices.chance
        result: Floats = np.where(self.inside, 1.0 - self.noise.non_movers, 0.0)
        return result

    def criterion(self, n: float) -> float:
        """Return Schwarz's criterion (BIC), smaller is better."""
        return self.parameters * math.log(n) - 2.0 * self.log_likelihood


def share_interval(share: float, deviation: float, z: float) -> Interval:
    """Return an interval of a share whose log-odds have that standard deviation."""
    odds = math.log(share / (1.0 - share))
    return Interval(expit(odds - z * deviation), expit(odds + z * deviation))


def positive_interval(value: float, deviation: float, z: float) -> Interval:
    """Return an interval of a positive number whose logarithm has that standard deviation."""
    # Beyond a factor of a million an end says nothing: it is open.
    wide = z * deviation
    if wide > OPEN:
        return Interval(0.0, math.inf)
    return Interval(value * math.exp(-wide), value * math.exp(wide))


def normal_quantile(level: float) -> float:
    """Return z with P(|Z| <= z) = level."""
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 2.0))


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


def fit_drift(seen: Advances, gap: Floats) -> Candidate:
    """Fit a normal advance to everybody; some may stand still."""
    # A model that beats this one moved because of the rule, not because time passed or because
    # extreme records are followed by less extreme ones: where records are noisy the advance may
    # depend on the gap (regression to the mean).
    moved = ~seen.still if seen.exact else np.ones(len(gap), dtype=bool)
    n, k = len(gap), int(moved.sum())
    rows = np.column_stack([np.ones(k), np.zeros(k) if seen.exact else gap[moved]])
    line = np.linalg.lstsq(rows, seen.values[moved], rcond=None)[0] if k else np.zeros(2)
    rest = seen.values[moved] - rows @ line
    deviation = max(float(np.sqrt(np.mean(rest**2))) if k else 0.0, 1e-9 * seen.spread)
    likelihood = -k * (np.log(deviation * np.sqrt(2 * np.pi)) + 0.5)
    for count in (k, n - k):
        likelihood += count * np.log(count / n) if count else 0.0
    noise = Noise(non_movers=1.0 - k / n, measurement=deviation)
    return Candidate(
        "drift",
        float(likelihood),
        4,
        noise,
        line[0] + line[1] * gap,
        np.ones(n, dtype=bool),
        drift=(float(line[0]), float(line[1])),
    )
