"""From two tables of people, before and after a rule, to a model of behaviour and its cost."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pandas as pd
import torch

from countermove._types import Floats
from countermove.data.cleaning import people_records
from countermove.data.schema import ROW_ID, Schema
from countermove.data.standardise import Standardiser
from countermove.errors import DataError, ParameterError
from countermove.learning.people_estimation._candidates import (
    Advances,
    Noise,
    fit_drift,
    normal_quantile,
)
from countermove.learning.people_estimation._fit_tests import goodness_of_fit, price_fit_test
from countermove.learning.people_estimation._moves import (
    Movement,
    WeightEstimate,
    chosen_shape,
    estimate_direction,
    weight_estimates,
)
from countermove.learning.people_estimation._price_fit import fit_prices
from countermove.learning.people_estimation._report import (
    doubts,
    matched_picture,
    not_identified,
    nothing_to_learn,
)
from countermove.learning.people_estimation._smooth_fit import fit_none, fit_smooth
from countermove.learning.people_estimation._two_samples import estimate_from_samples
from countermove.learning.people_estimation.observation import Key, Observation, observe, pair_up
from countermove.learning.people_estimation.result import PeopleEstimate, assemble
from countermove.people import ActionSet
from countermove.randomness import generator
from countermove.response.base import Response
from countermove.response.reduction import ActionPlan, slope_of
from countermove.scores import Score
from countermove.scores.storage import PublishedModel

logger = logging.getLogger(__name__)

SETTLED = 0.1
MANY = 2000
"""p-value of a fit of prices, and people, from which on a smoothed step is not tried."""
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
    groups: Any = None,
) -> PeopleEstimate:
    r"""Estimate how people responded to a rule, and what moving costs them.

    >>> import numpy as np
    >>> from countermove import StrategicClassifier, estimate_people
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> rule = StrategicClassifier(response="none").fit(X, X @ [1.0, 0.5] > 0.2)
    >>> after = rule.respond(X, response="best").x_new
    >>> who = np.arange(400)
    >>> found = estimate_people(rule.score_, X, after, key=(who, who))
    >>> found.response
    'best'

    Schwarz's criterion chooses among four models: nobody moves, drift (regression to the mean
    included), best responders with log-normal prices of whom a share never moves, smooth
    response.

    .. math:: P(\text{cross} \mid g) = (1-\pi)\, E_o\,
        \Phi\bigl((\tfrac12(\log 2 - \mu) - \log(g + o)) / \tfrac12\sigma\bigr)

    for a refused person at gap :math:`g` who would go :math:`o` beyond the boundary.

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
    groups
        Labels of the people of ``before`` in its order, one column or several: whether prices
        differ by them is tested, as it is for every feature. Matched tables only.

    Returns
    -------
    PeopleEstimate
        Intervals hold if people respond as one of the models says; the fit is tested, and an
        estimate that does not fit refuses to be used. Tables that must not be compared are
        refused by a `DataError`.
    """
    if cost not in COSTS:
        raise ParameterError(f"cost is one of {', '.join(COSTS)}, got {cost!r}")
    if not 0.5 <= level < 1.0:
        raise ParameterError(f"level lies in [0.5, 1), got {level!r}")
    observed = observe(rule, pair_up(before, after, key, units), actions, units)
    scales = None if units is None else units.scale
    if not observed.matched:
        return estimate_from_samples(observed, cost, level, scales)
    return _from_pairs(observed, cost, level, scales, *_labels(groups, len(observed.X)))


def _labels(groups: Any, n: int) -> tuple[Floats | None, list[str]]:
    """Return labels as columns of zeros and ones, and what they are called."""
    if groups is None:
        return None, []
    table = groups if isinstance(groups, pd.DataFrame) else pd.DataFrame(np.asarray(groups))
    if len(table) != n:
        raise DataError(f"{len(table)} labels of groups for {n} people before")
    table = table.rename(columns=lambda name: f"group {name}" if isinstance(name, int) else name)
    columns = pd.get_dummies(table.astype(str), drop_first=True, prefix_sep=" = ", dtype=float)
    return columns.to_numpy(dtype=np.float64), [str(name) for name in columns.columns]


def _from_pairs(
    observed: Observation,
    cost: str,
    level: float,
    scales: Floats | None,
    groups: Floats | None,
    group_names: list[str],
) -> PeopleEstimate:
    seen = Advances(observed.advance, observed.still, observed.recorded_exactly, observed.spread)
    start = first_noise(observed)
    direction = estimate_direction(observed, start.measurement)
    shape = chosen_shape(observed, direction, cost)
    movement = Movement(observed, shape)
    difficulty = movement.difficulty()
    blocked = nothing_to_learn(observed, difficulty)
    fitted = [fit_none(seen, start), fit_drift(seen, observed.gap)]
    prices = None if blocked else fit_prices(observed, difficulty, level)
    tested = None
    if prices is not None and prices.prices is not None:
        fitted.append(prices)
        tested = price_fit_test(observed, prices.prices, groups, group_names)
    # Prices that many people bear out leave nothing for a smoothed step to explain.
    settled = tested is not None and tested.p_value > SETTLED and len(observed.X) >= MANY
    if not (blocked or settled):
        rival = max(model.log_likelihood for model in fitted)
        fitted.append(fit_smooth(observed, seen, shape, start, level, rival))
    ranked = sorted(fitted, key=lambda model: model.criterion(len(seen.values)))
    chosen = ranked[0]
    if tested is None or chosen is not prices:
        tested = goodness_of_fit(observed.gap, seen, chosen)
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
        tested,
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
    """Estimate how people responded to a published model, from raw tables of its schema.

    Whoever lacks a cell, before or after, is left out: nobody's move is known from it.
    """
    tables = [
        people_records(table, schema, f"{schema.name}_{moment}", matched)
        for table, moment in ((before, "before"), (after, "after"))
    ]
    tables = _without_gaps(tables, matched)
    return estimate_people(
        model.rule,
        *tables,
        key=ROW_ID if matched else None,
        actions=actions.without_supply(),
        units=model.standardiser,
        cost=cost,
        level=level,
    )


def _without_gaps(tables: list[pd.DataFrame], matched: bool) -> list[pd.DataFrame]:
    """Return the tables without people who lack a cell, in either of them if they are matched."""
    gaps = [table.isna().any(axis=1) for table in tables]
    if matched:
        people = {row for t, gap in zip(tables, gaps, strict=True) for row in t.loc[gap, ROW_ID]}
        gaps = [table[ROW_ID].isin(people) for table in tables]
    if any(gap.any() for gap in gaps):
        logger.warning(
            "%d of %d people before and %d of %d after lack a cell%s and are left out",
            gaps[0].sum(), len(gaps[0]), gaps[1].sum(), len(gaps[1]),
            " in one of the tables" if matched else "",
        )  # fmt: skip
    return [t[~gap].reset_index(drop=True) for t, gap in zip(tables, gaps, strict=True)]


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
