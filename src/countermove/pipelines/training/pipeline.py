"""Training: people's response sits inside the loss."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from countermove.pipelines.training import nodes


def create_pipeline(**_: object) -> Pipeline:
    """Return the training pipeline."""
    inputs = [
        "train_rows",
        "validation_rows",
        "schema",
        "standardiser",
        "params:serm",
        "params:seed",
    ]
    return Pipeline(
        [
            Node(nodes.train_blind, inputs, ["blind_model", "blind_history"], name="train_blind"),
            Node(
                nodes.train_strategic,
                inputs,
                ["strategic_model", "strategic_history"],
                name="train_strategic",
            ),
            Node(
                nodes.keep_history,
                ["blind_history", "strategic_history"],
                "training_history",
                name="keep_history",
            ),
        ],
        namespace="training",
        prefix_datasets_with_namespace=False,
    )
