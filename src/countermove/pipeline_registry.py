"""Which pipelines there are."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from kedro.pipeline import Pipeline

CHAIN = ("ingest", "training", "recourse", "evaluation", "reporting")
IN_PARTS = ("ingest_parts", "training_parts", "population")
ALONE = (
    *CHAIN,
    *IN_PARTS,
    *("sweep", "paper", "lookahead", "estimate_people", "collective", "score", "audit"),
)
"""Pipelines that are modules of their own."""


class SumOfModules(Pipeline):
    """The pipelines of some modules, imported when somebody looks at the nodes.

    Listing names, and running one pipeline, then takes no import of the others.
    """

    def __init__(self, *names: str) -> None:
        self._names = names

    def __getattr__(self, name: str) -> Any:
        """Make the nodes: nothing that a pipeline has is there yet."""
        known = vars(self)
        if name.startswith("__") or "_nodes" in known or "_names" not in known:
            raise AttributeError(f"a pipeline has no attribute {name!r}")
        modules = (import_module(f"countermove.pipelines.{each}") for each in self._names)
        made = sum((module.create_pipeline() for module in modules), Pipeline([]))
        known.update(vars(made))
        return getattr(self, name)


def register_pipelines() -> dict[str, Pipeline]:
    """Return every pipeline by name.

    ``serm`` runs from the raw table to the report in one chain and is the default;
    its parts meet in the catalog only, so each also runs alone on what an earlier
    run left. ``serm_parts`` is the chain for tables that do not fit into memory. The others
    stand beside: each says in its module what it does.
    """
    chain = SumOfModules(*CHAIN)
    return {
        **{name: SumOfModules(name) for name in ALONE},
        "serm": chain,
        "__default__": chain,
        "serm_parts": SumOfModules(*IN_PARTS),
        "retrain": SumOfModules("ingest", "retrain"),
        "adopt": SumOfModules("ingest", "adopt"),
    }
