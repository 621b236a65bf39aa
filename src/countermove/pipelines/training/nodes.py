"""A rule that ignores people's answer, and one that counts on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.params import SermParameters

if TYPE_CHECKING:
    from countermove.scores.storage import PublishedModel
else:  # Kedro resolves annotations at start-up, and torch is slow to import.
    PublishedModel = Any


def train_blind(
    train: pd.DataFrame,
    validation: pd.DataFrame,
    schema: Schema,
    standardiser: dict[str, Any],
    serm: SermParameters,
    seed: int,
) -> tuple[PublishedModel, dict[str, Any]]:
    """Train as if nobody moved."""
    from countermove.learning.published import train_published
    from countermove.response import NoResponse

    score = serm.build_score(schema, Standardiser.from_json(standardiser), seed)
    training = serm.training.model_dump() | {"score": score}
    people = NoResponse()
    done = train_published(train, validation, schema, standardiser, people, training, seed)
    return done.model, done.history.to_json()


def train_strategic(
    train: pd.DataFrame,
    validation: pd.DataFrame,
    schema: Schema,
    standardiser: dict[str, Any],
    serm: SermParameters,
    seed: int,
) -> tuple[PublishedModel, dict[str, Any]]:
    """Train on where people will stand once they have answered the rule."""
    from countermove.learning.published import train_published

    unit = Standardiser.from_json(standardiser)
    response, aim = serm.build(schema, unit), serm.regulariser.build()
    training = serm.training.model_dump() | {"score": serm.build_score(schema, unit, seed)}
    done = train_published(train, validation, schema, standardiser, response, training, seed, aim)
    return done.model, done.history.to_json()


def keep_history(blind: dict[str, Any], strategic: dict[str, Any]) -> dict[str, Any]:
    """Put both histories, epoch by epoch, into one document."""
    return {"blind": blind, "strategic": strategic}
