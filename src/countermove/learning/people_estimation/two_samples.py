"""Estimating the people from two samples without keys.

The scores after are matched with what each candidate would make of the scores before. Who moved
is not seen: a hole below the boundary, its depth and its far edge have to tell everything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countermove.learning.people_estimation.assembly import assembled, chosen_shape
from countermove.learning.people_estimation.best_fit import normal_quantile
from countermove.learning.people_estimation.candidates import (
    Candidate,
    Interval,
    positive_interval,
    share_interval,
)
from countermove.learning.people_estimation.direction import mean_shift
from countermove.learning.people_estimation.goodness import Fit
from countermove.learning.people_estimation.histogram import Levels
from countermove.learning.people_estimation.identify import not_identified, nothing_to_learn
from countermove.learning.people_estimation.movement import Movement, reach_of, scale_of
from countermove.learning.people_estimation.noise import Noise
from countermove.learning.people_estimation.observed import Observation
from countermove.learning.people_estimation.result import PeopleEstimate, WeightEstimate
from countermove.learning.people_estimation.weights import weight_estimates

Floats = NDArray[np.float64]

STEP = 0.02
"""Of derivatives in logarithms: wider than the gap between two people."""
SHARES = (-9.0, -2.2, -1.4, -0.85, -0.4)
"""Log-odds of non-movers at which the ridge is probed: 0, 10, 20, 30 and 40 %."""
LIMITS = {"scale": (-30.0, 30.0), "heat": (0.02, 5.0), "share": (-9.0, 4.0), "error": (-9.0, 0.5)}
"""Of log scale, temperature (in spreads), log-odds and log-errors (in spreads) in the search."""


@dataclass(frozen=True)
class _Model:
    """A candidate as a map from free numbers to the shares of the bins."""

    name: str
    levels: Levels
    movement: Movement
    difficulty: Floats

    def noise(self, free: Floats) -> Noise:
        odds, error, blur = free[-3:].tolist()
        spread = self.levels.spread
        return Noise(1.0 / (1.0 + math.exp(-odds)), math.exp(error), math.exp(blur) * spread)

    def advances(self, free: Floats) -> tuple[Floats, Floats]:
        """Return model advance and share of movers, per cell."""
        if self.name == "best":
            crosses = (self.difficulty < reach_of(math.exp(free[0]))) & (self.difficulty > 0.0)
            return np.maximum(self.levels.middle, 0.0), self.levels.average(crosses.astype(float))
        mean = self.movement.smooth(math.exp(free[0]), math.exp(free[1]))
        # Without bounds people of one cell move alike: one of them stands for all.
        by_cell = mean if self.movement.free else self.levels.average(mean)
        return by_cell, np.ones(len(self.levels.middle))

    def shares(self, free: Floats) -> Floats:
        mean, inside = self.advances(free)
        return self.levels.predicted(mean, inside, self.noise(free), self.name == "best")

    def badness(self, free: Floats) -> float:
        return -self.levels.log_likelihood(self.shares(self.clipped(free)))

    def clipped(self, free: Floats) -> Floats:
        spread = math.log(self.levels.spread)
        scale, heat = LIMITS["scale"], [math.log(v) + spread for v in LIMITS["heat"]]
        low = [scale[0], *([heat[0]] if self.name == "smooth" else [])]
        high = [scale[1], *([heat[1]] if self.name == "smooth" else [])]
        share, error = LIMITS["share"], LIMITS["error"]
        return np.clip(
            free,
            [*low, share[0], error[0], error[0]],
            [*high, share[1], error[1], error[1]],
        )


def estimate_from_samples(
    observed: Observation, cost: str, level: float, scales: Floats | None
) -> PeopleEstimate:
    """Estimate from two samples; see `estimate_people`."""
    levels, direction = Levels(observed), mean_shift(observed)
    shape = chosen_shape(observed, direction, cost)
    movement = Movement(observed, shape)
    if cost == "auto" and not movement.free:
        # Near a bound people leave the line, and a difference of means cannot leave them out.
        shape, movement = None, Movement(observed)
    difficulty = movement.difficulty()
    blocked = nothing_to_learn(observed, difficulty)
    fitted = [_none(levels), _drift(levels)]
    if not blocked:
        typical = Movement(observed, shape, levels.typical) if movement.free else movement
        models = [_Model(name, levels, typical, difficulty) for name in ("best", "smooth")]
        fitted += [_fit(model, level) for model in models]
    ranked = sorted(fitted, key=lambda model: model.criterion(levels.people))
    chosen = ranked[0]
    p_value, misplaced = levels.test(chosen.mean, chosen.parameters)
    fit = Fit(p_value, misplaced, _worst(levels, chosen.mean), levels.counts[None, :])
    weights: tuple[WeightEstimate, ...] = ()
    if shape is not None:
        z = normal_quantile(level)
        weights = weight_estimates(observed, direction, shape, chosen, scales, z)
    return assembled(
        observed,
        ranked,
        movement,
        blocked or _open(chosen, difficulty, level),
        _drifted(observed),
        fit,
        weights,
        level,
        _picture(levels, chosen.mean),
        levels.people,
    )


def _shifted(levels: Levels, shift: float, blur: float) -> Floats:
    """Return the bins if everybody moved alike and the records were blurred."""
    noise = Noise(measurement=math.exp(min(max(blur, -9.0), 1.0)) * levels.spread)
    everybody = np.ones(len(levels.middle))
    return levels.predicted(shift * everybody, everybody, noise, to_boundary=False)


def _plain(levels: Levels, name: str, shares: Floats, parameters: int) -> Candidate:
    nobody = np.zeros(0, dtype=bool)
    likelihood = levels.log_likelihood(shares)
    return Candidate(name, likelihood, parameters, Noise(), shares, nobody)


def _none(levels: Levels) -> Candidate:
    """Fit the blur of records of people who stay."""
    blurs = np.linspace(-9.0, 0.0, 28)
    tried = [_shifted(levels, 0.0, blur) for blur in blurs]
    return _plain(levels, "none", max(tried, key=levels.log_likelihood), 1)


def _drift(levels: Levels) -> Candidate:
    """Fit a shift of everybody, blurred."""

    def badness(free: Floats) -> float:
        return -levels.log_likelihood(_shifted(levels, *free.tolist()))

    found = _search(badness, np.array([0.0, -3.0]), 0.3, 80)
    return _plain(levels, "drift", _shifted(levels, *found.tolist()), 2)


def _fit(model: _Model, level: float) -> Candidate:
    """Fit scale (and temperature) and noise by grid and simplex; intervals from information."""
    free = _best_start(model)
    for size, most in ((0.3, 40), (0.05, 30)):
        free = model.clipped(_search(model.badness, free, size, most * len(free)))
    z, errors = normal_quantile(level), _errors(model, free, range(len(free)))
    scale, noise = math.exp(free[0]), model.noise(free)
    heat, heats = None, None
    deviation = math.hypot(float(errors[0]), 2.0 * _resolution(model, reach_of(scale)))
    interval = positive_interval(scale, deviation, z)
    if model.name == "smooth":
        heat = math.exp(free[1])
        heats = positive_interval(heat, float(errors[1]), z)
        interval, heats = _whatever_the_share(model, free, z, (interval, heats))
    elif math.isinf(errors[0]):
        interval = Interval(0.0, scale_of(_farthest(model.difficulty)))
    share = min(max(noise.non_movers, 1e-9), 1 - 1e-9)
    shares = model.shares(free)
    return Candidate(
        name=model.name,
        log_likelihood=model.levels.log_likelihood(shares),
        parameters=len(free),
        noise=noise,
        mean=shares,
        inside=np.zeros(0, dtype=bool),
        scale=scale,
        temperature=heat,
        scale_interval=interval,
        temperature_interval=heats,
        non_movers_interval=share_interval(share, min(float(errors[-3]), 50.0), z),
    )


def _resolution(model: _Model, reach: float) -> float:
    """Return the deviation of an edge within its bin, relative to the reach."""
    edges = model.levels.edges
    k = int(np.clip(np.searchsorted(edges, -reach), 1, len(edges) - 1))
    return float(edges[k] - edges[k - 1]) / (math.sqrt(12.0) * reach)


def _errors(model: _Model, free: Floats, among: Iterable[int]) -> Floats:
    """Return standard errors of the free numbers in ``among``, the others held."""
    chosen, shares = list(among), model.shares(free)
    slopes = np.array([_slope(model, free, j) for j in chosen])
    live = np.flatnonzero(np.abs(slopes).sum(axis=1) > 1e-9)
    errors = np.full(len(free), np.inf)
    if live.size:
        information = model.levels.information(slopes[live], shares)
        variance = np.diag(np.linalg.pinv(information, hermitian=True))
        errors[np.array(chosen)[live]] = np.sqrt(np.maximum(variance, 0.0))
    return errors


def _whatever_the_share(
    model: _Model, free: Floats, z: float, ends: tuple[Interval, Interval]
) -> tuple[Interval, Interval]:
    """Widen the intervals by every share of non-movers that fits about as well.

    Fewer people who climb far and more who climb less look much alike: the likelihood has a
    ridge, along which the curvature at its top says little.
    """
    place, top = len(free) - 3, model.badness(free)
    others = [j for j in range(len(free)) if j != place]
    for odds in SHARES:
        start = free.copy()
        start[place] = odds

        def held(part: Floats, start: Floats = start) -> float:
            point = start.copy()
            point[others] = part
            return model.badness(point)

        found = start.copy()
        found[others] = _search(held, start[others], 0.15, 35 * len(others))
        found = model.clipped(found)
        if model.badness(found) > top + 0.5 * z**2:
            continue
        errors = _errors(model, found, others)
        tried = [positive_interval(math.exp(found[j]), float(errors[j]), z) for j in (0, 1)]
        ends = (_hull(ends[0], tried[0]), _hull(ends[1], tried[1]))
    return ends


def _hull(first: Interval, second: Interval) -> Interval:
    return Interval(min(first.low, second.low), max(first.high, second.high), first.kind)


def _best_start(model: _Model) -> Floats:
    reaches = np.quantile(model.difficulty[_refused(model.difficulty)], np.linspace(0.05, 0.97, 14))
    starts = []
    for reach in reaches:
        for odds in (-3.0, -1.0):
            for blur in (-6.0, -2.5):
                noise = [odds, -2.5, blur]
                if model.name == "best":
                    starts.append(np.array([math.log(scale_of(reach)), *noise]))
                    continue
                for heat in (0.1, 0.3, 0.9):
                    point = [math.log(scale_of(reach)), math.log(heat * model.levels.spread)]
                    starts.append(np.array([*point, *noise]))
    if model.name == "smooth":
        starts = starts[::2]
    return min(starts, key=model.badness)


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


def _slope(model: _Model, free: Floats, j: int) -> Floats:
    step = np.zeros(len(free))
    step[j] = STEP
    return (model.shares(free + step) - model.shares(free - step)) / (2.0 * STEP)


def _refused(difficulty: Floats) -> NDArray[np.bool_]:
    return (difficulty > 0.0) & np.isfinite(difficulty)


def _farthest(difficulty: Floats) -> float:
    return float(difficulty[_refused(difficulty)].max())


def _open(chosen: Candidate, difficulty: Floats, level: float) -> tuple[str, ...]:
    """Return why two samples leave the cost open."""
    reasons = not_identified(chosen, difficulty, 1.0 - level)
    if reasons and chosen.name in ("best", "smooth"):
        return (
            *reasons,
            "two samples only cannot tell people who do not move from a high cost here; match "
            "people by key",
        )
    return reasons


def _drifted(observed: Observation) -> tuple[str, ...]:
    """Return a warning where features that cannot change differ between the samples."""
    from scipy.special import ndtr

    fixed = np.flatnonzero(~observed.movable)
    names = []
    for j in fixed:
        first, second = observed.X[:, j], observed.X_after[:, j]
        error = math.sqrt(first.var() / len(first) + second.var() / len(second))
        apart = abs(float(second.mean() - first.mean()))
        if apart > 0.0 and (error == 0.0 or 2.0 * ndtr(-apart / error) < 1e-3 / len(fixed)):
            names.append(observed.names[j])
    if not names:
        return ()
    return (
        f"Features that cannot change differ between the samples ({', '.join(names)}): other "
        "people, not the same people moved. The estimate takes the samples as one population.",
    )


def _worst(levels: Levels, shares: Floats) -> tuple[float, float]:
    """Return the gaps of the bin that fits worst."""
    k = int(np.argmax((levels.shares - shares) ** 2 / shares))
    ends = np.concatenate([[-levels.gap.max()], levels.edges, [-levels.gap.min()]])
    return -float(ends[k + 1]), -float(ends[k])


def _picture(levels: Levels, shares: Floats) -> dict[str, Any]:
    ends = np.concatenate([[-levels.gap.max()], levels.edges, [-levels.gap.min()]])
    return {
        "kind": "samples",
        "edges": ends.tolist(),
        "before": levels.before.tolist(),
        "after": levels.shares.tolist(),
        "model": shares.tolist(),
    }
