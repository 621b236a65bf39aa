"""The same two rules as in the chain, trained on rows that stay in their parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from countermove.data.partitions import Partitions
from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.params import ExecutionParameters, SermParameters

if TYPE_CHECKING:
    from countermove.scores.storage import PublishedModel
else:  # Kedro resolves annotations at start-up, and torch is slow to import.
    PublishedModel = Any


def train_blind(
    parts: dict[str, Partitions],
    schema: Schema,
    standardiser: dict[str, Any],
    serm: SermParameters,
    execution: ExecutionParameters,
    seed: int,
) -> PublishedModel:
    """Train as if nobody moved."""
    from countermove.learning.partitioned import train_parts
    from countermove.response import NoResponse

    score = serm.build_score(schema, Standardiser.from_json(standardiser), seed)
    training = serm.training.model_dump() | {"score": score}
    return train_parts(execution.cut(parts), schema, standardiser, NoResponse(), training, seed)


def train_strategic(
    parts: dict[str, Partitions],
    schema: Schema,
    standardiser: dict[str, Any],
    serm: SermParameters,
    execution: ExecutionParameters,
    seed: int,
) -> PublishedModel:
    """Train on where people will stand once they have answered the rule."""
    from countermove.learning.partitioned import train_parts

    unit = Standardiser.from_json(standardiser)
    response, aim = serm.build(schema, unit), serm.regulariser.build()
    training = serm.training.model_dump() | {"score": serm.build_score(schema, unit, seed)}
    with execution.build().open() as mapper:
        return train_parts(
            execution.cut(parts), schema, standardiser, response, training, seed, aim, mapper
        )
