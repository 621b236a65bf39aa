"""Which pipelines there are."""

from __future__ import annotations

from kedro.pipeline import Pipeline

from countermove.pipelines import (
    evaluation,
    ingest,
    recourse,
    reporting,
    run_times,
    sweep,
    training,
)


def register_pipelines() -> dict[str, Pipeline]:
    """Return every pipeline by name.

    ``serm`` walks from the raw table to the report in one chain and is the default;
    its parts meet in the catalog only, so each also runs alone on what an earlier
    run left. ``sweep`` repeats training over a grid, ``run_times`` times it.
    """
    parts = {
        "ingest": ingest.create_pipeline(),
        "training": training.create_pipeline(),
        "recourse": recourse.create_pipeline(),
        "evaluation": evaluation.create_pipeline(),
        "reporting": reporting.create_pipeline(),
    }
    chain = sum(parts.values(), Pipeline([]))
    experiments = {"sweep": sweep.create_pipeline(), "run_times": run_times.create_pipeline()}
    return parts | {"serm": chain, "__default__": chain} | experiments
