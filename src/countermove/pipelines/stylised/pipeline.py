"""Stylised: what happens when the cost is not simply given."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from countermove.pipelines.stylised import nodes
from countermove.pipelines.sweep.nodes import write_page


def create_pipeline(**_: object) -> Pipeline:
    """Return the stylised pipeline."""
    parameters = "params:stylised"
    return Pipeline(
        [
            Node(
                nodes.run,
                [parameters, "params:execution", "params:seed"],
                ["stylised_cells", "stylised_picture"],
                name="run_stylised",
            ),
            Node(
                nodes.draw,
                ["stylised_picture", parameters],
                "stylised_figure",
                name="draw_stylised",
            ),
            Node(write_page, "stylised_figure", "stylised_page", name="write_stylised_page"),
        ],
        namespace="stylised",
        prefix_datasets_with_namespace=False,
    )
