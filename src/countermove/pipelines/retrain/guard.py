"""Before a retraining: one run at a time, and whatever the last one left is put in order."""

from __future__ import annotations

import logging
import sys
from contextlib import ExitStack, suppress
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from kedro.framework.hooks import hook_impl

from countermove.errors import (
    AfterDecisionError,
    BlockedError,
    ModelFileError,
    NothingNewError,
    ParameterError,
    ours,
    shown,
)
from countermove.production.endings import AFTER_DECISION, Ending, ending_of_error, outcome_record

if TYPE_CHECKING:
    from kedro.framework.context import KedroContext
    from kedro.io import DataCatalog
    from kedro.pipeline import Pipeline

    from countermove.params import RetrainParameters
    from countermove.production.history import DecisionHistory
    from countermove.production.registry import Decision, Registry

logger = logging.getLogger(__name__)
PIPELINE = "retrain"
CHANGING = frozenset({PIPELINE, "adopt"})
"""Pipelines that may change the champion, alone or among others of one run."""


def _changes_champion(run_params: dict[str, Any]) -> bool:
    return not CHANGING.isdisjoint(run_params.get("pipeline_names") or ())


class RetrainHook:
    """Hold the lock of the dataset from before the first node to after the last."""

    def __init__(self) -> None:
        self._held = ExitStack()
        self._lock = Path()
        self._given: dict[str, Any] = {}
        self._settings: RetrainParameters  # once a run asks for them
        self._found: list[str] = []
        self._decided_before = 0
        self._waiting: list[str] = []

    @hook_impl
    def after_context_created(self, context: KedroContext) -> None:
        """Remember where the lock lies; the settings are read by runs that change the champion."""
        self._lock = lock_of(context)
        self._given = context.config_loader["parameters"].get(PIPELINE, {})

    @hook_impl
    def before_pipeline_run(
        self, run_params: dict[str, Any], pipeline: Pipeline, catalog: DataCatalog
    ) -> None:
        """Take the lock, recover, say what was found, and leave where nothing is new."""
        if not _changes_champion(run_params):
            return
        from countermove.params import RetrainParameters
        from countermove.production.lock import held
        from countermove.production.registry import recover

        self._settings = RetrainParameters.model_validate(self._given)
        with ExitStack() as held_so_far:
            died = held_so_far.enter_context(held(self._lock, self._settings.wait_seconds))
            registry, history = catalog.load("registry"), catalog.load("history")
            held_so_far.enter_context(history.alone())
            self._found = _told(died, recover(registry))
            for sentence in self._found:
                logger.warning("after an interrupted run: %s", sentence)
            history.note(registry.time(), self._found)
            decisions = registry.decisions()
            if registry.signer.keys:
                _check_whole(decisions, history)
            history.add_decisions(decisions)
            self._decided_before = len(decisions)
            if "batch_facts" in pipeline.all_outputs():
                self._leave_if_nothing_is_new(registry, catalog, run_params["pipeline_names"])
            # Kedro reports no error to hooks up to here: only now may the lock outlive the block.
            self._held = held_so_far.pop_all()

    def _leave_if_nothing_is_new(
        self, registry: Registry, catalog: DataCatalog, names: list[str]
    ) -> None:
        """Raise before any node runs; what blocks a run is reported by the node that reads rows."""
        from kedro.io import DatasetError

        from countermove.production.retraining.ledger import BatchLedger

        with suppress(BlockedError, DatasetError):
            try:
                files = catalog.load("labelled_batches")
                chosen = BatchLedger(registry).check_new(files, self._settings.ready)
            except NothingNewError as nothing:
                self._write_outcome(catalog, ending_of_error(nothing), None, str(nothing))
                others = [name for name in names if name not in CHANGING]
                if others:  # They have not run: a run that ends well would hide it.
                    raise ParameterError(
                        f"{nothing}; {', '.join(others)} did not run either. Give each pipeline a "
                        f"run of its own: kedro run --pipeline={others[0]}"
                    ) from nothing
                _skip_in_airflow(nothing)
                raise
            self._waiting = chosen.waiting
            for sentence in chosen.waiting:
                logger.warning(sentence)

    @hook_impl(trylast=True)
    def after_pipeline_run(
        self, run_params: dict[str, Any], pipeline: Pipeline, catalog: DataCatalog
    ) -> None:
        """Say what was decided, let the next run in, and end the command with its code."""
        if not _changes_champion(run_params):
            return
        self._held.close()
        if "retrain_outcome" not in pipeline.all_outputs():
            return
        ended = catalog.load("retrain_outcome")
        found = {"found": self._found, "waiting": self._waiting}
        catalog.save("retrain_outcome", ended | found)
        logger.info("%s: champion %s", ended["outcome"], ended["champion_after"])
        for reason in ended["reasons"]:
            logger.info("  %s", reason)
        command = click.get_current_context(silent=True)
        if command is not None and ended["code"]:
            command.exit(ended["code"])

    @hook_impl
    def on_pipeline_error(
        self, error: Exception, run_params: dict[str, Any], catalog: DataCatalog
    ) -> None:
        """Record why the run stopped, let the next one in, and say whether a decision stands."""
        if not _changes_champion(run_params):
            return
        with self._held:
            stopped = ours(error) or error
            if isinstance(stopped, BlockedError):
                from countermove.production.retraining.promotion import record_blocked

                record_blocked(catalog.load("registry"), catalog.load("history"), str(stopped))
            decision = self._decided(catalog)
            if decision is None:
                self._write_outcome(catalog, ending_of_error(stopped), None, str(stopped))
                return
            words = (
                f"decision {decision['version']} stands ({decision['outcome']}; champion "
                f"{decision['champion_after']}), but what follows it failed: "
                f"{type(stopped).__name__}: {stopped}"
            )
            self._write_outcome(catalog, AFTER_DECISION, decision, words)
            raise AfterDecisionError(f"{words}. {AFTER_DECISION.to_do} writes the page") from error

    def _decided(self, catalog: DataCatalog) -> dict[str, Any] | None:
        """Return what this run decided about a challenger before it failed; None: nothing."""
        try:
            decisions = catalog.load("registry").decisions()[self._decided_before :]
        except Exception as error:  # noqa: BLE001  (Kedro wraps whatever a registry raises)
            logger.warning("whether a decision was made cannot be read: %s", error)
            return None
        made = [each for each in decisions if each.outcome in ("promoted", "kept")]
        return asdict(made[-1]) if made else None

    def _write_outcome(
        self,
        catalog: DataCatalog,
        ending: Ending,
        decision: dict[str, Any] | None,
        words: str,
    ) -> None:
        try:
            catalog.save("retrain_outcome", outcome_record(ending, decision, words, self._found))
        except Exception as error:  # noqa: BLE001  (the disk may be what stopped the run)
            logger.warning("retrain_outcome.json was not written: %s", ours(error) or error)


