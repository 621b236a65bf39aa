"""Look-ahead: a figure of the look-ahead paper is one configuration."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from countermove.pipelines.lookahead import nodes


def create_pipeline(**_: object) -> Pipeline:
    """Return the look-ahead pipeline."""
    said, people = "params:lookahead", "lookahead_people"
    cells, means = "lookahead_cells", "lookahead_means"
    figure, page, facts = "lookahead_figure", "lookahead_page", "lookahead_facts"
    return Pipeline(
        [
            Node(nodes.prepare, ["tables", "raw_tables", said], people, name="prepare_lookahead"),
            Node(nodes.measure, [people, said, "params:seed"], cells, name="measure_lookahead"),
            Node(nodes.sum_up, [cells, said], means, name="sum_lookahead_up"),
            Node(nodes.draw, [cells, means, said], figure, name="draw_lookahead"),
            Node(nodes.write_page, [figure, means], page, name="write_lookahead_page"),
            Node(nodes.state, [people, means, said, "params:seed"], facts, name="state_lookahead"),
        ],
        namespace="lookahead",
        prefix_datasets_with_namespace=False,
    )
