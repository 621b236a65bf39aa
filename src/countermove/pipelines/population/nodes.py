"""Everybody answers both rules, part by part; the moved rows stay on disk, the counts go out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from countermove.data.partitions import Partitions
from countermove.data.schema import Schema
from countermove.params import ExecutionParameters, SermParameters

if TYPE_CHECKING:
    from countermove.scores.storage import PublishedModel
else:  # Kedro resolves annotations at start-up, and torch is slow to import.
    PublishedModel = Any


def answer(
    model: PublishedModel,
    parts: dict[str, Partitions],
    folder: Path,
    schema: Schema,
    serm: SermParameters,
    execution: ExecutionParameters,
) -> dict[str, Any]:
    """Let the people of the test parts answer a rule; count what it then decides."""
    from countermove.learning.partitioned import answer_parts

    response, test = serm.build(schema, model.standardiser), execution.cut(parts)["test"]
    with execution.build().open() as mapper:
        return answer_parts(model, response, test, folder, schema, mapper)


def sum_up(
    blind: dict[str, Any], strategic: dict[str, Any], execution: ExecutionParameters
) -> dict[str, Any]:
    """Put both rules side by side, with the time every part took."""
    return {
        "execution": execution.model_dump(mode="json"),
        "blind": blind,
        "strategic": strategic,
    }
