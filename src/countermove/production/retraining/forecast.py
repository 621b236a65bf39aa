"""What a promotion foretells, and what then came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from countermove.certificates.intervals import lower_share, share_interval, upper_share
from countermove.data.rows import rows_of
from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.production.gates.base import Case, Judged
from countermove.production.history import History
from countermove.production.registry import Registry
from countermove.production.retraining.stock import RULE, new_rows
from countermove.scores import Score
from countermove.scores.base import values


def foretell(
    judged: Judged, stated: Sequence[str], failure_probability: float
) -> list[dict[str, Any]]:
    """Bound the error a rule will make once people have answered it, from the hold-out.

    ``direct_upper`` and ``direct_lower`` are Clopper and Pearson's bounds under the first stated
    response, each at level 1 - alpha; their ``worst_case`` twins hold whichever of the
    responses is true, each of which gets an equal part of alpha. They are the bounds of those
    names of the transfer report.
    """
    n, part = len(judged.right[stated[0]]), failure_probability / len(judged.right)
    wrong = {name: int(np.sum(~right)) for name, right in judged.right.items()}
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
    foretold: Mapping[str, Any],
    score: Score,
    observed: pd.DataFrame,
    batches: pd.Series,
    schema: Schema,
    failure_probability: float = 0.05,
) -> list[dict[str, Any]]:
    """Compare what was foretold of a champion with what its decisions came to.

    A bound held if the error of the batch is on its side. It is contradicted if even the
    interval of the error (Clopper and Pearson) lies on the other side: a batch is a sample,
    and a good bound may fail to hold on a small one without being wrong.

    Parameters
    ----------
    champion, foretold
        The version that decided, and its stored `forecast`.
    score
        Its rule.
    observed
        Standardised rows as they came, after people answered, with their labels.
    batches
        Which batch each row came with.
    schema
        What the columns mean.
    failure_probability
        Of the interval.
    """
    people = rows_of(observed, schema)
    wrong = (values(score, people.X) >= 0.0) != (people.y > 0)
    found = []
    for batch, rows in batches.reset_index(drop=True).groupby(batches.to_numpy()).groups.items():
        mistakes, n = int(np.sum(wrong[rows])), len(rows)
        low, high = share_interval(mistakes, n, failure_probability)
        for bound in foretold["bounds"]:
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
    history: History,
    rows: pd.DataFrame,
    facts: Mapping[str, Mapping[str, Any]],
    schema: Schema,
    standardiser: Standardiser,
) -> list[dict[str, Any]]:
    """Compare the champion's forecast with the new batches, and keep the record.

    Batches whose people were seen before they answered say nothing about a forecast.
    """
    champion = registry.champion()
    answered = {name: batch for name, batch in facts.items() if batch[RULE] is not None}
    observed, batches = new_rows(rows, answered, schema, standardiser)
    if champion is None or not len(observed):
        return []
    foretold = champion.facts["forecast"]
    found = outcomes(champion.version, foretold, champion.model.rule, observed, batches, schema)
    history.add_outcomes(found)
    return found
