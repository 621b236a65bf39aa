r"""Two samples without keys: the histogram of scores after, predicted from the one before.

.. math:: p_k(\theta) = \frac1n \sum_i P\bigl(\text{level after in bin } k \mid g_i, \theta\bigr)

Neither sample is the population. Counting :math:`n_1 n_2/(n_1+n_2)` people allows for both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.learning.people_estimation._candidates import Candidate, Noise
from countermove.learning.people_estimation._moves import Movement, reach_of, scale_of
from countermove.learning.people_estimation.observation import Observation

BINS = 40
"""Of levels after, equal in people."""
CELLS = 200
"""Of gaps before: people within one move alike."""
PARTS = 5
"""Of a cell, by difficulty, where bounds make people of one gap move differently."""
AT_BOUNDARY = 1e-3
"""Of the spread: what is this near the boundary stands on it."""
UNBLURRED = 2e-4
"""Of the spread: measurement noise that moves nobody to another bin."""
LIMITS = {"scale": (-30.0, 30.0), "heat": (0.02, 5.0), "share": (-9.0, 4.0), "error": (-9.0, 0.5)}
"""Of log scale, temperature (in spreads), log-odds and log-errors (in spreads) in the search."""
REMEMBERED = 16
"""Solved responses kept: derivatives by the noise ask for the same ones again."""


@dataclass(frozen=True)
class CellMoves:
    """What a model says the people of each cell do."""

    mean: Floats  # advance of those inside
    inside: Floats  # share of each cell that is
    rest: Floats | None = None  # advance of the others; None: they stay
    to_boundary: bool = False  # movers of a cell all end on one point; else keep their distances


class Levels:
    """Levels (minus gaps) before in fine cells, after in bins."""

    def __init__(self, observed: Observation, difficulty: Floats | None = None) -> None:
        self.gap, self.spread = observed.gap, observed.spread
        before, after = -observed.gap, -observed.gap_after
        inner = np.quantile(np.concatenate([before, after]), np.linspace(0, 1, BINS + 1)[1:-1])
        near = AT_BOUNDARY * self.spread
        # People who stop on the boundary get a bin of their own.
        inner = inner[np.abs(inner) > near]
        self.edges = np.unique(np.concatenate([inner, [-near, near]]))
        self.counts = np.bincount(np.searchsorted(self.edges, after), minlength=len(self.edges) + 1)
        self.before = np.bincount(
            np.searchsorted(self.edges, before), minlength=len(self.edges) + 1
        ) / len(before)
        sizes = len(before), len(after)
        self.people = sizes[0] * sizes[1] / (sizes[0] + sizes[1])
        self.shares = self.counts / sizes[1]
        self._cells(difficulty)

    def _cells(self, difficulty: Floats | None) -> None:
        cuts = np.unique(np.quantile(self.gap, np.linspace(0.0, 1.0, CELLS + 1)[1:-1]))
        self.cell = np.searchsorted(cuts, self.gap, side="right")
        if difficulty is not None:
            self.cell = self._parted(difficulty)
        number = np.bincount(self.cell)
        kept = number > 0
        self.cell = (np.cumsum(kept) - 1)[self.cell]
        self.number = number[kept]
        self.middle = self.average(self.gap)
        width = np.sqrt(np.maximum(self.average(self.gap**2) - self.middle**2, 0.0))
        self.width: Floats = np.maximum(width, 1e-9 * self.spread)
        order = np.lexsort((self.gap, self.cell))
        self.typical: NDArray[np.intp] = order[np.cumsum(self.number) - (self.number + 1) // 2]

    def _parted(self, difficulty: Floats) -> NDArray[np.intp]:
        """Return cells divided by the rank of difficulty within them."""
        order = np.lexsort((difficulty, self.cell))
        number = np.bincount(self.cell)
        rank = np.arange(len(order)) - np.repeat(np.cumsum(number) - number, number)
        part = np.empty(len(order), dtype=np.intp)
        part[order] = rank * PARTS // np.repeat(number, number)
        result: NDArray[np.intp] = self.cell * PARTS + part
        return result

    def average(self, values: Floats) -> Floats:
        """Return the mean of people's values by cell."""
        sums: Floats = np.bincount(self.cell, values, minlength=len(self.number)) / self.number
        return sums

    def predicted(self, moves: CellMoves, noise: Noise) -> Floats:
        """Return the shares of the bins if people move so, under noise without strays."""
        mass = self.number / self.number.sum()
        moving = moves.inside * (1.0 - noise.non_movers) * mass
        other = np.zeros(len(mass))
        if moves.rest is not None:
            other = (1.0 - moves.inside) * (1.0 - noise.non_movers) * mass
        staying = mass - moving - other
        shares = self._spread(-self.middle, np.hypot(self.width, noise.measurement), staying)
        if noise.measurement <= UNBLURRED * self.spread:
            # Unblurred, those who stay keep their very histogram but for the movers' part.
            left = self._spread(-self.middle, self.width, moving + other)
            shares = np.maximum(self.before - left, 0.0)
        shares = shares + self._moved(moves.mean, moving, noise, moves.to_boundary)
        if moves.rest is not None:
            shares = shares + self._moved(moves.rest, other, noise, moves.to_boundary)
        result: Floats = np.maximum(shares, 1e-12) / max(float(shares.sum()), 1e-12)
        return result

    def _moved(self, mean: Floats, mass: Floats, noise: Noise, to_boundary: bool) -> Floats:
        own = np.full(len(mean), 1e-9 * self.spread) if to_boundary else self.width
        error = np.sqrt(own**2 + noise.measurement**2 + (noise.optimisation_error * mean) ** 2)
        some = np.flatnonzero(mass > 0.0)
        return self._spread((mean - self.middle)[some], error[some], mass[some])

    def log_likelihood(self, shares: Floats) -> float:
        """Return the log-likelihood of the counts, as of ``people`` people."""
        return self.people * float(self.shares @ np.log(shares))

    def residuals(self, shares: Floats) -> Floats:
        """Return signed roots of the bins' parts of the deviance, shape (bins,)."""
        from scipy.special import xlogy

        parts = xlogy(self.shares, self.shares / shares) - self.shares + shares
        roots: Floats = np.sqrt(2.0 * self.people * np.maximum(parts, 0.0))
        return np.copysign(roots, self.shares - shares)

    def deviance(self, shares: Floats) -> float:
        """Return twice the log-likelihood lost against a perfect fit."""
        return float(np.sum(self.residuals(shares) ** 2))

    def information(self, slopes: Floats, shares: Floats) -> Floats:
        """Return Fisher's information, (p, p), for derivatives of the shares, (p, bins)."""
        result: Floats = self.people * (slopes / shares) @ slopes.T
        return result

    def test(self, shares: Floats, fitted: int) -> tuple[float, float]:
        """Return the p-value of Pearson's test, and the share of people misplaced."""
        from scipy.stats import chi2

        statistic = self.people * float(np.sum((self.shares - shares) ** 2 / shares))
        freedom = max(int(np.sum(shares * self.people > 1.0)) - 1 - fitted, 1)
        return (
            float(chi2.sf(statistic, freedom)),
            0.5 * float(np.abs(self.shares - shares).sum()),
        )

    def _spread(self, centre: Floats, deviation: Floats, mass: Floats) -> Floats:
        from scipy.special import ndtr

        below = ndtr((self.edges[:, None] - centre) / deviation) @ mass
        return np.diff(np.concatenate([[0.0], below, [mass.sum()]]))


