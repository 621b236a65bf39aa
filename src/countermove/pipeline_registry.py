"""Which pipelines there are."""

from __future__ import annotations

from kedro.pipeline import Pipeline

from countermove.pipelines import (
    collective,
    estimate_people,
    evaluation,
    ingest,
    ingest_parts,
    lookahead,
    population,
    recourse,
    recourse_experiments,
    recourse_text,
    reporting,
    retrain,
    run_times,
    score,
    stylised,
    sweep,
    tradeoff,
    training,
    training_parts,
    transfer_experiments,
)


def register_pipelines() -> dict[str, Pipeline]:
    """Return every pipeline by name.

    ``serm`` walks from the raw table to the report in one chain and is the default;
    its parts meet in the catalog only, so each also runs alone on what an earlier
    run left. ``serm_parts`` is the chain for tables that do not fit into memory. The others
    stand beside: each says in its module what it does.
    """
    parts = {
        "ingest": ingest.create_pipeline(),
        "training": training.create_pipeline(),
        "recourse": recourse.create_pipeline(),
        "evaluation": evaluation.create_pipeline(),
        "reporting": reporting.create_pipeline(),
    }
    chain = sum(parts.values(), Pipeline([]))
    in_parts = {
        "ingest_parts": ingest_parts.create_pipeline(),
        "training_parts": training_parts.create_pipeline(),
        "population": population.create_pipeline(),
    }
    beside = {
        **in_parts,
        "serm_parts": sum(in_parts.values(), Pipeline([])),
        "sweep": sweep.create_pipeline(),
        "run_times": run_times.create_pipeline(),
        "stylised": stylised.create_pipeline(),
        "recourse_experiments": recourse_experiments.create_pipeline(),
        "recourse_text": recourse_text.create_pipeline(),
        "transfer_experiments": transfer_experiments.create_pipeline(),
        "tradeoff": tradeoff.create_pipeline(),
        "lookahead": lookahead.create_pipeline(),
        "estimate_people": estimate_people.create_pipeline(),
        "collective": collective.create_pipeline(),
        "retrain": parts["ingest"] + retrain.create_pipeline(),
        "score": score.create_pipeline(),
    }
    return parts | {"serm": chain, "__default__": chain} | beside
