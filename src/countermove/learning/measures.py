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
from countermove.learning.evaluation import sensitivity, stated_accuracy, usual_responses
from countermove.response import BestResponse, Response
from countermove.scores import Score
from countermove.scores.storage import PublishedModel

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
        member is reported (the mean where the members' shares are known).
    """
    people = rows_of(test, schema)
    scores = {"blind": blind.score, "strategic": strategic.score}
    usual = usual_responses(response.cost, response.actions)
    found = sensitivity(scores, people.X, people.y, usual).accuracies()
    stated = {
        name: stated_accuracy(score, people.X, people.y, response)
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
    }


def social_measures(score: Score, people: Rows, response: Response) -> dict[str, float | None]:
    r"""Return utility, burden and recourse of a rule, in units of the cost.

    - utility: mean of decision (±1) minus cost once people have moved;
    - burden: mean least cost of a favourable decision over people whose label is
      favourable and who can reach one; None if nobody can;
    - recourse: share of the refused who can reach a favourable decision for less
      than it is worth; None if nobody is refused.
    """
    rational = BestResponse(response.cost, response.actions)
    price = rational.crossing_cost(score, people.X)
    after = rational.respond(score, people.X)
    decision = np.where(rational.decisions_after(score, people.X), 1.0, -1.0)
    deserving = price[(people.y > 0) & np.isfinite(price)]
    refused = price > 0.0
    return {
        "utility": float(np.mean(decision - after.cost)),
        "burden": _mean(deserving),
        "recourse": _mean((decision[refused] > 0.0).astype(np.float64)),
    }


def _mean(values: NDArray[np.float64]) -> float | None:
    return float(values.mean()) if values.size else None
