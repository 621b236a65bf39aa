"""Retraining: nothing is promoted because it is new, only because it has shown to be better."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from countermove.pipelines.retrain import nodes


def create_pipeline(**_: object) -> Pipeline:
    """Return the retrain pipeline; it begins where ingest ends."""
    places = ["registry", "history"]
    rows = [f"challenger_{part}_rows" for part in ("train", "validation", "calibration")]
    steps = [
        Node(
            nodes.pin_holdout,
            ["registry", "test_table", "standardiser"],
            "holdout_facts",
            name="pin_holdout",
        ),
        Node(
            nodes.gather_batches,
            ["registry", "labelled_batches", "typed", "schema", "params:retrain", "holdout_facts"],
            ["batch_rows", "batch_facts"],
            name="gather_batches",
        ),
        Node(
            nodes.compare_outcomes,
            [*places, "batch_rows", "batch_facts", "schema", "standardiser"],
            "outcomes",
            name="compare_outcomes",
        ),
        Node(
            nodes.compare_drift,
            [
                "registry",
                "batch_rows",
                "batch_facts",
                "calibration_rows",
                "test_rows",
                "schema",
                "standardiser",
                "params:serm",
                "params:retrain",
                "params:seed",
            ],
            "drift",
            name="compare_drift",
        ),
        Node(
            nodes.collect_rows,
            [
                "registry",
                "train_rows",
                "validation_rows",
                "calibration_rows",
                "batch_rows",
                "batch_facts",
                "schema",
                "standardiser",
                "params:ingest",
                "params:serm",
                "params:seed",
            ],
            rows,
            name="collect_rows",
        ),
        Node(
            nodes.train_challenger,
            ["registry", *rows[:2], "schema", "standardiser", "params:serm", "params:seed"],
            "challenger",
            name="train_challenger",
        ),
        Node(
            nodes.calibrate_challenger,
            ["challenger", rows[2], rows[1], rows[0], "schema", "params:serm", "params:recourse"],
            ["calibrated_challenger", "challenger_calibration"],
            name="calibrate_challenger",
        ),
        Node(
            nodes.judge,
            [
                "registry",
                "calibrated_challenger",
                "challenger_calibration",
                "test_rows",
                "schema",
                "params:serm",
                "params:evaluation",
                "params:retrain",
            ],
            "judgement",
            name="judge",
        ),
        Node(
            nodes.decide,
            [
                *places,
                "calibrated_challenger",
                "challenger_calibration",
                "judgement",
                "batch_facts",
                "holdout_facts",
                "outcomes",
                "drift",
                rows[0],
            ],
            "decision",
            name="decide",
        ),
        Node(
            nodes.write_page,
            ["decision", "drift"],
            ["retraining_page", "retrain_outcome"],
            name="write_page",
        ),
    ]
    return Pipeline(steps, namespace="retrain", prefix_datasets_with_namespace=False)
