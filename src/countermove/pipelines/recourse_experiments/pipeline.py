"""Recourse experiments: a table or figure of the recourse paper is one configuration."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from countermove.pipelines.recourse_experiments import nodes
from countermove.pipelines.sweep.nodes import write_page


def create_pipeline(**_: object) -> Pipeline:
    """Return the recourse-experiments pipeline."""
    said = "params:recourse_experiments"
    cells, means = "recourse_experiment_cells", "recourse_experiment_means"
    figure, page = "recourse_experiment_figure", "recourse_experiment_page"
    return Pipeline(
        [
            Node(nodes.train_and_measure, ["tables", said], cells, name="train_and_measure"),
            Node(nodes.average, cells, means, name="average_over_splits"),
            Node(nodes.draw, [means, said], figure, name="draw_recourse_experiment"),
            Node(write_page, figure, page, name="write_recourse_experiment_page"),
        ],
        namespace="recourse_experiments",
        prefix_datasets_with_namespace=False,
    )
