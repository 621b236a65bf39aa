"""The shape of the cost, and everything found put into one result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from countermove._types import Floats
from countermove.learning.people_estimation.candidates import Candidate
from countermove.learning.people_estimation.direction import Direction
from countermove.learning.people_estimation.goodness import Fit
from countermove.learning.people_estimation.movement import Movement
from countermove.learning.people_estimation.observed import Observation
from countermove.learning.people_estimation.result import Compared, PeopleEstimate, WeightEstimate
from countermove.learning.people_estimation.weights import UNEQUAL, shape_of
from countermove.learning.people_estimation.words import verdict


def chosen_shape(observed: Observation, direction: Direction | None, cost: str) -> Floats | None:
    """Return the weights of the cost, None for all alike."""
    if cost == "quadratic" or direction is None or int(direction.usable.sum()) < 2:
        return None
    if cost == "auto" and direction.same_as(observed.slope) >= UNEQUAL:
        return None
    return shape_of(observed, direction)


def assembled(
    observed: Observation,
    ranked: Sequence[Candidate],
    movement: Movement,
    reasons: tuple[str, ...],
    warnings: tuple[str, ...],
    fit: Fit,
    weights: tuple[WeightEstimate, ...],
    level: float,
    picture: dict[str, Any],
    n_effective: float,
) -> PeopleEstimate:
    """Put everything into one result."""
    chosen = ranked[0]
    return PeopleEstimate(
        response=chosen.name,
        cost=None if chosen.scale is None else movement.cost(chosen.scale),
        scale=chosen.scale,
        scale_interval=chosen.scale_interval,
        temperature=chosen.temperature,
        temperature_interval=chosen.temperature_interval,
        non_movers=chosen.noise.non_movers,
        non_movers_interval=chosen.non_movers_interval,
        noise=chosen.noise,
        weights=weights,
        comparison=_compared(ranked, n_effective),
        fit=fit,
        identified=not reasons,
        reasons=reasons,
        warnings=warnings,
        verdict=verdict(chosen, reasons, warnings, fit, weights, level),
        n=len(observed.X),
        n_after=len(observed.X_after),
        matched=observed.matched,
        level=level,
        picture=picture,
        actions=observed.actions,
    )


def _compared(ranked: Sequence[Candidate], n: float) -> tuple[Compared, ...]:
    marks = [model.criterion(n) for model in ranked]
    odds = [math.exp(-0.5 * min(mark - marks[0], 1400.0)) for mark in marks]
    return tuple(
        Compared(
            name=model.name,
            criterion=mark,
            weight=share / sum(odds),
            log_likelihood=model.log_likelihood,
            parameters=model.parameters,
            scale=model.scale,
            temperature=model.temperature,
        )
        for model, mark, share in zip(ranked, marks, odds, strict=True)
    )
