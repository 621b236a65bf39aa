"""Collective: how people can help somebody through the retraining, and how a platform sees it."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from countermove.pipelines.collective import nodes


def create_pipeline(**_: object) -> Pipeline:
    """Return the collective pipeline."""
    settings, seed, people = "params:collective", "params:seed", "collective_people"
    found = ["collective_curves", "collective_picture", "collective_facts"]
    losses, centroids = "collective_losses", "collective_centroids"
    shown, page = [*found, losses, settings], "collective_page"
    return Pipeline(
        [
            Node(nodes.prepare, ["tables", settings, seed], people, name="prepare_collective"),
            Node(nodes.measure, [people, settings, seed], found, name="measure_collective"),
            Node(nodes.draw_losses, [*found, settings], losses, name="draw_collective_losses"),
            Node(nodes.draw_centroids, found[1:], centroids, name="draw_centroids"),
            Node(nodes.write_page, shown, page, name="write_collective_page"),
        ],
        namespace="collective",
        prefix_datasets_with_namespace=False,
    )
