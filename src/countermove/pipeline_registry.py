"""Which pipelines there are."""

from __future__ import annotations

from kedro.pipeline import Pipeline

from countermove.pipelines import (
    estimate_people,
    evaluation,
    ingest,
    ingest_parts,
    recourse,
    recourse_experiments,
    reporting,
    run_times,
    sweep,
    training,
)


def register_pipelines() -> dict[str, Pipeline]:
    """Return every pipeline by name.

    ``serm`` walks from the raw table to the report in one chain and is the default;
    its parts meet in the catalog only, so each also runs alone on what an earlier
    run left. ``ingest_parts`` reads a table a part at a time, ``sweep`` repeats training
    over a grid, ``run_times`` times it, ``recourse_experiments`` trains for recourse over a
    grid, ``estimate_people`` learns from the last deployment how people answer.
    """
    parts = {
        "ingest": ingest.create_pipeline(),
        "training": training.create_pipeline(),
        "recourse": recourse.create_pipeline(),
        "evaluation": evaluation.create_pipeline(),
        "reporting": reporting.create_pipeline(),
    }
    chain = sum(parts.values(), Pipeline([]))
    beside = {
        "ingest_parts": ingest_parts.create_pipeline(),
        "sweep": sweep.create_pipeline(),
        "run_times": run_times.create_pipeline(),
        "recourse_experiments": recourse_experiments.create_pipeline(),
        "estimate_people": estimate_people.create_pipeline(),
    }
    return parts | {"serm": chain, "__default__": chain} | beside
