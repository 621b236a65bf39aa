"""Run times: what counting on people's answers costs."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from countermove.pipelines.run_times import nodes
from countermove.pipelines.sweep.nodes import write_page


def create_pipeline(**_: object) -> Pipeline:
    """Return the run-times pipeline."""
    inputs = ["tables", "params:run_times", "params:seed"]
    return Pipeline(
        [
            Node(nodes.measure, inputs, "run_times_cells", name="measure"),
            Node(
                nodes.draw,
                ["run_times_cells", "params:run_times"],
                "run_times_figure",
                name="draw_run_times",
            ),
            Node(write_page, "run_times_figure", "run_times_page", name="write_run_times_page"),
        ],
        namespace="run_times",
        prefix_datasets_with_namespace=False,
    )
