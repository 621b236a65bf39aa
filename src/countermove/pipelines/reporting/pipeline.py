"""Reporting: what a person looks at."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from countermove.pipelines.reporting import nodes

FOUND = {
    "metrics": "metrics",
    "certificates": "certificates",
    "calibration": "recourse_calibration",
    "frontier": "recourse_frontier",
    "audit": "recourse_audit",
    "advice": "advice",
    "transfer": "transfer_report",
    "move_map": "move_map",
    "history": "training_history",
    "sheet": "table_sheet",
    "tradeoff": "tradeoff_beside",
    "lookahead": "lookahead_beside",
    "collective": "collective_beside",
    "population": "population_beside",
}
"""What the page tells of, by the name it has there."""


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
