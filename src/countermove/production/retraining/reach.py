"""How far people move, from where the people of a batch stand.

Whoever is refused and within reach moves to the decision boundary, or a little beyond it. So those
who are still refused lack the people within reach, and the boundary has too many. Both tell the
reach. A few people who do not fit are people who never move: they hardly shift the estimate.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtr

from countermove._types import Floats, Mask

SMALLEST_SD, LARGEST_SD = 0.02, 0.8
"""Of the logarithm of the reach; below the first everybody is taken to reach equally far."""
ALIKE_SD = 0.06
FINE = 0.02
"""Step of the grid on which densities are added up, in units of the assumed reach."""
CELL = 0.05
WIDTHS = 6
"""Widths of the kernel tried, up to the one that fits a bell."""
FILLED = 5.0
"""People expected in a cell for its count to say how much counts vary."""
LEAST_PEOPLE = 200
"""People below which the reach is not estimated again."""
WINDOW = 0.25
"""How far from the boundary people are looked for who meant to stand on it."""
WIDENED = 4.0
"""Standard deviations around the boundary that count as standing on it."""
NEVER_SHOWN = 0.005
BOUNDS = ((-2.5, 2.5), (-8.0, 8.0), (-9.0, 6.0), (-3.0, 3.0), (-1.5, 1.5))
"""Of the parameters of the likelihood: log reach, spread, never, and two of the tilt."""


@dataclass(frozen=True)
class ReachModel:
    r"""Who moves: the chance to cross a gap :math:`g`, in units of the reach that was assumed.

    .. math:: S(g) = (1 - \nu)\, \Phi\!\big((\ln \rho - \ln g) / v\big)

    Parameters
    ----------
    reach
        :math:`\rho`, the median; 1 is as far as assumed. Moving then costs :math:`1/\rho^2` times
        as much as assumed.
    log_sd
        :math:`v`, half the log-sd of prices; 0: everybody reaches equally far.
    never
        :math:`\nu`, the share that never moves.
    """

    reach: float = 1.0
    log_sd: float = 0.0
    never: float = 0.0

    def chance(self, gap: Floats) -> Floats:
        """Return the chance to cross; a gap of at most 0 needs no move."""
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.log_sd < SMALLEST_SD:
                moved = (gap <= self.reach).astype(np.float64)
            else:
                moved = ndtr((math.log(self.reach) - np.log(gap)) / self.log_sd)
        found: Floats = np.where(gap <= 0.0, 1.0, (1.0 - self.never) * moved)
        return found

    @property
    def farthest(self) -> float:
        """A gap that hardly anybody crosses."""
        return self.reach * math.exp(2.0 * self.log_sd)

    def to_json(self) -> dict[str, float]:
        """Return it, JSON-ready."""
        return asdict(self)


@dataclass(frozen=True)
class Boundary:
    """Which distances count as standing on the decision boundary."""

    low: float
    high: float

    def holds(self, distance: Floats) -> Mask:
        """Return who stands there."""
        found: Mask = (distance >= self.low) & (distance <= self.high)
        return found


@dataclass(frozen=True)
class ReachEstimate:
    """The people as estimated, whether they are those assumed, and on whom this rests.

    ``low`` and ``high`` are the ends of the interval of the reach, ``excluded`` says whether the
    people assumed lie outside their confidence region.
    """

    people: ReachModel
    low: float
    high: float
    excluded: bool
    boundary: Boundary
    on_boundary: int
    n: int
    level: float

    def to_json(self) -> dict[str, Any]:
        """Return it, JSON-ready."""
        return asdict(self)


def boundary_of(distance: Floats) -> Boundary:
    """Return where people stand who meant to stand on the boundary: overshoot, rounding and all."""
    near = np.sort(distance[np.abs(distance) <= WINDOW])
    if len(near) < 10:
        return Boundary(-1e-6, 1e-6)
    # The shortest interval that holds half of the people near the boundary.
    half = (len(near) + 1) // 2
    widths = near[half - 1 :] - near[: len(near) - half + 1]
    at = int(np.argmin(widths))
    centre, width = 0.5 * (near[at] + near[at + half - 1]), 0.5 * float(widths[at])
    spread = max(width / 0.6745, 1e-7)
    reachable = WIDENED * spread
    return Boundary(max(centre - reachable, -WINDOW) - 1e-6, min(centre + reachable, WINDOW) + 1e-6)


class _Likelihood:
    """The likelihood of counts in cells of distance, given where people stood before."""

    def __init__(self, distance: Floats, before: Floats, boundary: Boundary) -> None:
        low = max(float(np.quantile(before, 0.001)), -6.0)
        high = min(float(np.quantile(before, 0.999)), 6.0)
        self.grid = np.arange(low, high, FINE) + 0.5 * FINE
        self.density = _smoothed(before, self.grid)
        refused = np.arange(boundary.low, low - CELL, -CELL)[::-1]
        approved = np.arange(boundary.high, high + CELL, CELL)
        self.edges = np.concatenate([refused, approved])
        inside = (distance > self.edges[0]) & (distance < self.edges[-1])
        self.counts = np.histogram(distance[inside], self.edges)[0].astype(np.float64)
        self.cell = np.clip(
            np.searchsorted(self.edges, self.grid, side="right") - 1, 0, len(self.counts) - 1
        )
        self.band = len(refused) - 1
        self.squares = self.grid**2
        self.log_gaps = np.log(-self.grid[self.grid < min(boundary.low, -0.5 * FINE)])
        self.typical = np.array([0.0, -1.0, -4.0, 0.0, 0.0])
        self.typical_sd = np.array([10.0, 2.5, 2.0, 0.5, 0.2])

    def people(self, theta: Floats) -> ReachModel:
        """Return the people that the parameters stand for."""
        sd = SMALLEST_SD + (LARGEST_SD - SMALLEST_SD) * float(expit(theta[1]))
        return ReachModel(math.exp(theta[0]), sd, float(expit(theta[2])))

    def loss(self, theta: Floats) -> float:
        """Return the negative log-likelihood; theta: log reach, spread, never, tilt, tilt²."""
        return self.loss_and_slope(theta)[0]

    def dispersion(self, theta: Floats) -> float:
        """Return by how much counts vary more than the fit says; at least 1."""
        # People of real tables stand in heaps, and where they stood before is itself a sample.
        expected = float(self.counts.sum()) * self._expected(theta)[0]
        filled = expected >= FILLED
        if int(filled.sum()) <= len(theta):
            return 1.0
        off = (self.counts[filled] - expected[filled]) ** 2 / expected[filled]
        return max(1.0, float(off.sum()) / (int(filled.sum()) - len(theta)))

    def loss_and_slope(self, theta: Floats) -> tuple[float, Floats]:
        """Return the negative log-likelihood and its gradient."""
        people = self.people(theta)
        expected, tilted, u, chance = self._expected(theta)
        k = len(u)
        off = (theta - self.typical) / self.typical_sd
        value = float(-self.counts @ np.log(expected)) + 0.5 * float(off @ off)
        ratio = -0.999 * self.counts / expected
        by_place = ratio[self.cell]
        by_chance = tilted[:k] * (ratio[self.band] - by_place[:k])
        by_place[:k] += chance * (ratio[self.band] - by_place[:k])
        weighted = by_place * tilted
        total = float(weighted.sum())
        bell = (
            (1.0 - people.never) * np.exp(-0.5 * u * u) / (math.sqrt(2.0 * math.pi) * people.log_sd)
        )
        part = (people.log_sd - SMALLEST_SD) / (LARGEST_SD - SMALLEST_SD)
        slope = np.array(
            [
                by_chance @ bell,
                -(by_chance @ (bell * u)) * (LARGEST_SD - SMALLEST_SD) * part * (1.0 - part),
                -(by_chance @ chance) * people.never,
                weighted @ self.grid - total * float(tilted @ self.grid),
                weighted @ self.squares - total * float(tilted @ self.squares),
            ]
        )
        return value, slope + off / self.typical_sd

    def _expected(self, theta: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the share of every cell, where people stood, and who crosses which gap."""
        people = self.people(theta)
        tilted = self.density * np.exp(theta[3] * self.grid + theta[4] * self.squares)
        tilted /= tilted.sum()
        u: Floats = (theta[0] - self.log_gaps) / people.log_sd
        chance = (1.0 - people.never) * ndtr(u)
        k = len(u)  # The refused stand first on the grid.
        moved = chance * tilted[:k]
        staying = tilted.copy()
        staying[:k] -= moved
        cells = np.bincount(self.cell, staying, minlength=len(self.counts))
        expected: Floats = cells.astype(np.float64)
        expected[self.band] += moved.sum()
        # A thousandth of the people may stand anywhere: no single person decides.
        return 0.999 * expected + 0.001 / len(expected), tilted, u, chance

    def fitted(self, start: Floats, fixed: tuple[int, ...] = ()) -> tuple[Floats, float]:
        """Return the best parameters from a start, some of them kept, and their loss."""
        from scipy.optimize import minimize

        free = np.array([place for place in range(len(start)) if place not in fixed])

        def of_free(values: Floats) -> tuple[float, Floats]:
            theta = start.copy()
            theta[free] = values
            value, slope = self.loss_and_slope(theta)
            return value, slope[free]

        options = {"maxiter": 60, "ftol": 1e-8}
        bounds = [BOUNDS[place] for place in free]
        found = minimize(
            of_free, start[free], jac=True, method="L-BFGS-B", bounds=bounds, options=options
        )
        theta = start.copy()
        theta[free] = found.x
        return theta, float(found.fun)


