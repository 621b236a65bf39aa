"""Sweep: every rule on a grid of datasets, splits, costs and strengths (SERM, Figure 1)."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from countermove.pipelines.sweep import nodes


def create_pipeline(**_: object) -> Pipeline:
    """Return the sweep pipeline."""
    return Pipeline(
        [
            Node(
                nodes.run,
                ["tables", "sweep_store", "params:sweep", "params:execution", "params:seed"],
                "sweep_cells",
                name="run",
            ),
            Node(nodes.draw, ["sweep_cells", "params:sweep"], "sweep_figure", name="draw"),
            Node(
                nodes.write_page,
                ["sweep_cells", "sweep_figure", "params:sweep"],
                "sweep_page",
                name="write_sweep_page",
            ),
        ],
        namespace="sweep",
        prefix_datasets_with_namespace=False,
    )
