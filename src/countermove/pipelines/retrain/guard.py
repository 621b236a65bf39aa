"""Before a retraining: one run at a time, and whatever the last one left is put in order."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from kedro.framework.context import KedroContext
from kedro.framework.hooks import hook_impl
from kedro.io import DataCatalog
from kedro.pipeline import Pipeline

from countermove.errors import BlockedError, ours
from countermove.params import RetrainParameters

logger = logging.getLogger(__name__)
PIPELINE = "retrain"


class RetrainHook:
    """Hold the lock of the dataset from before the first node to after the last."""

    def __init__(self) -> None:
        self._held = ExitStack()
        self._lock, self._wait_seconds = Path(), 0.0

    @hook_impl
    def after_context_created(self, context: KedroContext) -> None:
        """Remember where the lock lies, and how long a run waits for it."""
        self._lock = lock_of(context)
        params = context.config_loader["parameters"]
        settings = RetrainParameters.model_validate(params.get(PIPELINE, {}))
        self._wait_seconds = settings.wait_seconds

    @hook_impl
    def before_pipeline_run(self, run_params: dict[str, Any], catalog: DataCatalog) -> None:
        """Take the lock, recover, and say what was found."""
        if run_params.get("pipeline_names") != [PIPELINE]:
            return
        from countermove.production.lock import held
        from countermove.production.registry import recover

        with ExitStack() as held_so_far:
            held_so_far.enter_context(held(self._lock, self._wait_seconds))
            registry, history = catalog.load("registry"), catalog.load("history")
            held_so_far.enter_context(history.alone())
            found = recover(registry)
            for sentence in found:
                logger.warning("after an interrupted run: %s", sentence)
            history.note(registry.time(), found)
            history.add_decisions(registry.decisions())
            # Kedro reports no error to hooks up to here: only now may the lock outlive the block.
            self._held = held_so_far.pop_all()

    @hook_impl
    def after_pipeline_run(
        self, run_params: dict[str, Any], pipeline: Pipeline, catalog: DataCatalog
    ) -> None:
        """Say what was decided, and let the next run in."""
        if run_params.get("pipeline_names") != [PIPELINE]:
            return
        self._held.close()
        if "decision" not in pipeline.all_outputs():
            return
        decision = catalog.load("decision")
        logger.info("%s: champion %s", decision["outcome"], decision["champion_after"])
        for reason in decision["reasons"]:
            logger.info("  %s", reason)

    @hook_impl
    def on_pipeline_error(
        self, error: Exception, run_params: dict[str, Any], catalog: DataCatalog
    ) -> None:
        """Record that rows stopped the run, if they did, and let the next one in."""
        stopped = ours(error)
        if run_params.get("pipeline_names") == [PIPELINE] and isinstance(stopped, BlockedError):
            from countermove.production.retraining.promotion import record_blocked

            record_blocked(catalog.load("registry"), catalog.load("history"), str(stopped))
        self._held.close()


def lock_of(context: KedroContext) -> Path:
    """Return the lock of the dataset a context is for; on this machine, wherever the registry."""
    dataset = str(context.config_loader["parameters"]["dataset"])
    return Path(context.project_path, "data", "06_models", dataset, ".retrain.lock")
