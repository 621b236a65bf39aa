"""Which pipelines there are."""

from __future__ import annotations

from kedro.pipeline import Pipeline

from countermove.pipelines import evaluation, ingest, recourse, reporting, training


def register_pipelines() -> dict[str, Pipeline]:
    """Return every pipeline by name.

    ``serm`` walks all of them in one chain and is the default; its parts meet
    in the catalog only, so each also runs alone on what an earlier run left.
    """
    parts = {
        "ingest": ingest.create_pipeline(),
        "training": training.create_pipeline(),
        "recourse": recourse.create_pipeline(),
        "evaluation": evaluation.create_pipeline(),
        "reporting": reporting.create_pipeline(),
    }
    chain = sum(parts.values(), Pipeline([]))
    return parts | {"serm": chain, "__default__": chain}
