"""Ingest a part at a time, for tables that do not fit into memory."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from countermove.pipelines.ingest_parts import nodes


def create_pipeline(**_: object) -> Pipeline:
    """Return the ingest pipeline for tables in parts."""
    steps = [
        Node(
            nodes.place_rows,
            ["raw_parts", "schema", "params:ingest", "params:seed"],
            "places",
            name="place_rows",
        ),
        Node(
            nodes.split,
            ["raw_parts", "schema", "places", "params:ingest"],
            "primary_parts",
            name="split_parts",
        ),
        Node(
            nodes.fit_standardiser,
            ["primary_parts", "schema", "params:ingest"],
            "parts_standardiser",
            name="fit_parts_standardiser",
        ),
        Node(
            nodes.standardise,
            ["primary_parts", "schema", "parts_standardiser"],
            "model_input_parts",
            name="standardise_parts",
        ),
    ]
    return Pipeline(steps, namespace="ingest_parts", prefix_datasets_with_namespace=False)
