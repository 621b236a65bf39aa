r"""People who climb a smoothed step: scale and temperature together.

With model advance :math:`m` a person advances by :math:`m(1+\sigma_o\varepsilon) + \sigma_m
\varepsilon'`; or by :math:`\sigma_m\varepsilon'`, a share :math:`\pi`; or by anything (strays).
A coarse grid finds the region, a simplex search the spot, Fisher scoring the digits. Below
:math:`t\tau^2 \approx 0.23` the response jumps; people at the jump are left out of intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.learning.people_estimation._candidates import (
    LEAST_ERROR,
    LEAST_SHARE,
    Advances,
    Candidate,
    Interval,
    Noise,
    expit,
    normal_quantile,
    positive_interval,
    share_interval,
)
from countermove.learning.people_estimation._moves import Movement, scale_of
from countermove.learning.people_estimation.observation import Observation

REACHES = (0.1, 0.2, 0.35, 0.6, 1.0, 1.6, 2.5, 4.0)
TEMPERATURES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""The grid, in standard deviations of the gaps."""
COLDEST = 5e-3
"""Temperature, likewise, below which a smoothed step cannot be distinguished from a hard one."""
SKETCH = 400
"""People who decide on the region."""
STARTS = 2
"""Grid points from which the search continues."""
TURNS = 6
"""Of scoring and noise at the end."""
SETTLED = 1e-3
"""Log-likelihood gained by a turn below which the fit has settled."""
HOPELESS = 300.0
"""Log-likelihood by which a region must be behind a rival for its digits not to matter."""
OUT_OF_SIGHT = 1.5
"""The same per person, judged by a coarse grid."""
QUIET = 3e-3
"""Noise, as a share, below which scale and temperature are solved for rather than estimated."""
LEAST_DEVIATION = 5e-6
"""Of the logarithms, whatever the information says: people are solved for to about that."""
LEAP = 0.02
"""Of the spread: whose advance changes by more within one STEP stands at the jump."""


STEP = 1e-4
"""Of the central differences, in logarithms and log-odds."""
DEAD = 1e-8
"""Information per person below this says nothing: the parameter sits on its floor."""


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


def fit_smooth(
    observed: Observation,
    seen: Advances,
    weights: Floats | None,
    start: Noise,
    level: float,
    rival: float = -np.inf,
) -> Candidate:
    """Fit scale, temperature and noise of people who climb a smoothed step."""
    rows = np.linspace(0, len(seen.values) - 1, min(SKETCH, len(seen.values))).astype(np.intp)
    sketch = _Search(Movement(observed, weights, rows), seen.of_rows(rows), observed.spread)
    search = _Search(Movement(observed, weights), seen, observed.spread)
    # A model far behind its rival is not refined.
    (point,) = _promising(sketch, start, REACHES[::2], TEMPERATURES[::2], 1)
    noise, value = fit_noise(sketch.seen, sketch.mean(point, False), sketch.everybody, start)
    if value / len(rows) < rival / len(seen.values) - OUT_OF_SIGHT:
        return _candidate(search, point, noise, value / len(rows) * len(seen.values))
    promising = _promising(sketch, start, REACHES, TEMPERATURES, STARTS)
    found = [sketch.climb(point, start, size=0.3) for point in promising]
    point, noise, value = max(found, key=lambda fit: fit[2])
    if value / len(rows) * len(seen.values) < rival - HOPELESS:
        # By the sketch; everybody together may see it otherwise.
        value = float(search.rows(point, noise).sum())
        if value < rival - HOPELESS:
            return _candidate(search, point, noise, value)
    point, noise, _ = search.climb(point, noise, size=0.05)
    point, noise, value = search.settle(point, noise)
    return _with_intervals(search, point, _candidate(search, point, noise, value), level)


