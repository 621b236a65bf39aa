"""What `check` says before any rule is trained: sensitive reasons, lost recourse, few clusters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
import torch

from countermove.data.rows import Rows, fit_standardiser, rows_of, standardised_table
from countermove.data.schema import Schema
from countermove.data.splits import split_table
from countermove.data.standardise import Standardiser
from countermove.errors import CalibrationError
from countermove.people import ActionSet
from countermove.recourse.audit_shares import sensitive_errors
from countermove.recourse.pare.inputs import ClusterRows
from countermove.recourse.reasons import approved_people, reason_codes
from countermove.recourse.recommend import FOUND, recommend
from countermove.scores import LinearScore
from countermove.scores.base import values

REFUSED = 0.3
"""Share of people that the rule refuses under which recourse is looked for."""
JUDGED = 500
"""Refused people who are looked at, the first of the table."""


def sensitive_reasons(
    table: pd.DataFrame, schema: Schema, fractions: Mapping[str, float], seed: int
) -> list[str]:
    """Return an error for every sensitive feature that would be a main reason for refusals.

    Judged by a logistic regression on the training rows that refuses as many people as have an
    unfavourable outcome; nothing is fitted where no sensitive column is a feature.

    Parameters
    ----------
    table
        Typed rows.
    schema
        What its columns mean.
    fractions, seed
        How a run would split it.
    """
    if not set(schema.sensitive) & {feature.name for feature in schema.features}:
        return []
    train = next(iter(split_table(table, schema, fractions, seed).values()))
    rows = _rehearsed_rows(train, schema)[0]
    score = _logistic_rule(rows, float((rows.y < 0).mean()))
    reasons = reason_codes(score, rows.X, approved_people(score, rows.X, rows.ids.tolist()), schema)
    people = int((reasons.order >= 0).any(axis=1).sum())
    whose = "of a logistic regression on the training rows"
    return sensitive_errors(reasons.sensitive(schema), people, whose)


def lost_to_ranges(table: pd.DataFrame, schema: Schema) -> str | None:
    """Say how many refused people lose recourse because amounts stay within usual ranges.

    The rule is a logistic regression that refuses three people in ten.

    Parameters
    ----------
    table
        Typed rows.
    schema
        What the columns mean.

    Returns
    -------
    str or None
        A sentence; None where nothing can be changed.
    """
    rows, units = _rehearsed_rows(table, schema)
    actions = ActionSet.from_schema(schema, units)
    if actions.possible is None or not actions.movable.any():
        return None
    score = _logistic_rule(rows, REFUSED)
    who = np.flatnonzero(values(score, rows.X) < 0.0)[:JUDGED]
    if not who.size:
        return None
    anywhere = np.full(rows.X.shape[1], np.inf)
    wide = actions.with_possible(replace(actions.possible, low=-anywhere, high=anywhere))
    within, beyond = (
        float((recommend(score, rows.X[who], actions=own.of_rows(who)).status == FOUND).mean())
        for own in (allowed.with_windows(rows.X, rows.windows) for allowed in (actions, wide))
    )
    return (
        f"recourse within usual ranges: {within:.1%} of {len(who)} people refused by a logistic "
        f"rule have it, {beyond:.1%} without the ranges (`range:` of a feature changes them)"
    )


def few_clusters(
    table: pd.DataFrame,
    schema: Schema,
    fractions: Mapping[str, float],
    seed: int,
    miss_rate: float,
    failure_probability: float,
) -> str | None:
    """Say that the calibration rows are of too few clusters for any promise of recourse.

    Parameters
    ----------
    table
        Typed rows.
    schema
        Names whose rows belong together (``group_by``); without it there is nothing to say.
    fractions, seed
        How a run would split it.
    miss_rate, failure_probability
        Of the promise.
    """
    if schema.group_by is None:
        return None
    held = split_table(table, schema, fractions, seed).get("calibration")
    if held is None or held.empty:
        return None
    clusters = ClusterRows.drawn(held[schema.group_by].astype(str), len(held))
    try:
        clusters.check_enough(miss_rate, failure_probability)
    except CalibrationError as error:
        return f"calibration by {schema.group_by!r}: {error}"
    return None


def _rehearsed_rows(table: pd.DataFrame, schema: Schema) -> tuple[Rows, Standardiser]:
    """Return typed rows in standardised units, and the units."""
    units = fit_standardiser(table, schema, divide_by_root_d=False)
    return rows_of(standardised_table(table, schema, units), schema), units


def _logistic_rule(rows: Rows, refused: float) -> LinearScore:
    """Return a logistic regression that refuses a share of the people."""
    from sklearn.linear_model import LogisticRegression

    weights = LogisticRegression(max_iter=1000).fit(rows.X, rows.y).coef_[0].astype(np.float64)
    score = LinearScore(len(weights))
    with torch.no_grad():
        score.weight.copy_(torch.from_numpy(weights))
        score.bias.fill_(-float(np.quantile(rows.X @ weights, refused)))
    return score
