"""From a batch of applicants to what each of them is told."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from countermove.pipelines.score import nodes


def create_pipeline(**_: object) -> Pipeline:
    """Return the score pipeline."""
    told = Node(
        nodes.score,
        [
            "applicants", "registry", "scored_folder", "schema", "params:serm", "params:recourse",
            "params:score", "params:execution", "params:seed",
        ],
        "score_report",
        name="score_batch",
    )  # fmt: skip
    return Pipeline([told], namespace="score", prefix_datasets_with_namespace=False)
