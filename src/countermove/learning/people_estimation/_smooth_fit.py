r"""People who climb a smoothed step: scale and temperature together.

A coarse grid finds the region, a simplex search the spot, Fisher scoring the digits; scale and
temperature take turns with the noise. Below :math:`t\tau^2 \approx 0.23` the response jumps, so
derivatives alone are no guide. Intervals are normal in logarithms, from the outer product of
scores; people at the jump are left out, which can only widen them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from countermove._types import Floats, Mask
from countermove.learning.people_estimation._candidates import (
    LEAST_ERROR,
    LEAST_SHARE,
    STEP,
    Advances,
    Candidate,
    Interval,
    Noise,
    fit_noise,
    log_likelihood,
    normal_quantile,
    positive_interval,
    refit_noise,
    share_interval,
    standard_errors,
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
        return _candidate(search, point, noise, float(search.rows(point, noise).sum()))
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