def _skip_in_airflow(nothing: NothingNewError) -> None:
    """Mark Airflow's task as skipped, and what follows it; elsewhere do nothing."""
    if "airflow" in sys.modules:
        raise import_module("airflow.exceptions").AirflowSkipException(str(nothing)) from nothing


def _told(died: str | None, recovered: list[str]) -> list[str]:
    """Return what a run's successor says: who was killed, and what was put in order."""
    if died is None:
        return recovered
    left = "what it left was put in order" if recovered else "it left nothing half done"
    return [f"{died} was killed or its machine went down; {left}", *recovered]


def _check_whole(decisions: list[Decision], history: DecisionHistory) -> None:
    """Refuse a signed registry that lacks decisions which the history knows."""
    known = {decision.version for decision in decisions}
    lost = [version for version in history.decisions()["version"] if version not in known]
    if lost:
        raise ModelFileError(
            f"the history has decisions that the signed registry lacks: {shown(lost)}; records "
            "were deleted, or an older copy was put in its place: restore it, or, if it was begun "
            "again on purpose, give it another history"
        )


def lock_of(context: KedroContext) -> Path:
    """Return the lock of the dataset a context is for; on this machine, wherever the registry."""
    dataset = str(context.config_loader["parameters"]["dataset"])
    return Path(context.project_path, "data", "06_models", dataset, ".retrain.lock")
