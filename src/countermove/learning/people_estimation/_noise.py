r"""Why people are not exactly where a model puts them: four named kinds of noise.

With model advance :math:`m` a person is seen to advance by
- :math:`m(1 + \sigma_o \varepsilon) + \sigma_m \varepsilon'`, who moves, with optimisation error;
- :math:`\sigma_m \varepsilon'` with probability :math:`\pi`: non-movers;
- anything, with a small probability: strays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.response.action_plan import ActionPlan, slope_of
from countermove.response.base import Response
from countermove.scores import Score

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
        non_movers=_expit(values[0]),
        optimisation_error=math.exp(values[1]),
        measurement=0.0 if seen.exact else math.exp(values[2]) * seen.spread,
        strays=_expit(values[-1]),
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


def _expit(odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-odds))


def simulate_deployment(
    rule: Score, X: Floats, response: Response, noise: Noise | None = None, seed: int = 0
) -> Floats:
    """Return where people are seen after they have responded to a rule.

    Parameters
    ----------
    rule
        The published score.
    X
        People before, shape (n, d), standardised units.
    response
        How they respond to it.
    noise
        What blurs the picture, as `Noise` names it: the optimisation error scales a
        person's whole move; measurement noise is added to every feature of the record
        after, so that it has the stated deviation along the rule; strays draw a move
        of the size of the gaps' spread along the rule.
    seed
        Of the noise.
    """
    from countermove.randomness import generator

    noise = Noise() if noise is None else noise
    rng = generator(seed, "simulated deployment")
    n, d = X.shape
    action = response.respond(rule, X).x_new - X
    errors = noise.optimisation_error * rng.standard_normal((n, 1))
    action = action * (1.0 + errors)
    action[rng.random(n) < noise.non_movers] = 0.0
    plan = ActionPlan(response.actions, d)
    weight = slope_of(rule).detach().numpy()
    along = plan.usable(weight) / np.linalg.norm(plan.usable(weight))
    with torch.no_grad():
        gaps = rule(torch.from_numpy(X)).numpy() / np.linalg.norm(plan.usable(weight))
    stray = np.flatnonzero(rng.random(n) < noise.strays)
    action[stray] = rng.standard_normal((len(stray), 1)) * gaps.std() * along
    # The record blurs movable features alike; along the rule that is the stated deviation.
    moving = weight * plan.ones
    blur = noise.measurement * np.linalg.norm(plan.usable(weight)) / np.linalg.norm(moving)
    record: Floats = X + action + blur * rng.standard_normal((n, d))
    return record
