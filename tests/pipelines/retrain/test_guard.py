"""The lock of a retraining: held while it runs, and let go whatever happens before."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from kedro.io import DataCatalog, MemoryDataset
from kedro.pipeline import Pipeline, node
from pydantic import ValidationError
from tests.production.faults.dying import FACTS, model

from countermove.errors import (
    AfterDecisionError,
    BlockedError,
    LockedError,
    ModelFileError,
    NothingNewError,
    ParameterError,
    StorageError,
)
from countermove.pipelines.retrain.guard import RetrainHook, lock_of
from countermove.production.history import DecisionHistory
from countermove.production.lock import held
from countermove.production.registry import Decision, Registry, Signer

RUN = {"pipeline_names": ["retrain"]}


@pytest.fixture
def place(tmp_path: Path) -> tuple[RetrainHook, DataCatalog, Path]:
    """A hook that knows its project, the catalog of a run, and the lock."""
    context = SimpleNamespace(
        project_path=tmp_path, config_loader={"parameters": {"dataset": "credit"}}
    )
    hook = RetrainHook()
    hook.after_context_created(context)
    registry = Registry(str(tmp_path / "registry"))
    history = DecisionHistory(f"sqlite:///{tmp_path / 'history.db'}", "credit")
    entries = {"registry": registry, "history": history}
    catalog = DataCatalog(
        {name: MemoryDataset(data, copy_mode="assign") for name, data in entries.items()}
    )
    return hook, catalog, lock_of(context)


def test_the_lock_is_held_from_before_to_after(place):
    hook, catalog, lock = place
    hook.before_pipeline_run(run_params=RUN, pipeline=Pipeline([]), catalog=catalog)
    with pytest.raises(LockedError), held(lock):
        pass
    # A part of the pipeline ends without a decision: nothing is told, the lock is free.
    hook.after_pipeline_run(run_params=RUN, pipeline=Pipeline([]), catalog=catalog)
    with held(lock):
        pass


@pytest.mark.parametrize("names", [["retrain", "score"], ["score", "adopt"], ["adopt"]])
def test_a_retraining_among_other_pipelines_is_locked_recovered_and_checked(place, names):
    hook, catalog, lock = place
    run = {"pipeline_names": names}
    lock.parent.mkdir(parents=True)
    lock.write_text("process 4711 on ws (since 2026-11-16T02:15:00+00:00)")
    hook.before_pipeline_run(run_params=run, pipeline=Pipeline([]), catalog=catalog)
    assert "4711" in catalog.load("history").events()["words"].iloc[0]
    with pytest.raises(LockedError), held(lock):
        pass
    hook.after_pipeline_run(run_params=run, pipeline=Pipeline([]), catalog=catalog)
    with held(lock):
        pass


def test_a_night_without_news_does_not_hide_that_other_pipelines_did_not_run(place):
    hook, catalog, lock = place
    catalog["retrain_outcome"] = MemoryDataset()
    catalog["labelled_batches"] = MemoryDataset([])
    nightly = Pipeline([node(lambda: None, None, "batch_facts")])
    catalog.load("registry").add("000001-x", model(), FACTS)
    promoted = Decision(
        "000001-x", "cold_start", "promoted", "now", None, "000001-x", ["first"], {"batches": {}}
    )
    catalog.load("registry").record(promoted)
    catalog.load("registry").carry_out(promoted)
    with pytest.raises(NothingNewError):
        hook.before_pipeline_run(run_params=RUN, pipeline=nightly, catalog=catalog)
    both = {"pipeline_names": ["retrain", "score"]}
    with pytest.raises(ParameterError, match=r"score did not run either.* --pipeline=score"):
        hook.before_pipeline_run(run_params=both, pipeline=nightly, catalog=catalog)
    with held(lock):
        pass


def test_a_wrong_setting_of_the_retraining_stops_the_retraining_only(place):
    hook, catalog, lock = place
    settings = {"dataset": "credit", "retrain": {"wait_seconds": "abc"}}
    hook.after_context_created(
        SimpleNamespace(project_path=lock.parents[3], config_loader={"parameters": settings})
    )
    serm = {"pipeline_names": ["serm"]}
    hook.before_pipeline_run(run_params=serm, pipeline=Pipeline([]), catalog=catalog)
    with pytest.raises(ValidationError, match="wait_seconds"):
        hook.before_pipeline_run(run_params=RUN, pipeline=Pipeline([]), catalog=catalog)
    with held(lock):
        pass


def test_the_lock_is_let_go_when_a_recovery_fails(place, tmp_path):
    hook, catalog, lock = place
    (tmp_path / "registry").mkdir()
    (tmp_path / "registry" / "champion.json").write_text("{}")
    with pytest.raises(ModelFileError):
        hook.before_pipeline_run(run_params=RUN, pipeline=Pipeline([]), catalog=catalog)
    with held(lock):
        pass


def test_other_pipelines_take_no_lock(place):
    hook, catalog, lock = place
    other = {"pipeline_names": ["serm"]}
    hook.before_pipeline_run(run_params=other, pipeline=Pipeline([]), catalog=catalog)
    with held(lock):
        pass


def test_the_successor_of_a_killed_run_says_what_it_found(place, caplog):
    hook, catalog, lock = place
    lock.parent.mkdir(parents=True)
    lock.write_text("process 4711 on ws (since 2026-11-16T02:15:00+00:00)")
    hook.before_pipeline_run(run_params=RUN, pipeline=Pipeline([]), catalog=catalog)
    assert "process 4711 on ws" in caplog.text
    assert "was killed or its machine went down; it left nothing half done" in caplog.text
    assert "4711" in catalog.load("history").events()["words"].iloc[0]
    hook.after_pipeline_run(run_params=RUN, pipeline=Pipeline([]), catalog=catalog)
    assert lock.read_text() == ""


def test_a_failure_after_the_decision_says_that_the_decision_stands(place):
    hook, catalog, lock = place
    catalog["retrain_outcome"] = MemoryDataset()
    hook.before_pipeline_run(run_params=RUN, pipeline=Pipeline([]), catalog=catalog)
    registry = catalog.load("registry")
    made = Decision("000001-x", "retrain", "kept", registry.time(), "a", "a", ["why"], {})
    registry.record(made)
    with pytest.raises(AfterDecisionError, match=r"decision 000001-x stands .*no space") as failed:
        hook.on_pipeline_error(error=StorageError("no space"), run_params=RUN, catalog=catalog)
    assert "write_page" in str(failed.value)
    ended = catalog.load("retrain_outcome")
    assert (ended["code"], ended["decision"]) == (7, "000001-x")
    with held(lock):
        pass


def test_a_failure_before_the_decision_is_a_failure(place):
    hook, catalog, _ = place
    catalog["retrain_outcome"] = MemoryDataset()
    hook.before_pipeline_run(run_params=RUN, pipeline=Pipeline([]), catalog=catalog)
    hook.on_pipeline_error(error=StorageError("no space"), run_params=RUN, catalog=catalog)
    assert catalog.load("retrain_outcome")["outcome"] == "failed"


def test_a_blocked_run_is_recorded(place):
    hook, catalog, _ = place
    catalog["retrain_outcome"] = MemoryDataset()
    hook.before_pipeline_run(run_params=RUN, pipeline=Pipeline([]), catalog=catalog)
    wrapped = RuntimeError("node failed")
    wrapped.__cause__ = BlockedError("batch 'a' is empty")
    hook.on_pipeline_error(error=wrapped, run_params=RUN, catalog=catalog)
    assert catalog.load("retrain_outcome")["reasons"] == ["batch 'a' is empty"]
    assert catalog.load("registry").decisions()[-1].outcome == "blocked"


def test_a_signed_registry_that_lacks_decisions_of_the_history_is_refused(place):
    hook, catalog, lock = place
    registry, history = catalog.load("registry"), catalog.load("history")
    lost = Decision("000007-x", "retrain", "kept", registry.time(), "a", "a", ["why"], {})
    history.add_decisions([lost])
    hook.before_pipeline_run(run_params=RUN, pipeline=Pipeline([]), catalog=catalog)
    hook.after_pipeline_run(run_params=RUN, pipeline=Pipeline([]), catalog=catalog)
    registry.signer = Signer((b"k" * 32,))
    with pytest.raises(ModelFileError, match="the signed registry lacks: 000007-x"):
        hook.before_pipeline_run(run_params=RUN, pipeline=Pipeline([]), catalog=catalog)
    with held(lock):
        pass
