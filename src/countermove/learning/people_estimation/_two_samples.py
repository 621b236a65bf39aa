r"""Estimating the people from two samples without keys.

The scores after are matched with what each candidate would make of the scores before. A value
belongs to an interval iff the best fit with that value held is not rejected against the best fit,

.. math:: D(v) = 2\,[\max_\theta \ell(\theta) - \max_{\theta:\ \theta_j = v} \ell(\theta)]
          \le \chi^2_{2, 1-\alpha} .
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from countermove._types import Floats
from countermove.learning.people_estimation._candidates import (
    Candidate,
    Interval,
    expit,
    exponential,
    normal_quantile,
)
from countermove.learning.people_estimation._fit_tests import GoodnessOfFit
from countermove.learning.people_estimation._moves import (
    Movement,
    WeightEstimate,
    chosen_shape,
    mean_shift,
    weight_estimates,
)
from countermove.learning.people_estimation._report import not_identified, nothing_to_learn
from countermove.learning.people_estimation._sample_models import (
    Levels,
    SampleModel,
    everybody_drifts,
    nobody_moves,
)
from countermove.learning.people_estimation.observation import Observation
from countermove.learning.people_estimation.result import PeopleEstimate, assemble

STEP = 0.02
"""Of derivatives in logarithms: wider than the gap between two people."""
LIFTED = -3.5
"""Log-error a fit starts from at least: an error near zero has no slope by which to leave it."""
STARTS = 3
"""Grid points from which the search continues."""
PATIENCE = 20
"""Steps of one least-squares fit."""
AHEAD = (1.0, 2.0, 3.0, 4.0, 6.0, 9.0, 13.0, 19.0, 28.0, 42.0, 63.0, 95.0)
"""Where a profile is looked at, in half standard errors from the fit."""
BEYOND = 4.0
"""A profile this much above the limit is not expected to come down again."""
SLACK = 0.3
"""Deviance by which a fit with one number held may miss its best, added to the limit."""
FARTHEST = math.log(20.0)
"""Distance from the fit, in logarithms, at which an interval counts as open."""
WAVES = 12
"""Cosines over the share of people: the shortest is about as long as three bins."""
INDEPENDENT = 1e-2
"""Of the largest singular value: what fitting explains of a wave beyond this is left out."""


def estimate_from_samples(
    observed: Observation, cost: str, level: float, scales: Floats | None
) -> PeopleEstimate:
    """Estimate from two samples; see `estimate_people`."""
    direction = mean_shift(observed)
    shape = chosen_shape(observed, direction, cost)
    movement = Movement(observed, shape)
    if cost == "auto" and not movement.free:
        # Near a bound people leave the line, and a difference of means cannot leave them out.
        shape, movement = None, Movement(observed)
    difficulty = movement.difficulty()
    levels = Levels(observed, None if movement.free else difficulty)
    blocked = nothing_to_learn(observed, difficulty)
    z, typical = normal_quantile(level), Movement(observed, shape, levels.typical)
    models = (
        []
        if blocked
        else [SampleModel(name, levels, typical, difficulty) for name in ("best", "smooth")]
    )
    ranked, fit = _judged(levels, models, level)
    chosen = ranked[0]
    weights: tuple[WeightEstimate, ...] = ()
    if shape is not None:
        weights = weight_estimates(observed, direction, shape, chosen, scales, z)
    return assemble(
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


def _judged(
    levels: Levels, models: list[SampleModel], level: float
) -> tuple[list[Candidate], GoodnessOfFit]:
    """Return the fitted candidates, best first, and the test of the best; only it has intervals."""
    fits = [(model, *fit_samples(model)) for model in models]
    ranked = [nobody_moves(levels), everybody_drifts(levels), *(fit[1] for fit in fits)]
    ranked.sort(key=lambda candidate: candidate.criterion(levels.people))
    p_value, misplaced = levels.test(ranked[0].mean, ranked[0].parameters)
    for model, candidate, free in fits:
        if candidate is ranked[0]:
            ranked[0] = with_intervals(candidate, model, free, level)
            # Two tests of one fit: Bonferroni.
            p_value = min(1.0, 2.0 * min(p_value, wave_test(model, free)))
    worst = _worst(levels, ranked[0].mean)
    return ranked, GoodnessOfFit(p_value, misplaced, worst, levels.counts[None, :])


def _open(chosen: Candidate, difficulty: Floats, level: float) -> tuple[str, ...]:
    """Return why two samples leave the cost open."""
    reasons = not_identified(chosen, difficulty, 1.0 - level)
    if reasons and chosen.name in ("best", "smooth"):
        return (
            *reasons,
            "two samples cannot distinguish people who do not move from a high cost here; match "
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


@dataclass
class _Path:
    """A profile of the deviance along one free number, followed from the fit outwards."""

    model: SampleModel
    place: int
    at: list[float] = field(default_factory=list)
    deviance: list[float] = field(default_factory=list)

    def follow(self, start: Floats, step: float, limit: float) -> None:
        """Follow one side until the profile has clearly left the limit above ``start``."""
        free, low, high = start, self.model.low[self.place], self.model.high[self.place]
        floor = min(self.deviance)
        for ahead in AHEAD:
            value = float(np.clip(start[self.place] + ahead * step, low, high))
            free = free.copy()
            free[self.place] = value
            free, deviance = least_deviance(self.model, free, self.place)
            self.at.append(value)
            self.deviance.append(deviance)
            floor = min(floor, deviance)
            far = abs(value - start[self.place]) > FARTHEST or value in (low, high)
            if far or deviance > floor + limit + BEYOND:
                return

    def ends(self, limit: float) -> tuple[float, float]:
        """Return the outermost values within the limit, infinite where it is never left."""
        order = np.argsort(self.at, kind="stable")
        at, excess = np.array(self.at)[order], np.array(self.deviance)[order]
        # The root of the profile is close to linear: interpolation on it is exact for a parabola.
        root = np.sqrt(np.maximum(excess - excess.min(), 0.0))
        kept = np.flatnonzero(root <= math.sqrt(limit))
        first, last = int(kept[0]), int(kept[-1])
        low = _crossing(at, root, first, -1, limit) if first > 0 else -math.inf
        high = _crossing(at, root, last, 1, limit) if last < len(at) - 1 else math.inf
        return low, high


def fit_samples(model: SampleModel) -> tuple[Candidate, Floats]:
    """Return the likeliest fit, without intervals yet, and its free numbers."""
    begin = sorted(model.starts(), key=model.badness)[:STARTS]
    free, _ = min((least_deviance(model, start) for start in begin), key=lambda fit: fit[1])
    shares = model.shares(free)
    candidate = Candidate(
        name=model.name,
        log_likelihood=model.levels.log_likelihood(shares),
        parameters=len(free),
        noise=model.noise(free),
        mean=shares,
        inside=np.zeros(0, dtype=bool),
        scale=math.exp(free[0]),
        temperature=math.exp(free[1]) if model.name == "smooth" else None,
    )
    return candidate, free


def with_intervals(
    candidate: Candidate, model: SampleModel, free: Floats, level: float
) -> Candidate:
    """Return the candidate with intervals of scale, temperature and share of non-movers."""
    # Guarantee (asymptotic). At the true parameters the difference between counted and predicted
    # shares has at most the covariance of a multinomial of n1 n2/(n1+n2) people (law of total
    # variance), also if both samples hold the same people. So two numbers held at their true values
    # raise the deviance by at most a chi-square of two degrees: any two of the intervals hold
    # together at the level, as the corners of an uncertainty set must; one alone is wider than it
    # need be.
    # A chi-square of two degrees is exponential.
    limit = -2.0 * math.log(1.0 - level) + SLACK
    scale = _profile(model, free, 0, limit)
    heats = _profile(model, free, 1, limit) if model.name == "smooth" else None
    odds = _profile(model, free, len(free) - 3, limit)
    share = [expit(end) for end in odds]
    return replace(
        candidate,
        scale_interval=_positive(scale),
        temperature_interval=None if heats is None else _positive(heats),
        non_movers_interval=Interval(share[0], share[1], "profile"),
        at_level=partial(with_intervals, candidate, model, free),
    )


def least_deviance(
    model: SampleModel, start: Floats, held: int | None = None
) -> tuple[Floats, float]:
    """Return the best fit near a start, one number held if asked, and its deviance."""
    from scipy.optimize import least_squares

    free = model.clipped(start)
    free[-2:] = np.maximum(free[-2:], LIFTED)
    moving = [j for j in range(len(free)) if j != held]

    def whole(part: Floats) -> Floats:
        point = free.copy()
        point[moving] = part
        return point

    def residuals(part: Floats) -> Floats:
        return model.levels.residuals(model.shares(whole(part)))

    def slopes(part: Floats) -> Floats:
        base, steps = residuals(part), STEP * np.eye(len(part))
        return np.column_stack([(residuals(part + step) - base) / STEP for step in steps])

    low, high = model.low[moving], model.high[moving]
    found = least_squares(
        residuals,
        np.clip(free[moving], low + STEP, high - STEP),
        slopes,
        bounds=(low, high),
        xtol=1e-4,
        ftol=1e-4,
        gtol=1e-3,
        max_nfev=PATIENCE,
    )
    return whole(found.x), 2.0 * float(found.cost)


def _profile(model: SampleModel, free: Floats, place: int, limit: float) -> tuple[float, float]:
    path = _Path(model, place, [float(free[place])], [model.levels.deviance(model.shares(free))])
    half = 0.5 * min(max(_standard_error(model, free, place), STEP), 1.0)
    for side in (-1.0, 1.0):
        path.follow(free, side * half, limit)
    return path.ends(limit)


def share_slopes(model: SampleModel, free: Floats) -> Floats:
    """Return the derivatives of the bins' shares by the free numbers, shape (p, bins)."""
    steps = STEP * np.eye(len(free))
    ends = [(model.shares(free + step), model.shares(free - step)) for step in steps]
    return np.array([(after - before) / (2.0 * STEP) for after, before in ends])