def estimate_reach(
    distance: Floats, before: Floats, assumed: ReachModel, level: float
) -> ReachEstimate | None:
    """Return how far people move; None for too few people.

    Parameters
    ----------
    distance
        Signed distances of the people of a batch from the boundary, in units of the reach that
        was assumed; negative: refused.
    before
        The same of people who had no rule to respond to.
    assumed
        The people assumed until now.
    level
        Of the interval.
    """
    from scipy.stats import chi2

    if min(len(distance), len(before)) < LEAST_PEOPLE:
        return None
    boundary = boundary_of(distance)
    likelihood = _Likelihood(distance, before, boundary)
    theta, loss = _best(likelihood, assumed)
    people = _shown(likelihood.people(theta))
    old = _parameters(assumed)
    _, kept = likelihood.fitted(np.append(old, theta[3:]), fixed=(0, 1, 2))
    spread = likelihood.dispersion(theta)
    ends = _ends(likelihood, theta, loss, spread * float(chi2.ppf(level, 1)))
    return ReachEstimate(
        people,
        *ends,
        excluded=2.0 * (kept - loss) > spread * float(chi2.ppf(level, 3)),
        boundary=boundary,
        on_boundary=int(boundary.holds(distance).sum()),
        n=len(distance),
        level=level,
    )


