"""Trade-off: what a little accuracy buys people."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from countermove.pipelines.tradeoff import nodes


def create_pipeline(**_: object) -> Pipeline:
    """Return the trade-off pipeline."""
    points, plan = "tradeoff_points", "params:tradeoff"
    told = [points, "tradeoff_choices", plan, "tradeoff_figure"]
    return Pipeline(
        [
            Node(
                nodes.trade,
                ["tables", plan, "params:execution", "params:seed"],
                points,
                name="trade",
            ),
            Node(nodes.choose, [points, plan], "tradeoff_choices", name="choose_strengths"),
            Node(nodes.draw, [points, plan], "tradeoff_figure", name="draw_tradeoff"),
            Node(nodes.write_page, told, "tradeoff_page", name="write_tradeoff_page"),
        ],
        namespace="tradeoff",
        prefix_datasets_with_namespace=False,
    )
