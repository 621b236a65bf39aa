"""Candidates as maps from free numbers to the histogram of scores after: two samples, no keys."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from countermove._types import Floats
from countermove.learning.people_estimation.candidates import Candidate
from countermove.learning.people_estimation.histogram import Answer, Levels
from countermove.learning.people_estimation.movement import Movement, reach_of, scale_of
from countermove.learning.people_estimation.noise import Noise

LIMITS = {"scale": (-30.0, 30.0), "heat": (0.02, 5.0), "share": (-9.0, 4.0), "error": (-9.0, 0.5)}
"""Of log scale, temperature (in spreads), log-odds and log-errors (in spreads) in the search."""
REMEMBERED = 16
"""Solved responses kept: derivatives by the noise ask for the same ones again."""


class SampleModel:
    """A candidate as a map from free numbers to the shares of the bins.

    The free numbers are log scale, log temperature (``smooth`` only), log-odds of non-movers,
    log optimisation error and log measurement noise in spreads.

    Parameters
    ----------
    name
        ``best`` or ``smooth``.
    levels
        The two histograms.
    movement
        Of the typical person of each cell.
    difficulty
        Of everybody before.
    """

    def __init__(self, name: str, levels: Levels, movement: Movement, difficulty: Floats) -> None:
        self.name, self.levels, self.movement, self.difficulty = name, levels, movement, difficulty
        spread = math.log(levels.spread)
        heat = [math.log(value) + spread for value in LIMITS["heat"]]
        own = [LIMITS["scale"], *([tuple(heat)] if name == "smooth" else [])]
        ends = [*own, LIMITS["share"], LIMITS["error"], LIMITS["error"]]
        self.low, self.high = (np.array([pair[side] for pair in ends]) for side in (0, 1))
        self._solved: dict[tuple[float, ...], Answer] = {}

    def noise(self, free: Floats) -> Noise:
        """Return the noise part of the free numbers."""
        odds, error, blur = free[-3:].tolist()
        spread = self.levels.spread
        return Noise(1.0 / (1.0 + math.exp(-odds)), math.exp(error), math.exp(blur) * spread)

    def answer(self, free: Floats) -> Answer:
        """Return what people of each cell do."""
        key = tuple(free[:-3].tolist())
        if key not in self._solved:
            if len(self._solved) >= REMEMBERED:
                self._solved.pop(next(iter(self._solved)))
            self._solved[key] = self._solve(*np.exp(free[:-3]).tolist())
        return self._solved[key]

    def _solve(self, scale: float, temperature: float = 0.0) -> Answer:
        if self.name == "best":
            crosses = (self.difficulty < reach_of(scale)) & (self.difficulty > 0.0)
            inside = self.levels.average(crosses.astype(np.float64))
            return Answer(np.maximum(self.levels.middle, 0.0), inside, to_boundary=True)
        mean = self.movement.smooth(scale, temperature)
        everybody = Answer(mean, np.ones(len(mean)))
        jump = self.movement.jump(scale, temperature, mean)
        return everybody if jump is None else self._divided(mean, *jump)

    def _divided(self, mean: Floats, gap: float, before: float, after: float) -> Answer:
        """Divide the cell in which the answer jumps: shares then change as parameters do."""
        inside = self.levels.average((self.levels.gap < gap).astype(np.float64))
        torn = (inside > 0.0) & (inside < 1.0)
        climbs = np.where(torn, inside, 1.0)
        return Answer(np.where(torn, before, mean), climbs, np.where(torn, after, mean))

    def shares(self, free: Floats) -> Floats:
        """Return the predicted shares of the bins."""
        return self.levels.predicted(self.answer(free), self.noise(free))

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
    return levels.predicted(Answer(shift * everybody, everybody), noise)


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
