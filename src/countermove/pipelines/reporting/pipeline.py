"""Reporting: what a person looks at."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from countermove.pipelines.reporting import nodes

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
]
"""What the page shows, in the order of `Findings`."""


def create_pipeline(**_: object) -> Pipeline:
    """Return the reporting pipeline."""
    return Pipeline(
        [
            Node(nodes.draw_accuracy, "metrics", "accuracy_figure", name="draw_accuracy"),
            Node(nodes.draw_transfer, "transfer_report", "transfer_figure", name="draw_transfer"),
            Node(nodes.describe_table, ["typed", "schema"], "table_sheet", name="describe_table"),
            Node(nodes.write_page, FOUND, "report", name="write_page"),
        ],
        namespace="reporting",
        prefix_datasets_with_namespace=False,
    )
