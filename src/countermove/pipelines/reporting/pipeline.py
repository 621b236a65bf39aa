"""Reporting: what a person looks at."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from countermove.pipelines.reporting import nodes


def create_pipeline(**_: object) -> Pipeline:
    """Return the reporting pipeline."""
    return Pipeline(
        [
            Node(nodes.draw_accuracy, "metrics", "accuracy_figure", name="draw_accuracy"),
            Node(nodes.draw_transfer, "transfer_report", "transfer_figure", name="draw_transfer"),
            Node(
                nodes.write_page,
                [
                    "metrics",
                    "certificates",
                    "accuracy_figure",
                    "transfer_report",
                    "transfer_figure",
                ],
                "report",
                name="write_page",
            ),
        ],
        namespace="reporting",
        prefix_datasets_with_namespace=False,
    )
