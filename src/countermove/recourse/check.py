"""What `check` says about reasons before any rule is trained."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import torch

from countermove.data.cleaning import clean
from countermove.data.rows import design_matrix, fit_standardiser
from countermove.data.schema import Schema
from countermove.data.splits import split_table
from countermove.recourse._audit_declared import sensitive_errors
from countermove.recourse.reasons import approved_people, reason_codes
from countermove.scores import LinearScore


def sensitive_reasons(
    raw: pd.DataFrame, schema: Schema, fractions: Mapping[str, float], seed: int
) -> list[str]:
    """Return an error for every sensitive feature that would be a main reason for refusals.

    Judged by a logistic regression on the training rows that refuses as many people as have an
    unfavourable outcome; nothing is fitted where no sensitive column is a feature.

    Parameters
    ----------
    raw
        The raw table, which `countermove.data.clean` accepts.
    schema
        What its columns mean.
    fractions, seed
        How a run would split it.
    """
    if not set(schema.sensitive) & {feature.name for feature in schema.features}:
        return []
    from sklearn.linear_model import LogisticRegression

    train = next(iter(split_table(clean(raw, schema), schema, fractions, seed).values()))
    units = fit_standardiser(train, schema, divide_by_root_d=False)
    rows = design_matrix(train, schema)
    X = units.transform(rows.X)
    fitted = LogisticRegression(max_iter=1000).fit(X, rows.y)
    score = LinearScore(X.shape[1])
    refused = float((rows.y < 0).mean())
    cut = float(np.quantile(X @ fitted.coef_[0], refused))
    with torch.no_grad():
        score.weight.copy_(torch.from_numpy(fitted.coef_[0].astype(np.float64)))
        score.bias.fill_(-cut)
    reasons = reason_codes(score, X, approved_people(score, X, rows.ids.tolist()), schema)
    people = int((reasons.order >= 0).any(axis=1).sum())
    whose = "of a logistic regression on the training rows"
    return sensitive_errors(reasons.sensitive(schema), people, whose)
