"""Collective: how people can help somebody through the retraining, and how a platform sees it."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from countermove.pipelines.collective import nodes


def create_pipeline(**_: object) -> Pipeline:
    """Return the collective pipeline."""
    said, seed = "params:collective", "params:seed"
    people, curves, picture = "collective_people", "collective_curves", "collective_picture"
    facts, losses, centroids = "collective_facts", "collective_losses", "collective_centroids"
    page = "collective_page"
    return Pipeline(
        [
            Node(nodes.prepare, ["tables", said, seed], people, name="prepare_collective"),
            Node(nodes.follow_budgets, [people, said], curves, name="follow_budgets"),
            Node(nodes.place_everybody, [people, said, seed], picture, name="place_everybody"),
            Node(nodes.answer, [people, curves, said, seed], facts, name="answer_collective"),
            Node(nodes.draw_losses, [curves, facts], losses, name="draw_collective_losses"),
            Node(nodes.draw_centroids, [picture, facts], centroids, name="draw_centroids"),
            Node(nodes.write_page, [losses, centroids, facts], page, name="write_collective_page"),
        ],
        namespace="collective",
        prefix_datasets_with_namespace=False,
    )
