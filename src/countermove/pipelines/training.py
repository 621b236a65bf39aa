"""Training: a blind rule, and a strategic one with the response inside its loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
from kedro.pipeline import Node, Pipeline

from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.params import SermParameters
from countermove.pipelines.people import make_people

if TYPE_CHECKING:
    from countermove.response import Response
    from countermove.scores.storage import PublishedModel
else:  # Kedro resolves annotations at start-up, and torch is slow to import.
    PublishedModel = Response = Any


def train_blind(
    train: pd.DataFrame,
    validation: pd.DataFrame,
    schema: Schema,
    standardiser: Standardiser,
    serm: SermParameters,
    seed: int,
) -> tuple[PublishedModel, dict[str, Any]]:
    """Train as if nobody moved."""
    from countermove.learning.rule_training import train_published
    from countermove.response import NoResponse

    people, training = NoResponse(), serm.build_training(schema, standardiser, seed)
    done = train_published(train, validation, schema, standardiser, people, training, seed)
    return done.model, done.history.to_json()


def train_strategic(
    train: pd.DataFrame,
    validation: pd.DataFrame,
    schema: Schema,
    standardiser: Standardiser,
    people: Response,
    serm: SermParameters,
    seed: int,
) -> tuple[PublishedModel, dict[str, Any]]:
    """Train on where people will stand once they have responded to the rule."""
    from countermove.learning.rule_training import train_published

    training, aim = serm.build_training(schema, standardiser, seed), serm.regulariser.build()
    done = train_published(train, validation, schema, standardiser, people, training, seed, aim)
    return done.model, done.history.to_json()


def keep_history(blind: dict[str, Any], strategic: dict[str, Any]) -> dict[str, Any]:
    """Put both histories, epoch by epoch, into one document."""
    return {"blind": blind, "strategic": strategic}


def create_pipeline(**_: object) -> Pipeline:
    """Return the training pipeline."""
    rows, settings = ["train_rows", "validation_rows"], ["params:serm", "params:seed"]
    return Pipeline(
        [
            Node(
                make_people, ["schema", "standardiser", "params:serm"], "people", name="make_people"
            ),
            Node(
                train_blind,
                [*rows, "schema", "standardiser", *settings],
                ["blind_model", "blind_history"],
                name="train_blind",
            ),
            Node(
                train_strategic,
                [*rows, "schema", "standardiser", "people", *settings],
                ["strategic_model", "strategic_history"],
                name="train_strategic",
            ),
            Node(
                keep_history,
                ["blind_history", "strategic_history"],
                "training_history",
                name="keep_history",
            ),
        ],
        namespace="training",
        prefix_datasets_with_namespace=False,
    )
