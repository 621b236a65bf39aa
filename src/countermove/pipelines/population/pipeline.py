"""A population in parts answers the rules trained for it."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from countermove.pipelines.population import nodes


def create_pipeline(**_: object) -> Pipeline:
    """Return the population pipeline."""
    steps = [
        Node(
            nodes.answer,
            [
                f"parts_{rule}_model",
                "model_input_parts",
                f"answered_{rule}_folder",
                "schema",
                "params:serm",
                "params:execution",
            ],
            f"answered_{rule}",
            name=f"answer_{rule}",
        )
        for rule in ("blind", "strategic")
    ]
    last = Node(
        nodes.sum_up,
        ["answered_blind", "answered_strategic", "params:execution"],
        "population_report",
        name="sum_up_population",
    )
    return Pipeline([*steps, last], namespace="population", prefix_datasets_with_namespace=False)
