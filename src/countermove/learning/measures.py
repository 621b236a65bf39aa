"""What a published rule does: accuracy under every response, and what it asks of people.

Social measures are hard ones (decisions after response, real cost): smoothed
ones move when the score is merely rescaled.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove.data.rows import Rows, rows_of
from countermove.data.schema import Schema
from countermove.data.sources import table_hash
from countermove.learning.evaluation import sensitivity, usual_responses_to, worst_accuracy
from countermove.response import AscentResponse, Response
from countermove.response.rational import rational_people
from countermove.response.robust import members_of
from countermove.scores import Score
from countermove.scores.storage import PublishedModel

MEASURED = 200
"""People whose answers by ascent are compared with a longer search: shares to three points."""
PACKAGES = ("countermove", "kedro", "torch", "numpy", "pandas", "scikit-learn")


def rule_metrics(
    blind: PublishedModel,
    strategic: PublishedModel,
    uncalibrated: PublishedModel,
    typed: pd.DataFrame,
    test: pd.DataFrame,
    schema: Schema,
    response: Response,
) -> dict[str, Any]:
    """Measure a blind and a strategic rule on the test rows.

    Parameters
    ----------
    blind, strategic
        The rules, each with its threshold folded in.
    uncalibrated
        The strategic rule before its threshold was calibrated: what the promise of
        recourse cost.
    typed
        The whole table, for its hash.
    test
        Standardised test rows.
    schema
        What the columns mean.
    response
        The response the strategic rule was trained for; of a robust one, the worst
        member is reported.
    """
    people = rows_of(test, schema)
    scores = {"blind": blind.score, "strategic": strategic.score}
    usual = usual_responses_to(strategic.score, response)
    found = sensitivity(scores, people.X, people.y, usual).accuracies()
    stated = {
        name: worst_accuracy(score, people.X, people.y, members_of(response))
        for name, score in (scores | {"uncalibrated": uncalibrated.score}).items()
    }
    return {
        "dataset": schema.name,
        "accuracy": {
            "nobody_moves": found["none"],
            "after_response": {name: stated[name] for name in scores},
            "sensitivity": found,
            "uncalibrated": {"strategic": stated["uncalibrated"]},
        },
        "social": social_measures(strategic.score, people, response),
        "threshold": strategic.about["threshold"],
        "response": response.describe(),
        "rows": strategic.about["rows"] | {"test": len(people.y)},
        "seed": strategic.about["seed"],
        "versions": {name: version(name) for name in PACKAGES},
        "data_hash": table_hash(typed),
    } | climbing_measures(strategic.score, people, response)


def social_measures(score: Score, people: Rows, response: Response) -> dict[str, float | None]:
    r"""Return utility, burden and recourse of a rule, in units of the cost.

    - utility: mean of decision (±1) minus cost once people have moved;
    - burden: mean least cost of a favourable decision over people whose label is
      favourable and who can reach one; None if nobody can;
    - recourse: share of the refused who can reach a favourable decision for less
      than it is worth; None if nobody is refused.

    Rational people tell. Where the score has no slope nobody knows their answer: utility is
    then that of the stated response, and the other two are None.
    """
    rational = rational_people(response, score, people.X)
    if rational is None:
        return {"utility": _utility(response, score, people.X), "burden": None, "recourse": None}
    best, score, X = rational
    price = best.crossing_cost(score, X)
    after = best.respond(score, X)
    decision = np.where(best.decisions_after(score, X), 1.0, -1.0)
    deserving = price[(people.y > 0) & np.isfinite(price)]
    refused = price > 0.0
    return {
        "utility": float(np.mean(decision - after.cost)),
        "burden": _mean(deserving),
        "recourse": _mean((decision[refused] > 0.0).astype(np.float64)),
    }


def climbing_measures(score: Score, people: Rows, response: Response) -> dict[str, Any]:
    """Return under ``ascent`` how sure answers found by ascent are; nothing for other people.

    ``converged`` is the share who reached a maximum, ``gap`` the largest utility known to be
    missing and ``share`` the part of the people it is missing for (see `OptimalityGap`).
    """
    climbers = [member for member in members_of(response) if isinstance(member, AscentResponse)]
    if not climbers:
        return {}
    X, climber = people.X[:MEASURED], climbers[0].of_rows(range(min(MEASURED, len(people.X))))
    found = climber.optimality_gap(score, X)
    answers = climber.respond(score, X, on_failure="mask")
    return {
        "ascent": {
            "converged": float(answers.converged.mean()),
            "gap": found.worst,
            "share": found.share,
            "against": found.against,
            "exact": found.exact,
            "people": len(X),
        }
    }


def _utility(response: Response, score: Score, X: NDArray[np.float64]) -> float:
    """Return the mean of decision minus cost, of the worst-off member of a robust response."""
    found = []
    for member in members_of(response):
        after = member.respond(score, X, on_failure="mask")
        decision = np.where(member.decisions_after(score, X), 1.0, -1.0)
        found.append(float(np.mean(decision - after.cost)))
    return min(found)


def _mean(values: NDArray[np.float64]) -> float | None:
    return float(values.mean()) if values.size else None
