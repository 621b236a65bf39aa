"""A population in parts answers the rules trained for it."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from countermove.pipelines.population import nodes


def create_pipeline(**_: object) -> Pipeline:
    """Return the population pipeline."""
    rules = {"blind": "parts_blind_model", "strategic": "parts_recourse_model"}
    people = ["schema", "params:serm"]
    promised = [*people, "params:recourse"]
    answers = [
        Node(
            nodes.answer,
            [model, "model_input_parts", f"answered_{rule}_folder", *people, "params:execution"],
            f"answered_{rule}",
            name=f"answer_{rule}",
        )
        for rule, model in rules.items()
    ]
    steps = [
        Node(
            nodes.calibrate,
            ["parts_strategic_model", "model_input_parts", *promised, "params:seed"],
            ["parts_recourse_model", "parts_calibration"],
            name="calibrate_parts",
        ),
        *answers,
        Node(
            nodes.advise,
            [
                rules["strategic"], "model_input_parts", "advised_folder", *promised,
                "params:execution", "params:seed",
            ],
            "advised_run",
            name="advise_parts",
        ),
        Node(
            nodes.sum_up,
            [
                "answered_blind", "answered_strategic", "advised_run", "parts_calibration",
                "params:execution",
            ],
            "population_report",
            name="sum_up_population",
        ),
        Node(
            nodes.write_page,
            ["population_report", "params:dataset"],
            "population_page",
            name="write_population_page",
        ),
    ]  # fmt: skip
    return Pipeline(steps, namespace="population", prefix_datasets_with_namespace=False)
