"""A threshold with a promise, and who has a way back under it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from countermove.data.schema import Schema
from countermove.params import RecourseParameters, SermParameters

if TYPE_CHECKING:
    from countermove.scores.storage import PublishedModel
else:  # Kedro resolves annotations at start-up, and torch is slow to import.
    PublishedModel = Any


def calibrate(
    model: PublishedModel,
    rows: pd.DataFrame,
    schema: Schema,
    serm: SermParameters,
    recourse: RecourseParameters,
) -> tuple[PublishedModel, dict[str, Any]]:
    """Lower the threshold as far as the promise of recourse needs, and fold it into the rule."""
    from countermove.recourse.calibrated import calibrate_model

    actions = serm.actions.build(schema, model.standardiser)
    return calibrate_model(model, rows, schema, actions, **recourse.model_dump())


def decide(
    model: PublishedModel,
    rows: pd.DataFrame,
    schema: Schema,
    serm: SermParameters,
    recourse: RecourseParameters,
) -> pd.DataFrame:
    """Say for every test person: the decision, the probability, and whether a way back exists."""
    from countermove.recourse.calibrated import decisions

    actions = serm.actions.build(schema, model.standardiser)
    return decisions(model, rows, schema, actions, recourse.largest_action)
