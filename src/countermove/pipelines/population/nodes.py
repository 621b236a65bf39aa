"""A promise for the rule, everybody's answer to both rules, and advice for the refused.

Rows stay in their parts, on disk; counts and timings go out.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from countermove.data.partitions import Partitions
from countermove.data.schema import Schema
from countermove.params import ExecutionParameters, RecourseParameters, SermParameters

if TYPE_CHECKING:
    from countermove.scores.storage import PublishedModel
else:  # Kedro resolves annotations at start-up, and torch is slow to import.
    PublishedModel = Any


def calibrate(
    model: PublishedModel,
    parts: dict[str, Partitions],
    schema: Schema,
    serm: SermParameters,
    recourse: RecourseParameters,
    seed: int,
) -> tuple[PublishedModel, dict[str, Any]]:
    """Choose the threshold by promise and performance, on rows drawn from their parts."""
    from countermove.recourse.calibrate import calibrate_parts

    response = serm.build(schema, model.standardiser)
    rule = calibrate_parts(model, parts, schema, response, recourse.build(), seed)
    return rule.model, rule.facts


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


def advise(
    model: PublishedModel,
    parts: dict[str, Partitions],
    folder: Path,
    schema: Schema,
    serm: SermParameters,
    recourse: RecourseParameters,
    execution: ExecutionParameters,
    seed: int,
) -> dict[str, Any]:
    """Decide about the people of the test parts and tell the refused what to do."""
    from countermove.execution import map_parts
    from countermove.recourse.advise import AdviceTask

    response = serm.build(schema, model.standardiser)
    task = AdviceTask(model, schema, response, recourse.build(), seed)
    with execution.build().open() as mapper:
        return map_parts(task, execution.cut(parts)["test"], folder, mapper).to_json()


def sum_up(
    blind: dict[str, Any],
    strategic: dict[str, Any],
    advised: dict[str, Any],
    calibration: dict[str, Any],
    execution: ExecutionParameters,
) -> dict[str, Any]:
    """Put both rules side by side, with the promise and the time every part took."""
    return {
        "execution": execution.model_dump(mode="json"),
        "blind": blind,
        "strategic": strategic,
        "certificate": calibration["certificate"],
        "advice": {"run": advised},
    }


def write_page(report: dict[str, Any], dataset: str) -> str:
    """Write counts, promise and times as a page that needs nothing but itself."""
    from countermove.reporting.population import population_page

    return population_page(report, dataset)
