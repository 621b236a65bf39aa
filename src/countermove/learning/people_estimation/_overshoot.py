r"""Where movers land: on the boundary, beyond it by a margin, by rounding, or around it by error.

What people go beyond the boundary they pay for; by how much they stop short of it, within the
rounding of records or a symmetric error, they did not plan. Movers who stop short more than they
go beyond are people of another kind.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from countermove._types import Floats, Mask

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
