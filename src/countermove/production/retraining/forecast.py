"""The error a promotion forecasts, and the error that was then observed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from countermove.certificates.intervals import lower_share, share_interval, upper_share
from countermove.data.rows import rows_of
from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.production.gates.base import Case, HoldoutDecisions
from countermove.production.history import DecisionHistory
from countermove.production.registry import Registry
from countermove.production.retraining.batches import RULE, new_rows
from countermove.scores import Score
from countermove.scores.base import values

ON_BOUNDARY = 1e-9
"""Rounding of a score: whoever stands on the boundary is approved."""


def error_bounds(
    decided: HoldoutDecisions, stated: Sequence[str], failure_probability: float
) -> list[dict[str, Any]]:
    """Bound the error of a rule once people have responded to it, from the hold-out."""
    # Clopper and Pearson's bounds under the first stated response, each at level 1 - alpha; their
    # worst-case twins hold whichever of the responses is true, each with an equal part of alpha.
    # They are the bounds of those names in the transfer report.
    n, part = len(decided.right[stated[0]]), failure_probability / len(decided.right)
    wrong = {name: int(np.sum(~right)) for name, right in decided.right.items()}
    own = wrong[stated[0]]
    bounds = {
        "direct_upper": upper_share(own, n, failure_probability),
        "direct_lower": lower_share(own, n, failure_probability),
        "worst_case_direct_upper": upper_share(max(wrong.values()), n, part),
        "worst_case_direct_lower": lower_share(min(wrong.values()), n, part),
    }
    return [
        {
            "claim": name,
            "direction": name.rpartition("_")[2],
            "forecast": float(bound),
            "level": 1.0 - failure_probability,
        }
        for name, bound in bounds.items()
    ]


def forecast(case: Case) -> dict[str, Any]:
    """Return the predicted error of a challenger after deployment, with its bounds."""
    stated = case.stated[0]
    error = float(np.mean(~case.challenger.right[stated]))
    return {"response": stated, "error": error, "bounds": case.bounds}


def outcomes(
    champion: str,
    forecasted: Mapping[str, Any],
    score: Score,
    observed: pd.DataFrame,
    batches: pd.Series,
    schema: Schema,
    failure_probability: float = 0.05,
) -> list[dict[str, Any]]:
    """Compare what was forecast of a champion with the error of its decisions, by batch."""
    # A bound held if the error of the batch is on its side. It is contradicted if even the interval
    # of the error (Clopper and Pearson) lies on the other side: a batch is a sample, and a good
    # bound may fail to hold on a small one without being wrong.
    people = rows_of(observed, schema)
    wrong = (values(score, people.X) >= -ON_BOUNDARY) != (people.y > 0)
    found = []
    for batch, rows in batches.reset_index(drop=True).groupby(batches.to_numpy()).groups.items():
        mistakes, n = int(np.sum(wrong[rows])), len(rows)
        low, high = share_interval(mistakes, n, failure_probability)
        for bound in forecasted["bounds"]:
            upper, limit = bound["direction"] == "upper", bound["forecast"]
            error = mistakes / n
            found.append(
                dict(bound)
                | {
                    "champion": champion,
                    "batch": str(batch),
                    "error": error,
                    "people": n,
                    "held": error <= limit if upper else error >= limit,
                    "contradicted": bool(low > limit if upper else high < limit),
                }
            )
    return found


def outcomes_of_batches(
    registry: Registry,
    history: DecisionHistory,
    rows: pd.DataFrame,
    facts: Mapping[str, Mapping[str, Any]],
    schema: Schema,
    standardiser: Standardiser,
) -> list[dict[str, Any]]:
    """Compare the champion's forecast with the new batches, and keep the record."""
    # Batches whose people were seen before they responded say nothing about a forecast.
    champion = registry.champion()
    responded = {name: batch for name, batch in facts.items() if batch[RULE] is not None}
    observed, batches = new_rows(rows, responded, schema, standardiser)
    if champion is None or not len(observed):
        return []
    forecasted = champion.facts["forecast"]
    found = outcomes(champion.version, forecasted, champion.model.rule, observed, batches, schema)
    history.add_outcomes(found)
    return found
