"""Training for tables in parts."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from countermove.pipelines.training_parts import nodes


def create_pipeline(**_: object) -> Pipeline:
    """Return the training pipeline for tables in parts."""
    rows = ["model_input_parts", "schema", "parts_standardiser"]
    inputs = [*rows, "params:serm", "params:execution", "params:seed"]
    return Pipeline(
        [
            Node(nodes.train_blind, inputs, "parts_blind_model", name="train_blind_parts"),
            Node(
                nodes.train_strategic, inputs, "parts_strategic_model", name="train_strategic_parts"
            ),
        ],
        namespace="training_parts",
        prefix_datasets_with_namespace=False,
    )
