"""Which pipelines there are."""

from __future__ import annotations

from importlib import import_module

from kedro.pipeline import Pipeline

from countermove.pipelines import (
    adopt,
    audit,
    collective,
    estimate_people,
    evaluation,
    ingest,
    ingest_parts,
    lookahead,
    paper,
    population,
    recourse,
    reporting,
    retrain,
    score,
    sweep,
    training,
    training_parts,
)


def register_pipelines() -> dict[str, Pipeline]:
    """Return every pipeline by name.

    ``serm`` runs from the raw table to the report in one chain and is the default;
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
        "paper": paper.create_pipeline(),
        "lookahead": lookahead.create_pipeline(),
        "estimate_people": estimate_people.create_pipeline(),
        "collective": collective.create_pipeline(),
        "retrain": parts["ingest"] + retrain.create_pipeline(),
        "score": score.create_pipeline(),
        "audit": audit.create_pipeline(),
        "adopt": parts["ingest"] + adopt.create_pipeline(),
    }
    return parts | {"serm": chain, "__default__": chain} | beside


COMPOSED = {
    "serm": "From the raw table to the report: ingest, training, recourse, evaluation, reporting.",
    "serm_parts": "The same for a table in parts that does not fit into memory.",
}
"""Pipelines that are sums of others; each of the rest has its sentence in its own module."""


def pipeline_sentences() -> dict[str, str]:
    """Return what every pipeline does, in one sentence each, by name."""
    names = [name for name in register_pipelines() if name != "__default__"]
    first = [name for name in COMPOSED if name in names]
    return {
        name: COMPOSED.get(name) or _sentence(name)
        for name in (*first, *(name for name in names if name not in COMPOSED))
    }


def _sentence(name: str) -> str:
    """Return the first line of a pipeline's module, without its name."""
    module = import_module(f"countermove.pipelines.{name}")
    first = (module.__doc__ or "").splitlines()[0]
    line = first.partition(": ")[2] or first
    return line[:1].upper() + line[1:]
