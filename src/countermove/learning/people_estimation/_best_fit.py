r"""Fully rational people: the reach is a change point.

A best responder crosses iff the difficulty is below :math:`\rho = \sqrt{2/t}`. Sorted by
difficulty, people move up to some rank and not beyond: the likelihood is a step function of it.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from countermove._types import Floats, Mask
from countermove.certificates.intervals import lower_share, upper_share
from countermove.learning.people_estimation._candidates import (
    Candidate,
    Interval,
    share_interval,
    standard_errors,
)
from countermove.learning.people_estimation._movement import Movement, scale_of
from countermove.learning.people_estimation._noise import (
    LEAST_SHARE,
    Advances,
    Noise,
    fit_noise,
    likelihoods,
    log_likelihood,
    refit_noise,
)

ROUNDS = 8
"""Reach and noise are fitted in turn; the reach seldom changes after the second round."""
EXACT = 1e-6
"""Crossings that end within this share of the boundary are on it."""


def fit_best(seen: Advances, movement: Movement, start: Noise, level: float) -> Candidate:
    """Fit scale and noise of best responders."""
    difficulty, mean = movement.difficulty(), np.maximum(movement.gap, 0.0)
    noise, rank, steps = start, -1, _Steps(difficulty)
    for _ in range(ROUNDS):
        curve = steps.curve(*likelihoods(seen, mean, noise))
        best = steps.middle(curve)
        if best == rank:
            break
        rank = best
        noise, _ = fit_noise(seen, mean, steps.inside(rank), noise)
    inside = steps.inside(rank)
    noise, _ = refit_noise(seen, mean, inside, noise)
    curve = steps.curve(*likelihoods(seen, mean, noise))
    rows = log_likelihood(seen, mean, inside, noise)
    # With known noise, moving the rank away from the truth multiplies the likelihood by a
    # non-negative martingale of mean one, on either side, so by Ville's inequality
    # P(sup l(reach) - l(true reach) >= log(2/alpha)) <= alpha at any sample size. The noise is
    # fitted, from many more people than decide the rank.
    interval = steps.interval(curve, math.log(2.0 / (1.0 - level)))
    if _noiseless(seen, mean, inside):
        interval = replace(interval, **steps.bracket(rank), kind="bracket")
    errors = standard_errors(seen, lambda free, at: log_likelihood(seen, mean, inside, at), noise)
    z = normal_quantile(level)
    return Candidate(
        name="best",
        log_likelihood=float(rows.sum()),
        parameters=4 if seen.exact else 5,
        noise=noise,
        mean=np.where(inside, mean, 0.0),
        inside=inside,
        scale=scale_of(steps.reach(rank)),
        scale_interval=interval,
        non_movers_interval=_non_movers(seen, inside, noise, errors[0], z, 1.0 - level),
    )


def normal_quantile(level: float) -> float:
    """Return z with P(|Z| <= z) = level."""
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 2.0))


class _Steps:
    """The likelihood as a function of how many of the refused, by difficulty, are in reach."""

    def __init__(self, difficulty: Floats) -> None:
        refused = np.flatnonzero((difficulty > 0.0) & np.isfinite(difficulty))
        self.order = refused[np.argsort(difficulty[refused], kind="stable")]
        self.sorted = difficulty[self.order]
        self.n = len(difficulty)
        # A reach lies between two different difficulties: ties move together.
        bounds = np.concatenate([[0.0], self.sorted, [np.inf]])
        self.possible: Mask = bounds[1:] > bounds[:-1]
        self.bounds = bounds

    def curve(self, moving: Floats, staying: Floats) -> Floats:
        """Return the log-likelihood by rank, up to a constant, minus infinity between ties."""
        gains = np.log(moving[self.order]) - np.log(staying[self.order])
        total = np.concatenate([[0.0], np.cumsum(gains)])
        result: Floats = np.where(self.possible, total, -np.inf)
        return result

    def middle(self, curve: Floats) -> int:
        """Return the likeliest rank (the first of equals)."""
        return int(np.argmax(curve))

    def inside(self, rank: int) -> Mask:
        """Return who is in reach."""
        mask = np.zeros(self.n, dtype=bool)
        mask[self.order[:rank]] = True
        return mask

    def reach(self, rank: int) -> float:
        """Return the reach of a rank: half way between the last in and the first out."""
        low, high = self.bounds[rank], self.bounds[rank + 1]
        return float(0.5 * (low + high)) if math.isfinite(high) else float(low)

    def interval(self, curve: Floats, drop: float) -> Interval:
        """Return the scales whose likelihood is within ``drop`` of the highest."""
        kept = np.flatnonzero(curve >= curve.max() - drop)
        nearest, farthest = self.bounds[kept[0]], self.bounds[kept[-1] + 1]
        return Interval(scale_of(farthest), scale_of(nearest), "likelihood")

    def bracket(self, rank: int) -> dict[str, float]:
        """Return the scales between the hardest crossing made and the easiest not made."""
        return {"low": scale_of(self.bounds[rank + 1]), "high": scale_of(self.bounds[rank])}


def _noiseless(seen: Advances, mean: Floats, inside: Mask) -> bool:
    """Return whether exactly those in reach moved, and exactly to the boundary."""
    if not seen.exact or not inside.any():
        return False
    short = np.abs(seen.values - mean)[inside]
    on_it = bool((short <= EXACT * (seen.spread + mean[inside])).all())
    return on_it and bool((seen.still == ~inside).all())


def _non_movers(
    seen: Advances, inside: Mask, noise: Noise, deviation: float, z: float, alpha: float
) -> Interval:
    """Return the interval of the share of non-movers; exact (Clopper-Pearson) where seen."""
    if not seen.exact:
        if noise.non_movers <= 2.0 * LEAST_SHARE:
            return Interval(0.0, 1.0 - alpha ** (1.0 / max(int(inside.sum()), 1)))
        return share_interval(noise.non_movers, deviation, z)
    n, stayed = int(inside.sum()), int((seen.still & inside).sum())
    low, high = lower_share(stayed, n, alpha / 2), upper_share(stayed, n, alpha / 2)
    return Interval(float(low), float(high), "exact")
