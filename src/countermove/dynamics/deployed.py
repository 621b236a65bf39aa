"""The future of a rule that a run has made: retraining, and what applicants can do together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from countermove._types import Mask
from countermove.data.rows import Rows, rows_of
from countermove.data.schema import Schema
from countermove.dynamics.future import retraining_future
from countermove.dynamics.threat import collective_threat
from countermove.response import Response
from countermove.scores.storage import PublishedModel


def deployed_future(
    model: PublishedModel,
    train: pd.DataFrame,
    test: pd.DataFrame,
    schema: Schema,
    people: Response,
    seed: int,
) -> dict[str, Any]:
    """Return what will happen to a deployed rule, JSON-ready.

    Parameters
    ----------
    model
        The rule as published, at its threshold.
    train
        Standardised rows that every retraining sees.
    test
        Standardised rows that judge.
    schema
        Its sensitive columns are the segments who may act together.
    people
        How people respond.
    seed
        Of what is drawn.
    """
    made, judged = rows_of(train, schema), rows_of(test, schema)
    moving, judging = (people.with_windows(rows.X, rows.windows) for rows in (made, judged))
    future = retraining_future(
        model.rule,
        (made.X, made.y),
        (judged.X, judged.y),
        moving,
        judging=judging,
        clusters=judged.clusters,
        seed=seed,
    )
    threat = collective_threat(
        model.rule, (made.X, made.y), moving, schema_segments(made), seed=seed
    )
    return {
        "dataset": schema.name,
        "words": f"{future.words} {threat.words}",
        "retraining": future.to_json(),
        "collective_threat": threat.to_json(),
    }


def schema_segments(rows: Rows) -> dict[str, Mask]:
    """Return who may act together: every group of every sensitive column, by name."""
    found: dict[str, Mask] = {}
    for column in rows.groups:
        values = rows.groups[column].to_numpy()
        for value in pd.unique(values):
            found[f"{column} = {value}"] = np.asarray(values == value)
    return found
