"""From two tables of people, before and after a rule, to a model of behaviour and its cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from countermove._types import Floats
from countermove.data.cleaning import people_records
from countermove.data.schema import ROW_ID, Schema
from countermove.data.standardise import Standardiser
from countermove.errors import ParameterError
from countermove.learning.people_estimation._best_fit import fit_best, normal_quantile
from countermove.learning.people_estimation._candidates import fit_drift, fit_none
from countermove.learning.people_estimation._diagnostics import (
    doubts,
    goodness_of_fit,
    not_identified,
    nothing_to_learn,
)
from countermove.learning.people_estimation._movement import Movement
from countermove.learning.people_estimation._noise import Advances, Noise
from countermove.learning.people_estimation._report import matched_picture
from countermove.learning.people_estimation._smooth_fit import fit_smooth
from countermove.learning.people_estimation._two_samples import estimate_from_samples
from countermove.learning.people_estimation._weights import (
    chosen_shape,
    estimate_direction,
    weight_estimates,
)
from countermove.learning.people_estimation.observation import Key, Observation, observe, pair_up
from countermove.learning.people_estimation.result import PeopleEstimate, WeightEstimate, assemble
from countermove.people import ActionSet
from countermove.scores import Score
from countermove.scores.storage import PublishedModel

COSTS = ("auto", "quadratic", "weighted_quadratic")


def estimate_people(
    rule: Score,
    before: Any,
    after: Any,
    *,
    key: Key = None,
    actions: ActionSet | None = None,
    units: Standardiser | None = None,
    cost: str = "auto",
    level: float = 0.95,
) -> PeopleEstimate:
    r"""Estimate how people responded to a rule, and what moving costs them.

    Schwarz's criterion chooses among four models, each with its noise: nobody moves,
    drift, best response, smooth response.

    Parameters
    ----------
    rule
        The published score, affine in what people can move, standardised units.
    before, after
        DataFrames or arrays of people.
    key
        A column of both tables, or a pair of key arrays, that says who is who; None:
        two samples of the same population, which show less.
    actions
        What people could do; None: anything.
    units
        Converts the tables from original units; None: they are standardised.
    cost
        ``quadratic`` (all features alike), ``weighted_quadratic``, or ``auto``: weighted
        where the moves contradict equal weights.
    level
        Of all intervals.

    Returns
    -------
    PeopleEstimate
        Intervals hold if people respond as one of the models says; the fit is tested, and the
        verdict says so. Tables that must not be compared are refused by a `DataError`.
    """
    if cost not in COSTS:
        raise ParameterError(f"cost is one of {', '.join(COSTS)}, got {cost!r}")
    if not 0.5 <= level < 1.0:
        raise ParameterError(f"level lies in [0.5, 1), got {level!r}")
    observed = observe(rule, pair_up(before, after, key, units), actions)
    scales = None if units is None else units.scale
    if not observed.matched:
        return estimate_from_samples(observed, cost, level, scales)
    return _from_pairs(observed, cost, level, scales)


def _from_pairs(
    observed: Observation, cost: str, level: float, scales: Floats | None
) -> PeopleEstimate:
    seen = Advances(observed.advance, observed.still, observed.recorded_exactly, observed.spread)
    start = first_noise(observed)
    direction = estimate_direction(observed, start.measurement)
    shape = chosen_shape(observed, direction, cost)
    movement = Movement(observed, shape)
    difficulty = movement.difficulty()
    blocked = nothing_to_learn(observed, difficulty)
    fitted = [fit_none(seen, start), fit_drift(seen)]
    if not blocked:
        fitted.append(fit_best(seen, movement, start, level))
        rival = fitted[-1].log_likelihood
        fitted.append(fit_smooth(observed, seen, shape, start, level, rival))
    ranked = sorted(fitted, key=lambda model: model.criterion(len(seen.values)))
    chosen = ranked[0]
    reasons = blocked or not_identified(chosen, difficulty, 1.0 - level)
    weights: tuple[WeightEstimate, ...] = ()
    if shape is not None and direction is not None:
        z = normal_quantile(level)
        weights = weight_estimates(observed, direction, shape, chosen, scales, z)
    return assemble(
        observed,
        ranked,
        movement,
        reasons,
        doubts(observed, chosen, direction),
        goodness_of_fit(observed.gap, seen, chosen),
        weights,
        level,
        matched_picture(observed, chosen),
        len(seen.values),
    )


def first_noise(observed: Observation) -> Noise:
    """Return a first guess: the approved have no reason to move and show the records' noise."""
    calm = observed.advance[observed.gap <= 0.0]
    calm = calm if len(calm) >= 20 else observed.advance
    size = 1.4826 * float(np.median(np.abs(calm - np.median(calm))))
    return Noise(0.1, 0.1, 0.0 if observed.recorded_exactly else size, 0.01)


def estimate_from_tables(
    model: PublishedModel,
    before: pd.DataFrame,
    after: pd.DataFrame,
    schema: Schema,
    actions: ActionSet,
    matched: bool = True,
    cost: str = "auto",
    level: float = 0.95,
) -> PeopleEstimate:
    """Estimate how people responded to a published model, from raw tables of its schema."""
    tables = [
        people_records(table, schema, f"{schema.name}_{moment}", matched)
        for table, moment in ((before, "before"), (after, "after"))
    ]
    return estimate_people(
        model.rule,
        *tables,
        key=ROW_ID if matched else None,
        actions=actions,
        units=model.standardiser,
        cost=cost,
        level=level,
    )
