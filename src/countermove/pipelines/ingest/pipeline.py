"""Ingest: what the table says, in four standardised parts."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from countermove.pipelines.ingest import nodes


def create_pipeline(**_: object) -> Pipeline:
    """Return the ingest pipeline."""
    steps = [
        Node(nodes.clean_table, ["raw", "schema"], "typed", name="clean_table"),
        Node(
            nodes.split,
            ["typed", "schema", "params:ingest", "params:seed"],
            [f"{part}_table" for part in nodes.SPLITS],
            name="split",
        ),
        Node(
            nodes.fit_standardiser,
            ["train_table", "schema", "params:ingest"],
            "standardiser",
            name="fit_standardiser",
        ),
    ]
    steps += [
        Node(
            nodes.standardise,
            [f"{part}_table", "schema", "standardiser"],
            f"{part}_rows",
            name=f"standardise_{part}",
        )
        for part in nodes.SPLITS
    ]
    return Pipeline(steps, namespace="ingest", prefix_datasets_with_namespace=False)
