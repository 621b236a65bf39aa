"""Estimating the people from two samples without keys.

The scores after are matched with what each candidate would make of the scores before. Who moved
is not seen: a hole below the boundary, its depth and its far edge have to tell everything.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from countermove._types import Floats
from countermove.learning.people_estimation.assembly import assembled, chosen_shape
from countermove.learning.people_estimation.best_fit import normal_quantile
from countermove.learning.people_estimation.candidates import Candidate
from countermove.learning.people_estimation.direction import mean_shift
from countermove.learning.people_estimation.goodness import Fit
from countermove.learning.people_estimation.histogram import Levels
from countermove.learning.people_estimation.identify import not_identified, nothing_to_learn
from countermove.learning.people_estimation.movement import Movement
from countermove.learning.people_estimation.observed import Observation
from countermove.learning.people_estimation.profile import fit_samples, with_intervals
from countermove.learning.people_estimation.result import PeopleEstimate, WeightEstimate
from countermove.learning.people_estimation.sample_models import (
    SampleModel,
    everybody_drifts,
    nobody_moves,
)
from countermove.learning.people_estimation.waves import wave_test
from countermove.learning.people_estimation.weights import weight_estimates


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


def _judged(levels: Levels, models: list[SampleModel], level: float) -> tuple[list[Candidate], Fit]:
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
    return ranked, Fit(p_value, misplaced, worst, levels.counts[None, :])


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
