"""Reporting: two figures, a data sheet, the decision summary and the report page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
from kedro.pipeline import Node, Pipeline

from countermove.data.schema import Schema
from countermove.params import EvaluationParameters

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from countermove.scores.storage import PublishedModel
else:  # Kedro resolves annotations at start-up, and plotly and torch are slow to import.
    Figure = PublishedModel = Any

Facts = dict[str, Any]


def draw_accuracy(metrics: dict[str, Any]) -> Figure:
    """Draw accuracy under each kind of people."""
    from countermove.reporting.accuracy import accuracy_figure

    return accuracy_figure(metrics)


def draw_transfer(report: dict[str, Any] | None) -> Figure:
    """Draw the error before and after deployment."""
    from countermove.reporting.transfer import transfer_figure

    return transfer_figure(report)


def describe_table(
    typed: pd.DataFrame,
    schema: Schema,
    intake: Facts | None,
    train: pd.DataFrame,
    test: pd.DataFrame,
) -> Facts:
    """Say who is in the table, what its columns hold, who may change what, what is doubtful."""
    from countermove.data.report import table_sheet

    return table_sheet(typed, schema, intake, {"train": train, "test": test})


def summarise(
    decisions: pd.DataFrame,
    model: PublishedModel,
    schema: Schema,
    metrics: Facts,
    calibration: Facts,
    certificates: list[Facts],
    move_map: Facts | None,
    future: Facts | None,
    transfer: Facts | None,
    sheet: Facts,
    regret: Facts | None,
    evaluation: EvaluationParameters,
) -> Facts:
    """Answer what a committee asks first."""
    from countermove.reporting.summary import decision_summary

    found = (metrics, calibration, certificates, move_map, future, transfer, sheet, regret)
    return decision_summary(decisions, model, schema, *found, evaluation.failure_probability)


def write_page(
    metrics: Facts, certificates: list[Facts], calibration: Facts, frontier: pd.DataFrame,
    audit: Facts, advice: pd.DataFrame, transfer: Facts | None, move_map: Facts | None,
    history: Facts | None, sheet: Facts, tradeoff: pd.DataFrame | None,
    lookahead: Facts | None, collective: Facts | None, population: Facts | None,
    summary: Facts, future: Facts | None,
) -> str:  # fmt: skip
    """Write the report of what the run left; a stage that left nothing is None."""
    from countermove.reporting.page import Findings, report_page

    found = Findings(
        metrics, certificates, calibration, frontier, audit, advice, transfer, move_map,
        history, sheet, tradeoff, lookahead, collective, population, summary=summary, future=future,
    )  # fmt: skip
    return report_page(found)


FOUND = [
    "metrics",
    "certificates",
    "recourse_calibration",
    "recourse_frontier",
    "recourse_audit",
    "advice",
    "transfer_report",
    "move_map",
    "training_history",
    "table_sheet",
    "tradeoff_beside",
    "lookahead_beside",
    "collective_beside",
    "population_beside",
    "summary",
    "future",
]
"""What the page shows."""


def create_pipeline(**_: object) -> Pipeline:
    """Return the reporting pipeline."""
    return Pipeline(
        [
            Node(draw_accuracy, "metrics", "accuracy_figure", name="draw_accuracy"),
            Node(draw_transfer, "transfer_report", "transfer_figure", name="draw_transfer"),
            Node(
                describe_table,
                ["typed", "schema", "intake", "train_table", "test_table"],
                "table_sheet",
                name="describe_table",
            ),
            Node(
                summarise,
                [
                    "decisions", "recourse_model", "schema", "metrics", "recourse_calibration",
                    "certificates", "move_map", "future", "transfer_report", "table_sheet",
                    "regret", "params:evaluation",
                ],
                "summary",
                name="summarise",
            ),
            Node(write_page, FOUND, "report", name="write_page"),
        ],
        namespace="reporting",
        prefix_datasets_with_namespace=False,
    )  # fmt: skip
