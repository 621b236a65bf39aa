"""Population in parts: how people respond to both rules, the promise and the advice.

Rows stay in their parts, on disk; counts and timings go out.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from kedro.pipeline import Node, Pipeline

from countermove.data.partitions import Partitions
from countermove.data.schema import Schema
from countermove.params import ExecutionParameters, RecourseParameters

if TYPE_CHECKING:
    from countermove.response import Response
    from countermove.scores.storage import PublishedModel
else:  # Kedro resolves annotations at start-up, and torch is slow to import.
    PublishedModel = Response = Any


def calibrate(
    model: PublishedModel,
    parts: dict[str, Partitions],
    schema: Schema,
    people: Response,
    recourse: RecourseParameters,
    seed: int,
) -> tuple[PublishedModel, dict[str, Any]]:
    """Choose the threshold by promise and performance, on rows drawn from their parts."""
    from countermove.recourse.advise import with_approved
    from countermove.recourse.calibrate import calibrate_parts, draw_rows

    rule = calibrate_parts(model, parts, schema, people, recourse.build(), seed)
    train = draw_rows(parts["train"], "train", seed)
    return with_approved(rule.model, train, schema), rule.facts


def answer(
    model: PublishedModel,
    parts: dict[str, Partitions],
    folder: Path,
    schema: Schema,
    people: Response,
    execution: ExecutionParameters,
) -> dict[str, Any]:
    """Let the people of the test parts respond to a rule; count what it then decides."""
    from countermove.learning.measures import answer_parts

    with execution.build().open() as mapper:
        return answer_parts(model, people, execution.cut(parts)["test"], folder, schema, mapper)


def advise(
    model: PublishedModel,
    parts: dict[str, Partitions],
    folder: Path,
    schema: Schema,
    people: Response,
    recourse: RecourseParameters,
    execution: ExecutionParameters,
    seed: int,
) -> dict[str, Any]:
    """Decide about the people of the test parts and advise the refused."""
    from countermove.execution import map_parts
    from countermove.recourse.advise import AdviceTask

    task = AdviceTask(model, schema, people, recourse.build(), seed, recourse.advice())
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


def create_pipeline(**_: object) -> Pipeline:
    """Return the population pipeline."""
    rules = {"blind": "parts_blind_model", "strategic": "parts_recourse_model"}
    people = ["schema", "parts_people"]
    answers = [
        Node(
            answer,
            [model, "model_input_parts", f"answered_{rule}_folder", *people, "params:execution"],
            f"answered_{rule}",
            name=f"answer_{rule}",
        )
        for rule, model in rules.items()
    ]
    steps = [
        Node(
            calibrate,
            [
                "parts_strategic_model", "model_input_parts", *people, "params:recourse",
                "params:seed",
            ],
            ["parts_recourse_model", "parts_calibration"],
            name="calibrate_parts",
        ),
        *answers,
        Node(
            advise,
            [
                rules["strategic"], "model_input_parts", "advised_folder", *people,
                "params:recourse", "params:execution", "params:seed",
            ],
            "advised_run",
            name="advise_parts",
        ),
        Node(
            sum_up,
            [
                "answered_blind", "answered_strategic", "advised_run", "parts_calibration",
                "params:execution",
            ],
            "population_report",
            name="sum_up_population",
        ),
        Node(
            write_page,
            ["population_report", "params:dataset"],
            "population_page",
            name="write_population_page",
        ),
    ]  # fmt: skip
    return Pipeline(steps, namespace="population", prefix_datasets_with_namespace=False)
