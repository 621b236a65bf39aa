"""What usual ranges cost people: who would have recourse only far from where anybody stands."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import torch

from countermove.data.rows import fit_standardiser, rows_of, standardised_table
from countermove.data.schema import Schema
from countermove.people import ActionSet
from countermove.recourse.recommend import FOUND, recommend
from countermove.scores import LinearScore

REFUSED = 0.3
"""Share of people that the rule of the rehearsal refuses."""
JUDGED = 500
"""Refused people who are looked at, the first of the table."""


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
    from sklearn.linear_model import LogisticRegression

    units = fit_standardiser(table, schema, divide_by_root_d=False)
    rows = rows_of(standardised_table(table, schema, units), schema)
    actions = ActionSet.from_schema(schema, units)
    if actions.possible is None or not actions.movable.any():
        return None
    weights = LogisticRegression(max_iter=1000).fit(rows.X, rows.y).coef_[0]
    reached = rows.X @ weights
    score = LinearScore(len(weights))
    with torch.no_grad():
        score.weight.copy_(torch.from_numpy(weights))
        score.bias.fill_(-float(np.quantile(reached, REFUSED)))
    who = np.flatnonzero(reached < np.quantile(reached, REFUSED))[:JUDGED]
    if not who.size:
        return None
    own = actions.with_windows(rows.X, rows.windows).of_rows(who)
    far = replace(
        own.possible, low=np.full_like(weights, -np.inf), high=np.full_like(weights, np.inf)
    )
    within, beyond = (
        float((recommend(score, rows.X[who], actions=allowed).status == FOUND).mean())
        for allowed in (own, own.with_possible(far))
    )
    return (
        f"recourse within usual ranges: {within:.1%} of {len(who)} people refused by a logistic "
        f"rule have it, {beyond:.1%} without the ranges (`range:` of a feature changes them)"
    )
