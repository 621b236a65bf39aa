"""Look-ahead: people who foresee the next model, retrained on or acting as collectives."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from countermove.pipelines.lookahead import nodes


def create_pipeline(**_: object) -> Pipeline:
    """Return the look-ahead pipeline."""
    people, cells, means = "lookahead_people", "lookahead_cells", "lookahead_means"
    settings, seed, figure = "params:lookahead", "params:seed", "lookahead_figure"
    given, shown = ["tables", "raw_tables", settings], [cells, means, figure, settings]
    stated = [people, means, settings, seed]
    return Pipeline(
        [
            Node(nodes.prepare, given, people, name="prepare_lookahead"),
            Node(nodes.measure, [people, settings, seed], cells, name="measure_lookahead"),
            Node(nodes.average, [cells, settings], means, name="average_lookahead"),
            Node(nodes.draw, [cells, means, settings], figure, name="draw_lookahead"),
            Node(nodes.write_page, shown, "lookahead_page", name="write_lookahead_page"),
            Node(nodes.state, stated, "lookahead_facts", name="state_lookahead"),
        ],
        namespace="lookahead",
        prefix_datasets_with_namespace=False,
    )
