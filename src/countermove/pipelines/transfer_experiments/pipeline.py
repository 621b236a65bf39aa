"""Transfer experiments: a figure of the transferability paper is one configuration."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from countermove.pipelines.transfer_experiments import nodes


def create_pipeline(**_: object) -> Pipeline:
    """Return the transfer-experiments pipeline."""
    said = "params:transfer_experiments"
    cells, means = "transfer_experiment_cells", "transfer_experiment_means"
    figure, page = "transfer_experiment_figure", "transfer_experiment_page"
    return Pipeline(
        [
            Node(
                nodes.measure,
                ["tables", said, "params:execution", "params:seed"],
                cells,
                name="measure_transfer",
            ),
            Node(nodes.sum_up, [cells, said], means, name="sum_transfer_up"),
            Node(nodes.draw, [cells, means, said], figure, name="draw_transfer_experiment"),
            Node(nodes.write_page, [figure, means], page, name="write_transfer_experiment_page"),
        ],
        namespace="transfer_experiments",
        prefix_datasets_with_namespace=False,
    )
