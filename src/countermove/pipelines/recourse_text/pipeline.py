"""Recourse on texts: Table 5 of the recourse paper is one configuration."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from countermove.pipelines.recourse_text import nodes


def create_pipeline(**_: object) -> Pipeline:
    """Return the recourse-text pipeline."""
    given = ["texts", "sentence_vectors", "params:recourse_text"]
    cells, means, advice = "recourse_text_cells", "recourse_text_means", "recourse_text_advice"
    return Pipeline(
        [
            Node(nodes.train_and_measure, given, [cells, advice], name="train_on_texts"),
            Node(nodes.average, cells, means, name="average_over_text_splits"),
        ],
        namespace="recourse_text",
        prefix_datasets_with_namespace=False,
    )
