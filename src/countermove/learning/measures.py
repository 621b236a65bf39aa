"""What a published rule does: accuracy under every response, and what it asks of people."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import pandas as pd

from countermove.data.rows import Rows, rows_of
from countermove.data.schema import Schema
from countermove.data.sources import table_hash
from countermove.learning.evaluation import (
    not_evaluated,
    sensitivity,
    stated_accuracy,
    usual_responses_to,
)
from countermove.learning.social import social_report
from countermove.response import AscentResponse, Response
from countermove.response.response_set import members_of
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
        The rules; the strategic one is calibrated.
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
        member is reported (the mean where the members' shares are known).
    """
    people = rows_of(test, schema)
    scores = {"blind": blind.rule, "strategic": strategic.rule}
    usual = usual_responses_to(strategic.rule, response)
    found = sensitivity(scores, people.X, people.y, usual).accuracies()
    stated = {
        name: stated_accuracy(score, people.X, people.y, response)
        for name, score in (scores | {"uncalibrated": uncalibrated.rule}).items()
    }
    return {
        "dataset": schema.name,
        "accuracy": {
            "nobody_moves": found["none"],
            "after_response": {name: stated[name] for name in scores},
            "sensitivity": found,
            "uncalibrated": {"strategic": stated["uncalibrated"]},
        },
        "not_evaluated": not_evaluated(usual),
        "social": _social(blind, strategic, uncalibrated, people, response),
        "threshold": strategic.threshold,
        "response": response.describe(),
        "rows": strategic.about["rows"] | {"test": len(people.y)},
        "seed": strategic.about["seed"],
        "versions": {name: version(name) for name in PACKAGES},
        "data_hash": table_hash(typed),
    } | climbing_measures(strategic.rule, people, response)


def _social(
    blind: PublishedModel,
    calibrated: PublishedModel,
    strategic: PublishedModel,
    people: Rows,
    response: Response,
) -> dict[str, Any]:
    """Return the measures of the published rule, then of every rule and every group."""
    scores = {"blind": blind.rule, "strategic": strategic.rule, "calibrated": calibrated.rule}
    found = social_report(scores, people.X, people.y, people.groups, response)
    published = found["by_model"]["calibrated"]
    return {name: published[name] for name in ("utility", "burden", "recourse")} | found


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
