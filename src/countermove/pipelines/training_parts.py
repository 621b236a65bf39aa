"""Training in parts: the blind and the strategic rule, on rows that stay in their parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kedro.pipeline import Node, Pipeline

from countermove.data.partitions import Partitions
from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.params import ExecutionParameters, SermParameters
from countermove.pipelines.people import make_people

if TYPE_CHECKING:
    from countermove.response import Response
    from countermove.scores.storage import PublishedModel
else:  # Kedro resolves annotations at start-up, and torch is slow to import.
    PublishedModel = Response = Any


def train_blind(
    parts: dict[str, Partitions],
    schema: Schema,
    standardiser: Standardiser,
    serm: SermParameters,
    execution: ExecutionParameters,
    seed: int,
) -> PublishedModel:
    """Train as if nobody moved."""
    from countermove.learning.rule_training import train_parts
    from countermove.response import NoResponse

    training = serm.build_training(schema, standardiser, seed)
    return train_parts(execution.cut(parts), schema, standardiser, NoResponse(), training, seed)


def train_strategic(
    parts: dict[str, Partitions],
    schema: Schema,
    standardiser: Standardiser,
    people: Response,
    serm: SermParameters,
    execution: ExecutionParameters,
    seed: int,
) -> PublishedModel:
    """Train on where people will stand once they have responded to the rule."""
    from countermove.learning.rule_training import train_parts

    training, aim = serm.build_training(schema, standardiser, seed), serm.regulariser.build()
    with execution.build().open() as mapper:
        return train_parts(
            execution.cut(parts), schema, standardiser, people, training, seed, aim, mapper
        )


def create_pipeline(**_: object) -> Pipeline:
    """Return the training pipeline for tables in parts."""
    rows = ["model_input_parts", "schema", "parts_standardiser"]
    settings = ["params:serm", "params:execution", "params:seed"]
    return Pipeline(
        [
            Node(
                make_people,
                ["schema", "parts_standardiser", "params:serm"],
                "parts_people",
                name="make_parts_people",
            ),
            Node(train_blind, [*rows, *settings], "parts_blind_model", name="train_blind_parts"),
            Node(
                train_strategic,
                [*rows, "parts_people", *settings],
                "parts_strategic_model",
                name="train_strategic_parts",
            ),
        ],
        namespace="training_parts",
        prefix_datasets_with_namespace=False,
    )
