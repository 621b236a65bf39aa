"""Candidate models of behaviour: noise, intervals, everybody's drift, and where movers land.

What people go beyond the boundary they pay for; by how much they stop short of it, within the
rounding of records or a symmetric error, they did not plan. Movers who stop short more than they
go beyond are people of another kind.
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


def expit(odds: float) -> float:
    """Return the share of log-odds, infinite ones included."""
    return 1.0 / (1.0 + math.exp(-odds)) if odds > -700.0 else 0.0


def exponential(end: float) -> float:
    """Return the number whose logarithm is an end of an interval, infinite ones included."""
    return math.exp(end) if end < 700.0 else math.inf


OPEN = math.log(1e6)
"""Of an interval, in logarithms."""


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


EXACT = 1e-6
"""Landings this near the boundary, relative to spread and gap, are on it."""
FEW = 0.02
"""Share of movers who may stop short as strays."""
NODES = 8
CELLS = 10
"""Nodes of the overshoot for those who stayed, and cells of its density."""
CLEARLY = 1e-3
"""p-value from which on movers are said to aim beyond the boundary, not at it."""
BAND = 4.0
"""Standard deviations of a symmetric error within which a mover meant to cross."""


@dataclass(frozen=True)
class Overshoot:
    """How far beyond the boundary movers go: in distance, or as a share of the gap.

    Attributes
    ----------
    kind
        ``none``, ``absolute`` or ``proportional``.
    median, high
        Median, and the value that one mover in twenty exceeds.
    """

    kind: str = "none"
    median: float = 0.0
    high: float = 0.0


@dataclass(frozen=True)
class Landing:
    """Landings of movers under exact records."""

    crossed: Mask  # who meant to cross, and did or nearly did, (n,)
    planned: Floats  # overshoot of those who crossed, in the units of ``proportional``
    proportional: bool
    scatter: float  # standard deviation of the symmetric error, same units; 0 without
    short: float  # share of movers who stopped short
    p_short: float  # p-value of "movers do not stop short"
    log_density: float  # of the landings of those who crossed

    @property
    def overshoot(self) -> Overshoot:
        """The overshoot in two numbers."""
        return summary(self.planned, np.full(len(self.planned), 1.0), self.proportional)


def summary(values: Floats, weights: Floats, proportional: bool) -> Overshoot:
    """Return a law of overshoots in two numbers."""
    if not len(values) or float(values.max()) <= EXACT:
        return Overshoot()
    order = np.argsort(values)
    below = np.cumsum(weights[order]) / weights.sum()
    places = [min(int(np.searchsorted(below, p)), len(values) - 1) for p in (0.5, 0.95)]
    median, high = (float(values[order][place]) for place in places)
    return Overshoot("proportional" if proportional else "absolute", median, high)


def land(gap: Floats, advance: Floats, movers: Mask, spread: float, slack: float) -> Landing:
    """Read landings; ``slack`` is how far rounding of the records may set a mover back."""
    g, excess = gap[movers], (advance - gap)[movers]
    level = EXACT * (spread + g)
    relative = _entropy(excess / g) + float(np.log(g).mean()) if len(g) > 1 else 0.0
    proportional = len(g) > 1 and relative < _entropy(excess)
    size = excess / g if proportional else excess
    stops = excess < -(level + slack)
    short = float(stops.mean()) if len(g) else 0.0
    crossed = np.zeros(len(gap), dtype=bool)
    if short <= FEW and not _set_back(excess, level):
        planned, scatter, p_short, kept = np.maximum(size, 0.0), 0.0, 1.0, ~stops
    else:
        centre = float(np.median(size))
        scatter = 1.4826 * float(np.median(np.abs(size - centre)))
        back = slack / g if proportional else slack
        kept = size >= min(centre, 0.0) - BAND * scatter - back - EXACT
        aim = centre if _aims_beyond(size) else 0.0
        planned = np.full(len(g), aim)
        p_short = _stops_short(size + np.where(size < 0.0, np.minimum(back, -size), 0.0), aim)
    crossed[np.flatnonzero(movers)[kept]] = True
    density = _log_density(size[kept], EXACT * (1.0 if proportional else spread))
    if proportional:
        density -= float(np.log(g[kept]).sum())
    return Landing(crossed, planned[kept], proportional, scatter, short, p_short, density)


def _set_back(excess: Floats, level: Floats) -> bool:
    """Return whether more than a few land short of the boundary, if only by rounding."""
    return len(excess) > 0 and float((excess < -level).mean()) > FEW


def _aims_beyond(size: Floats) -> bool:
    """Return whether clearly more than half of the movers land beyond the boundary."""
    from scipy.special import ndtr

    off = size[np.abs(size) > EXACT]
    mark = (2.0 * float((off > 0.0).sum()) - len(off)) / math.sqrt(max(len(off), 1))
    return bool(ndtr(-mark) < CLEARLY)


def _stops_short(size: Floats, aim: float) -> float:
    """Return the p-value of the signed-rank test that landings are not skewed backwards."""
    from scipy.special import ndtr
    from scipy.stats import rankdata

    off = size - aim
    off = off[np.abs(off) > EXACT]
    n = len(off)
    if n < 8:
        return 1.0
    ranks = rankdata(np.abs(off))
    mean, variance = 0.25 * n * (n + 1), float(np.sum(ranks**2)) / 4.0
    return float(ndtr((float(ranks[off > 0.0].sum()) - mean) / math.sqrt(variance)))


def _entropy(values: Floats) -> float:
    """Return Vasicek's estimate of the entropy of a sample, tied values at a floor."""
    n = len(values)
    near, ordered = max(1, round(math.sqrt(n))), np.sort(values)
    upper = ordered[np.minimum(np.arange(n) + near, n - 1)]
    lower = ordered[np.maximum(np.arange(n) - near, 0)]
    return float(np.log(np.maximum((upper - lower) * n / (2.0 * near), EXACT * EXACT)).mean())


def _log_density(values: Floats, floor: float) -> float:
    """Return the log-likelihood of landings under a histogram with cells of equal shares."""
    if not len(values):
        return 0.0
    edges = np.quantile(values, np.linspace(0.0, 1.0, CELLS + 1))
    widths = np.maximum(np.diff(edges), floor)
    cell = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, CELLS - 1)
    return float(np.log(1.0 / (CELLS * widths[cell])).sum())


def overshoot_nodes(planned: Floats) -> tuple[Floats, Floats]:
    """Return values of the overshoot and their shares among those who crossed."""
    if not len(planned) or float(planned.max()) <= EXACT:
        return np.zeros(1), np.ones(1)
    # Means of equal parts: nothing is lost where the chance to cross is linear in the overshoot.
    parts = np.array_split(np.sort(planned), min(NODES, len(planned)))
    nodes, back = np.unique([float(part.mean()) for part in parts], return_inverse=True)
    sizes = np.array([len(part) for part in parts], dtype=np.float64)
    return nodes, np.bincount(back, sizes) / sizes.sum()