def _standard_error(model: SampleModel, free: Floats, place: int) -> float:
    """Return the standard error of one free number by Fisher's information; 1 without any."""
    slopes = share_slopes(model, free)
    live = np.flatnonzero(np.abs(slopes).sum(axis=1) > 1e-9)
    if place not in live:
        return 1.0
    information = model.levels.information(slopes[live], model.shares(free))
    variance = np.diag(np.linalg.pinv(information, hermitian=True))[live.tolist().index(place)]
    return math.sqrt(max(float(variance), 0.0))


def _crossing(at: Floats, root: Floats, inside: int, side: int, limit: float) -> float:
    """Return where the root of the profile crosses the limit next to the outermost point inside."""
    outside = inside + side
    part = (math.sqrt(limit) - root[inside]) / (root[outside] - root[inside])
    return float(at[inside] + part * (at[outside] - at[inside]))


def _positive(ends: tuple[float, float]) -> Interval:
    return Interval(exponential(ends[0]), exponential(ends[1]), "profile")


def wave_test(model: SampleModel, free: Floats) -> float:
    """Return the p-value of Neyman's smooth test on the residuals of a fit."""
    # Pearson's test takes forty bins one by one and overlooks people who are a little off in many
    # neighbouring bins. Here the residuals r_k = sqrt(N) (count_k - p_k) / sqrt(p_k) are projected
    # on an orthonormal basis of the longest waves, cleared of what fitting explains: their squared
    # length is asymptotically at most a chi-square with as many degrees as there are waves left.
    from scipy.stats import chi2

    levels, shares = model.levels, model.shares(free)
    roots = np.sqrt(shares)
    residuals = np.sqrt(levels.people) * (levels.shares - shares) / roots
    explained = _basis(np.vstack([share_slopes(model, free) / roots, roots]).T, 1e-6)
    middle = np.cumsum(shares) - 0.5 * shares
    waves = roots[:, None] * np.cos(np.pi * np.outer(middle, np.arange(1, WAVES + 1)))
    left = _basis(waves - explained @ (explained.T @ waves), INDEPENDENT)
    return float(chi2.sf(float(np.sum((left.T @ residuals) ** 2)), left.shape[1]))


def _basis(columns: Floats, least: float) -> Floats:
    """Return an orthonormal basis of the columns, weak directions left out."""
    sizes = np.linalg.norm(columns, axis=0)
    left, size, _ = np.linalg.svd(columns[:, sizes > 0.0] / sizes[sizes > 0.0], full_matrices=False)
    basis: Floats = left[:, size > least * size.max()]
    return basis