class SampleModel:
    """A candidate as a map from free numbers to the shares of the bins."""

    # The free numbers are log scale, log temperature (smooth only), log-odds of non-movers, log
    # optimisation error and log measurement noise in spreads.

    def __init__(self, name: str, levels: Levels, movement: Movement, difficulty: Floats) -> None:
        self.name, self.levels, self.movement, self.difficulty = name, levels, movement, difficulty
        spread = math.log(levels.spread)
        heat = [math.log(value) + spread for value in LIMITS["heat"]]
        own = [LIMITS["scale"], *([tuple(heat)] if name == "smooth" else [])]
        ends = [*own, LIMITS["share"], LIMITS["error"], LIMITS["error"]]
        self.low, self.high = (np.array([pair[side] for pair in ends]) for side in (0, 1))
        self._solved: dict[tuple[float, ...], CellMoves] = {}

    def noise(self, free: Floats) -> Noise:
        """Return the noise part of the free numbers."""
        odds, error, blur = free[-3:].tolist()
        spread = self.levels.spread
        return Noise(1.0 / (1.0 + math.exp(-odds)), math.exp(error), math.exp(blur) * spread)

    def moves(self, free: Floats) -> CellMoves:
        """Return what people of each cell do."""
        key = tuple(free[:-3].tolist())
        if key not in self._solved:
            if len(self._solved) >= REMEMBERED:
                self._solved.pop(next(iter(self._solved)))
            self._solved[key] = self._solve(*np.exp(free[:-3]).tolist())
        return self._solved[key]

    def _solve(self, scale: float, temperature: float = 0.0) -> CellMoves:
        if self.name == "best":
            crosses = (self.difficulty < reach_of(scale)) & (self.difficulty > 0.0)
            inside = self.levels.average(crosses.astype(np.float64))
            return CellMoves(np.maximum(self.levels.middle, 0.0), inside, to_boundary=True)
        mean = self.movement.smooth(scale, temperature)
        everybody = CellMoves(mean, np.ones(len(mean)))
        jump = self.movement.jump(scale, temperature, mean)
        return everybody if jump is None else self._divided(mean, *jump)

    def _divided(self, mean: Floats, gap: float, before: float, after: float) -> CellMoves:
        """Divide the cell in which the response jumps: shares then change as parameters do."""
        inside = self.levels.average((self.levels.gap < gap).astype(np.float64))
        torn = (inside > 0.0) & (inside < 1.0)
        climbs = np.where(torn, inside, 1.0)
        return CellMoves(np.where(torn, before, mean), climbs, np.where(torn, after, mean))

    def shares(self, free: Floats) -> Floats:
        """Return the predicted shares of the bins."""
        return self.levels.predicted(self.moves(free), self.noise(free))

    def badness(self, free: Floats) -> float:
        """Return minus the log-likelihood."""
        return -self.levels.log_likelihood(self.shares(self.clipped(free)))

    def clipped(self, free: Floats) -> Floats:
        """Return the nearest point within the limits."""
        return np.clip(free, self.low, self.high)

    def starts(self) -> list[Floats]:
        """Return a grid of points to start from."""
        within = self.difficulty[(self.difficulty > 0.0) & np.isfinite(self.difficulty)]
        heats = (0.1, 0.3, 0.9) if self.name == "smooth" else (None,)
        shares = (-1.4,) if self.name == "smooth" else (-3.0, -1.0)
        return [
            np.array([*_own(reach, heat, self.levels.spread), odds, -2.5, blur])
            for reach in np.quantile(within, np.linspace(0.05, 0.97, 14)).tolist()
            for heat in heats
            for odds in shares
            for blur in (-6.0, -2.5)
        ]


