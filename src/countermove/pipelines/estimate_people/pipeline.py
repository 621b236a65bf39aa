"""Estimating the people: what the last deployment says about cost and behaviour."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from countermove.pipelines.estimate_people import nodes


def create_pipeline(**_: object) -> Pipeline:
    """Return the estimate-people pipeline."""
    facts, figure = "people_estimate", "people_estimate_figure"
    settings = ["people_estimate_settings", "people_estimate_robust_settings"]
    return Pipeline(
        [
            Node(
                nodes.estimate,
                [
                    "recourse_model",
                    "people_before",
                    "people_after",
                    "schema",
                    "params:serm",
                    "params:estimate_people",
                ],
                [facts, *settings],
                name="estimate_people",
            ),
            Node(nodes.draw, facts, figure, name="draw_people_estimate"),
            Node(
                nodes.write_page,
                [facts, figure],
                "people_estimate_page",
                name="write_people_estimate_page",
            ),
        ],
        namespace="estimate_people",
        prefix_datasets_with_namespace=False,
    )
