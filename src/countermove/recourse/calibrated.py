"""A stored model with a calibrated threshold, and what it decides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from countermove.data.rows import rows_of
from countermove.data.schema import Schema
from countermove.people import ActionSet
from countermove.recourse.pare import calibrate_threshold
from countermove.recourse.reachable import largest_gain
from countermove.scores import Score
from countermove.scores.storage import PublishedModel

Floats = NDArray[np.float64]


def calibrate_model(
    model: PublishedModel,
    table: pd.DataFrame,
    schema: Schema,
    actions: ActionSet,
    *,
    threshold: float,
    largest_action: float | None,
    miss_rate: float,
    failure_probability: float,
) -> tuple[PublishedModel, dict[str, Any]]:
    """Return the model at its calibrated threshold, and the calibration as JSON."""
    X = rows_of(table, schema).X
    reached = _values(model.score, X) + largest_gain(model.score, actions, X, largest_action)
    result = calibrate_threshold(
        _probability(reached),
        miss_rate=miss_rate,
        failure_probability=failure_probability,
        wanted=threshold,
    )
    about = model.about | {"threshold": result.threshold}
    rule = replace(model, score=model.score.at_threshold(result.threshold), about=about)
    facts = {
        "threshold": result.threshold,
        "bound": result.bound,
        "certificate": result.certificate.to_json(),
    }
    return rule, facts


def decisions(
    model: PublishedModel,
    table: pd.DataFrame,
    schema: Schema,
    actions: ActionSet,
    largest_action: float | None,
) -> pd.DataFrame:
    """Return one row per person: row_id, decision, probability, status.

    ``probability`` is on the uncalibrated scale, to be read against the
    threshold; ``status`` says whether a refused person has a way back
    (FOUND, PROVEN_NONE) or needs none (NOT_NEEDED).
    """
    people = rows_of(table, schema)
    scores = _values(model.score, people.X)
    reached = scores + largest_gain(model.score, actions, people.X, largest_action)
    threshold = float(model.about["threshold"])
    refused = np.where(reached >= 0.0, "FOUND", "PROVEN_NONE")
    return pd.DataFrame(
        {
            "row_id": people.ids,
            "decision": np.where(scores >= 0.0, 1, -1),
            "probability": _probability(scores + np.log(threshold / (1.0 - threshold))),
            "status": np.where(scores >= 0.0, "NOT_NEEDED", refused),
        }
    )


def _values(score: Score, X: Floats) -> Floats:
    with torch.no_grad():
        values: Floats = score(torch.from_numpy(X)).numpy()
    return values


def _probability(scores: Floats) -> Floats:
    probabilities: Floats = torch.sigmoid(torch.from_numpy(scores)).numpy()
    return probabilities
