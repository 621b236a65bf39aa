"""Paper: a figure or table of a paper is one configuration (conf/paper)."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from countermove.pipelines.paper import nodes


def create_pipeline(**_: object) -> Pipeline:
    """Return the paper pipeline."""
    settings = "params:paper"
    given = ["tables", "texts", "sentence_vectors", settings, "params:execution", "params:seed"]
    cells, beside, means = "paper_cells", "paper_beside", "paper_means"
    found, figure = [cells, beside, means], "paper_figure"
    return Pipeline(
        [
            Node(nodes.measure, given, [cells, beside], name="measure_paper"),
            Node(nodes.average, [cells, settings], means, name="average_paper"),
            Node(nodes.draw, [*found, settings], figure, name="draw_paper"),
            Node(nodes.write_page, [*found, figure, settings], "paper_page", name="write_paper"),
        ],
        namespace="paper",
        prefix_datasets_with_namespace=False,
    )