def _own(reach: float, heat: float | None, spread: float) -> list[float]:
    own = [math.log(scale_of(reach))]
    return own if heat is None else [*own, math.log(heat * spread)]


def nobody_moves(levels: Levels) -> Candidate:
    """Fit the blur of records of people who stay."""
    blurs = np.linspace(-9.0, 0.0, 28)
    tried = [_shifted(levels, 0.0, blur) for blur in blurs]
    return _plain(levels, "none", max(tried, key=levels.log_likelihood), 1)


def everybody_drifts(levels: Levels) -> Candidate:
    """Fit a shift of everybody, blurred."""

    def badness(free: Floats) -> float:
        return -levels.log_likelihood(_shifted(levels, *free.tolist()))

    found = _search(badness, np.array([0.0, -3.0]), 0.3, 80)
    return _plain(levels, "drift", _shifted(levels, *found.tolist()), 2)


def _shifted(levels: Levels, shift: float, blur: float) -> Floats:
    """Return the bins if everybody moved alike and the records were blurred."""
    noise = Noise(measurement=math.exp(min(max(blur, -9.0), 1.0)) * levels.spread)
    everybody = np.ones(len(levels.middle))
    return levels.predicted(CellMoves(shift * everybody, everybody), noise)


def _plain(levels: Levels, name: str, shares: Floats, parameters: int) -> Candidate:
    nobody = np.zeros(0, dtype=bool)
    likelihood = levels.log_likelihood(shares)
    return Candidate(name, likelihood, parameters, Noise(), shares, nobody)


def _search(badness: Callable[[Floats], float], start: Floats, size: float, most: int) -> Floats:
    from scipy.optimize import minimize

    simplex = start + size * np.vstack([np.zeros(len(start)), np.eye(len(start))])
    found = minimize(
        badness,
        start,
        method="Nelder-Mead",
        options={"initial_simplex": simplex, "maxfev": most, "xatol": 1e-4, "fatol": 1e-3},
    )
    result: Floats = found.x
    return result