def _parameters(people: ReachModel) -> Floats:
    """Return people as unbounded parameters."""
    part = np.clip((people.log_sd - SMALLEST_SD) / (LARGEST_SD - SMALLEST_SD), 0.005, 0.995)
    never = np.clip(people.never, 0.002, 0.998)
    return np.array([math.log(people.reach), float(logit(part)), float(logit(never))])


def _best(likelihood: _Likelihood, assumed: ReachModel) -> tuple[Floats, float]:
    """Return the most likely parameters, from several starts."""
    starts = []
    for shift in (-0.7, -0.35, -0.15, 0.0, 0.15, 0.35, 0.7):
        for spread in (-3.0, 0.0):
            theta = np.array([math.log(assumed.reach) + shift, spread, -4.0, 0.0, 0.0])
            starts.append((likelihood.loss(theta), theta))
    starts.sort(key=lambda start: start[0])
    found = [likelihood.fitted(theta) for _, theta in starts[:2]]
    return min(found, key=lambda each: each[1])


def _ends(likelihood: _Likelihood, theta: Floats, loss: float, limit: float) -> tuple[float, float]:
    """Return the ends of the profile-likelihood interval of the reach."""
    # The root of the deviance is nearly linear in the logarithm of the reach.
    ends = []
    for side in (-1.0, 1.0):
        step = 0.03
        for _ in range(3):
            start = theta.copy()
            start[0] += side * step
            deviance = 2.0 * (likelihood.fitted(start, fixed=(0,))[1] - loss)
            step *= float(np.clip(math.sqrt(limit / max(deviance, 1e-3)), 0.2, 4.0))
        ends.append(math.exp(float(theta[0]) + side * min(step, 1.5)))
    return ends[0], ends[1]


def _shown(people: ReachModel) -> ReachModel:
    """Return people without differences too small to be told from none."""
    return ReachModel(
        people.reach,
        0.0 if people.log_sd < ALIKE_SD else people.log_sd,
        0.0 if people.never < NEVER_SHOWN else people.never,
    )


def _smoothed(before: Floats, grid: Floats) -> Floats:
    """Return a kernel density of the distances on a grid, from a histogram of its cells.

    The width is the one under which people are most likely given the others: where a table has
    two heaps, a rule stands in the valley between them, and a wider kernel would fill it.
    """
    edges = np.append(grid - 0.5 * FINE, grid[-1] + 0.5 * FINE)
    counts = np.histogram(before, edges)[0].astype(np.float64)
    widest = max(1.06 * float(before.std()) * len(before) ** -0.2, 2.0 * FINE) / FINE
    found: list[tuple[float, Floats]] = []
    for width in np.geomspace(2.0, widest, WIDTHS):
        reach = math.ceil(4.0 * width)
        kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / width) ** 2)
        kernel /= kernel.sum()
        smooth = np.convolve(np.pad(counts, reach, mode="constant"), kernel, "valid")
        others = smooth - kernel[reach] + 1e-6 * smooth.max()
        found.append((float(counts @ np.log(np.maximum(others, 1e-12))), smooth))
    density: Floats = max(found, key=lambda each: each[0])[1]
    density = density + 1e-6 * density.max()
    density /= density.sum()
    return density
