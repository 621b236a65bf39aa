"""Recourse experiments: a table or figure of the recourse paper is one configuration."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from countermove.pipelines.recourse_experiments import nodes


def create_pipeline(**_: object) -> Pipeline:
    """Return the recourse-experiments pipeline."""
    said = "params:recourse_experiments"
    cells, means = "recourse_experiment_cells", "recourse_experiment_means"
    examples, figure = "recourse_experiment_examples", "recourse_experiment_figure"
    shown, page = [figure, means, examples], "recourse_experiment_page"
    measured = [cells, examples]
    return Pipeline(
        [
            Node(
                nodes.train_and_measure,
                ["tables", said, "params:execution"],
                measured,
                name="train_and_measure",
            ),
            Node(nodes.average, cells, means, name="average_over_splits"),
            Node(nodes.draw, [cells, said], figure, name="draw_recourse_experiment"),
            Node(nodes.write_page, shown, page, name="write_recourse_experiment_page"),
        ],
        namespace="recourse_experiments",
        prefix_datasets_with_namespace=False,
    )
