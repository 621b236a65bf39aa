"""What each rule decides about each person, before and after they respond.

All that a report says of accuracies, groups and ratios can be counted again from it.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from countermove._types import Floats
from countermove.data.rows import Rows, rows_of
from countermove.data.schema import CLUSTER_PREFIX, GROUP_PREFIX, Schema
from countermove.errors import DataError
from countermove.learning.evaluation import stated_chance
from countermove.learning.simple_rules import chosen_from, majority_rule
from countermove.learning.social import outcomes
from countermove.response import Population, Response
from countermove.response.response_set import members_of
from countermove.scores import Score
from countermove.scores.base import values
from countermove.scores.storage import PublishedModel

ROUNDING = 1e-9
"""Scores nearer than this to the threshold are on it: people who move stop there."""
BEFORE, AFTER, SCORE_AFTER = "approved", "approved_after", "score_after"
"""Names of the columns; those of another rule begin with its name and a dot."""


def judged_decisions(
    blind: PublishedModel,
    calibrated: PublishedModel,
    uncalibrated: PublishedModel,
    test: pd.DataFrame,
    train: pd.DataFrame,
    schema: Schema,
    response: Response,
) -> pd.DataFrame:
    """Return label, groups, and what every rule decides about the test people.

    Returns
    -------
    DataFrame
        ``row_id``, ``label`` (±1), ``approved`` and ``approved_after`` (0 or 1, or the chance
        where people differ), ``score_after`` (NaN where people differ: they have no one place),
        ``price`` (what approval costs at least, 0 for the approved, infinite where there is no
        way, NaN where unknown), ``group:<column>``, ``cluster:<column>`` where rows belong together
        (``group_by``); ``blind.approved`` and so on for the blind
        rule, the rule ``before_promise`` (as trained, before the threshold was calibrated), the
        ``majority`` of the training rows and every linear rule that training chose from.
    """
    people = rows_of(test, schema)
    response = response.with_windows(people.X, people.windows)
    columns: dict[str, object] = {"row_id": people.ids, "label": people.y.astype(np.int8)}
    columns |= _decided(calibrated.rule, people, response)
    reached = outcomes(calibrated.rule, people.X, people.y, response)
    columns["price"] = np.max(reached.price, axis=0)
    columns |= {
        f"{GROUP_PREFIX}{name}": column.to_numpy() for name, column in people.groups.items()
    }
    if people.clusters is not None:
        columns[f"{CLUSTER_PREFIX}{schema.group_by}"] = people.clusters
    for name, rule in _others(blind, uncalibrated, train, schema).items():
        decided = _decided(rule, people, response)
        columns |= {f"{name}.{column}": found for column, found in decided.items()}
    return pd.DataFrame(columns)


def check_judged(decisions: pd.DataFrame, column: str = AFTER) -> None:
    """Refuse decisions that lack a column of `judged_decisions`."""
    if column not in decisions:
        raise DataError(
            f"the decisions of this table lack the column {column!r}; an earlier version wrote "
            "them: run kedro run --pipeline=recourse, then --pipeline=evaluation and this again"
        )


def judged_accuracy(decisions: pd.DataFrame, rule: str = "", when: str = AFTER) -> float:
    """Return how often a rule is right, counted from its decisions; "": the published one."""
    column = f"{rule}.{when}" if rule else when
    check_judged(decisions, column)
    chance = decisions[column].to_numpy(dtype=np.float64)
    return float(np.where(decisions["label"].to_numpy() > 0, chance, 1.0 - chance).mean())


def _others(
    blind: PublishedModel, uncalibrated: PublishedModel, train: pd.DataFrame, schema: Schema
) -> dict[str, Score]:
    """Return the rules a published one is compared with, by name."""
    return chosen_from(uncalibrated) | {
        "blind": blind.rule,
        "before_promise": uncalibrated.rule,
        "majority": majority_rule(rows_of(train, schema).y, blind.score.n_features),
    }


def _decided(score: Score, people: Rows, response: Response) -> dict[str, Floats]:
    """Return one rule's decisions before and after response, and scores after it."""
    return {
        BEFORE: (values(score, people.X) >= 0.0).astype(np.float64),
        AFTER: stated_chance(score, people.X, people.y, response),
        SCORE_AFTER: _scores_after(score, people.X, response),
    }


def _scores_after(score: Score, X: Floats, response: Response) -> Floats:
    """Return the scores where people stand once they have moved; NaN where they differ."""
    alike = members_of(response)
    if len(alike) > 1 or isinstance(alike[0], Population):
        return np.full(len(X), np.nan)
    moved = alike[0].respond(score, X, on_failure="mask")
    after = values(score, moved.x_new)
    return np.where(np.abs(after) < ROUNDING, 0.0, after)
