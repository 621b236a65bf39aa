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
    calibration: pd.DataFrame,
    validation: pd.DataFrame,
    train: pd.DataFrame,
    schema: Schema,
    serm: SermParameters,
    recourse: RecourseParameters,
) -> tuple[PublishedModel, dict[str, Any], pd.DataFrame]:
    """Choose the threshold by promise and performance together, and fold it into the rule."""
    from countermove.recourse.calibrate import calibrate_model

    response, trained_on = serm.build(schema, model.standardiser), train["row_id"].tolist()
    terms = recourse.build()
    rule = calibrate_model(model, calibration, validation, trained_on, schema, response, terms)
    return rule.model, rule.facts, rule.frontier


def advise(
    model: PublishedModel,
    rows: pd.DataFrame,
    train: pd.DataFrame,
    schema: Schema,
    serm: SermParameters,
    recourse: RecourseParameters,
    seed: int,
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    """Decide about every test person, look for a way back for the refused, and audit it."""
    from countermove.recourse.advise import advise as advise_people

    response = serm.build(schema, model.standardiser)
    told = advise_people(model, rows, train, schema, response, recourse.build(), seed)
    return told.decisions, told.advice, told.advice, told.audit
