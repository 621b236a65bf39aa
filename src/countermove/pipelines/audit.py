"""Audit: what people's response does to a model that exists already, read from its file.

Nothing is trained but the strategic rule that the model is compared with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
from kedro.pipeline import Node, Pipeline

from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.params import AuditParameters, EvaluationParameters
from countermove.pipelines import evaluation, ingest, recourse, reporting
from countermove.pipelines.people import make_people
from countermove.pipelines.training import train_strategic

if TYPE_CHECKING:
    from countermove.response import Response
    from countermove.scores.storage import PublishedModel
else:  # Kedro resolves annotations at start-up, and torch is slow to import.
    PublishedModel = Response = Any

Facts = dict[str, Any]


def read_model(
    train: pd.DataFrame,
    schema: Schema,
    standardiser: Standardiser,
    people: Response,
    audit: AuditParameters,
    seed: int,
) -> tuple[PublishedModel, PublishedModel]:
    """Read the model's file: the rule as it stands, and the one whose threshold is calibrated."""
    from countermove.scores.adopted import adopt_file
    from countermove.transfer.comparison import check_answered

    read = (audit.favourable, audit.columns, audit.threshold)
    model = adopt_file(audit.file(), train, schema, standardiser, seed, *read)
    check_answered(model.score, people)
    return model, model


def compare(
    model: PublishedModel,
    trained: PublishedModel,
    validation: pd.DataFrame,
    test: pd.DataFrame,
    schema: Schema,
    people: Response,
    evaluation: EvaluationParameters,
) -> dict[str, Any]:
    """Say what the best threshold after response, and strategic training, would bring."""
    from countermove.data.rows import rows_of
    from countermove.transfer.comparison import compare_rules

    chosen, judged = (rows_of(frame, schema) for frame in (validation, test))
    others = {"strategic training": trained.rule}
    given = (model.rule, others, chosen, judged, people)
    return {"rules": compare_rules(*given, evaluation.failure_probability)}


def write_page(
    metrics: Facts, certificates: list[Facts], calibration: Facts, frontier: pd.DataFrame,
    audit: Facts, advice: pd.DataFrame, transfer: Facts, move_map: Facts, sheet: Facts,
    comparison: Facts, summary: Facts, future: Facts | None,
) -> str:  # fmt: skip
    """Write the report of the audit."""
    from countermove.reporting.page import Findings, report_page

    found = Findings(
        metrics, certificates, calibration, frontier, audit, advice, transfer, move_map,
        sheet=sheet, comparison=comparison, summary=summary, future=future,
    )  # fmt: skip
    return report_page(found)


SHARED = {
    *(f"{part}_{form}" for part in ingest.SPLITS for form in ("table", "rows")),
    "schema", "standardiser", "people", "typed", "intake",
}  # fmt: skip
"""What the audit reads of the table, as every pipeline does; what it writes is its own."""
SETTINGS = {f"params:{name}" for name in ("audit", "serm", "recourse", "evaluation", "seed")}


def create_pipeline(**_: object) -> Pipeline:
    """Return the audit pipeline, from the raw table on."""
    given, settings = ["schema", "standardiser", "people"], ["params:serm", "params:seed"]
    judged = ["test_rows", "schema", "people"]
    own = [
        Node(
            read_model,
            ["train_table", *given, "params:audit", "params:seed"],
            ["blind_model", "strategic_model"],
            name="read_model",
        ),
        Node(
            train_strategic,
            ["train_rows", "validation_rows", *given, *settings],
            ["compared_model", "compared_history"],
            name="train_strategic",
        ),
        Node(
            compare,
            ["blind_model", "compared_model", "validation_rows", *judged, "params:evaluation"],
            "comparison",
            name="compare",
        ),
        Node(
            write_page,
            [
                "metrics", "certificates", "recourse_calibration", "recourse_frontier",
                "recourse_audit", "advice", "transfer_report", "move_map", "table_sheet",
                "comparison", "summary", "future",
            ],
            "report",
            name="write_page",
        ),
    ]  # fmt: skip
    chain = recourse.create_pipeline() + evaluation.create_pipeline() + reporting.create_pipeline()
    replaced = {node.name for node in own}
    kept = [node for node in chain.nodes if node.name.partition(".")[2] not in replaced]
    inside = Pipeline([*own, *kept])
    before = Node(
        make_people, ["schema", "standardiser", "params:serm"], "people", name="make_people"
    )
    return (
        ingest.create_pipeline()
        + Pipeline([before])
        + Pipeline(
            inside,
            inputs=SHARED & inside.inputs(),
            parameters=SETTINGS & inside.inputs(),
            namespace="audit",
        )
    )
