"""Recourse: everyone refused gets a way back, and the promise has a level."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from countermove.pipelines.recourse import nodes


def create_pipeline(**_: object) -> Pipeline:
    """Return the recourse pipeline."""
    parameters = ["schema", "params:serm", "params:recourse"]
    return Pipeline(
        [
            Node(
                nodes.calibrate,
                [
                    "strategic_model",
                    "calibration_rows",
                    "validation_rows",
                    "train_rows",
                    *parameters,
                ],
                ["recourse_model", "recourse_calibration", "recourse_frontier"],
                name="calibrate",
            ),
            Node(
                nodes.advise,
                ["recourse_model", "test_rows", "train_rows", *parameters, "params:seed"],
                ["decisions", "advice", "advice_sheet", "recourse_audit"],
                name="advise",
            ),
        ],
        namespace="recourse",
        prefix_datasets_with_namespace=False,
    )