class _Search:
    """Likelihood of people as a function of log scale, log temperature and noise."""

    def __init__(self, movement: Movement, seen: Advances, spread: float) -> None:
        self.movement, self.seen = movement, seen
        self.everybody: Mask = np.ones(len(seen.values), dtype=bool)
        self.low = np.array([-30.0, np.log(COLDEST * spread)])
        self.spread = spread

    def mean(self, point: Floats, exact: bool = True) -> Floats:
        """Return the model advances at a point."""
        scale, temperature = np.exp(np.clip(point, self.low, 30.0)).tolist()
        return self.movement.smooth(scale, temperature, exact)

    def rows(self, point: Floats, noise: Noise, exact: bool = True) -> Floats:
        """Return the log-likelihoods of people."""
        return log_likelihood(self.seen, self.mean(point, exact), self.everybody, noise)

    def climb(self, point: Floats, noise: Noise, size: float) -> tuple[Floats, Noise, float]:
        """Fit the noise, search the neighbourhood by simplex, fit the noise again."""
        from scipy.optimize import minimize

        noise, _ = fit_noise(self.seen, self.mean(point, False), self.everybody, noise)
        found = minimize(
            lambda free: -float(self.rows(free, noise, exact=False).sum()),
            point,
            method="Nelder-Mead",
            options={
                "initial_simplex": point + size * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]),
                "xatol": 1e-4,
                "fatol": 1e-3,
                "maxfev": 45,
            },
        )
        best = np.clip(found.x, self.low, 30.0)
        noise, value = fit_noise(self.seen, self.mean(best, False), self.everybody, noise)
        return best, noise, value

    def settle(self, point: Floats, noise: Noise) -> tuple[Floats, Noise, float]:
        """Take turns of Fisher scoring and noise until neither gains."""
        noise, value = fit_noise(self.seen, self.mean(point), self.everybody, noise)
        for _ in range(TURNS):
            point = self.score_step(point, noise)
            noise, better = fit_noise(self.seen, self.mean(point), self.everybody, noise)
            gained, value = better - value, better
            if gained < SETTLED:
                break
        noise, value = refit_noise(self.seen, self.mean(point), self.everybody, noise)
        quiet = max(noise.optimisation_error, noise.measurement / self.spread) < QUIET
        return self.solve(point, noise) if quiet else (point, noise, value)

    def solve(self, point: Floats, noise: Noise) -> tuple[Floats, Noise, float]:
        """Solve for people without noise: least squares that strays cannot sway."""
        from scipy.optimize import least_squares

        moved = np.flatnonzero(~self.seen.still) if self.seen.exact else self.everybody
        found = least_squares(
            lambda free: (self.mean(free) - self.seen.values)[moved] / self.spread,
            point,
            loss="soft_l1",
            f_scale=QUIET,
            x_scale="jac",
            xtol=1e-12,
            ftol=1e-14,
            max_nfev=30,
        )
        point = np.clip(found.x, self.low, 30.0)
        calm = replace(noise, optimisation_error=LEAST_ERROR, strays=LEAST_SHARE)
        fits = [
            fit_noise(self.seen, self.mean(point), self.everybody, start) for start in (calm, noise)
        ]
        return (point, *max(fits, key=lambda fit: fit[1]))

    def score_step(self, point: Floats, noise: Noise) -> Floats:
        """Return the best of a full, a half and a tenth of a scoring step, and of none."""
        slopes, at_jump = self.derivatives(point, noise)
        slopes = slopes[~at_jump]
        step = np.linalg.pinv(slopes.T @ slopes, hermitian=True) @ slopes.sum(axis=0)
        step *= min(1.0, 0.5 / max(float(np.abs(step).max()), 1e-300))
        tried = [point + share * step for share in (0.0, 1.0, 0.3)]
        values = [float(self.rows(at, noise).sum()) for at in tried]
        best: Floats = np.clip(tried[int(np.argmax(values))], self.low, 30.0)
        return best

    def derivatives(self, point: Floats, noise: Noise) -> tuple[Floats, Mask]:
        """Return people's derivatives of the log-likelihood, (n, 2), and who is at the jump."""
        slopes, at_jump = np.empty((len(self.everybody), 2)), ~self.everybody
        for j, step in enumerate(STEP * np.eye(2)):
            after, before = self.mean(point + step), self.mean(point - step)
            at_jump |= np.abs(after - before) > LEAP * self.spread
            ends = [
                log_likelihood(self.seen, mean, self.everybody, noise) for mean in (after, before)
            ]
            slopes[:, j] = (ends[0] - ends[1]) / (2.0 * STEP)
        return slopes, at_jump


def _promising(
    search: _Search,
    noise: Noise,
    reaches: tuple[float, ...],
    temperatures: tuple[float, ...],
    count: int,
) -> list[Floats]:
    """Return the likeliest grid points."""
    grid = [
        np.log([scale_of(reach * search.spread), temperature * search.spread])
        for reach in reaches
        for temperature in temperatures
    ]
    values = [float(search.rows(point, noise, exact=False).sum()) for point in grid]
    return [grid[k] for k in np.argsort(values)[::-1][:count]]


def _candidate(search: _Search, point: Floats, noise: Noise, likelihood: float) -> Candidate:
    scale, temperature = np.exp(point).tolist()
    return Candidate(
        name="smooth",
        log_likelihood=likelihood,
        parameters=5 if search.seen.exact else 6,
        noise=noise,
        mean=search.mean(point, exact=False),
        inside=search.everybody,
        scale=scale,
        temperature=temperature,
    )


def _with_intervals(
    search: _Search, point: Floats, candidate: Candidate, level: float
) -> Candidate:
    seen, noise, z = search.seen, candidate.noise, normal_quantile(level)
    _, at_jump = search.derivatives(point, noise)
    errors = standard_errors(seen, search.rows, noise, point, valid=~at_jump)
    errors = np.maximum(errors, LEAST_DEVIATION)
    scale, temperature = np.exp(point).tolist()
    stays = Interval(0.0, 1.0 - (1.0 - level) ** (1.0 / len(seen.values)))
    if noise.non_movers > 2.0 * LEAST_SHARE:
        stays = share_interval(noise.non_movers, float(errors[2]), z)
    return replace(
        candidate,
        mean=search.mean(point),
        scale_interval=positive_interval(scale, float(errors[0]), z),
        temperature_interval=positive_interval(temperature, float(errors[1]), z),
        non_movers_interval=stays,
        at_level=partial(_with_intervals, search, point, candidate),
    )
