"""Evaluation: accuracy before and after response, social measures, bounds."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from countermove.pipelines.evaluation import nodes


def create_pipeline(**_: object) -> Pipeline:
    """Return the evaluation pipeline."""
    return Pipeline(
        [
            Node(
                nodes.evaluate,
                [
                    "blind_model",
                    "recourse_model",
                    "strategic_model",
                    "typed",
                    "test_rows",
                    "schema",
                    "params:serm",
                ],
                "metrics",
                name="evaluate",
            ),
            Node(
                nodes.draw_moves,
                [
                    "blind_model",
                    "recourse_model",
                    "test_rows",
                    "schema",
                    "params:serm",
                    "params:seed",
                ],
                "move_map",
                name="draw_moves",
            ),
            Node(
                nodes.report_transfer,
                [
                    "blind_model",
                    "recourse_model",
                    "train_rows",
                    "validation_rows",
                    "test_rows",
                    "schema",
                    "params:serm",
                    "params:evaluation",
                    "params:seed",
                ],
                "transfer_report",
                name="report_transfer",
            ),
            Node(
                nodes.certify,
                [
                    "recourse_model",
                    "test_rows",
                    "schema",
                    "recourse_calibration",
                    "params:serm",
                    "params:evaluation",
                ],
                "certificates",
                name="certify",
            ),
        ],
        namespace="evaluation",
        prefix_datasets_with_namespace=False,
    )
