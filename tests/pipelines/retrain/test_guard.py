"""The lock of a retraining: held while it runs, and let go whatever happens before."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from kedro.io import DataCatalog, MemoryDataset
from kedro.pipeline import Pipeline

from countermove.errors import LockedError, ModelFileError
from countermove.pipelines.retrain.guard import RetrainHook, lock_of
from countermove.production.history import DecisionHistory
from countermove.production.lock import held
from countermove.production.registry import Registry

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
    hook.before_pipeline_run(run_params=RUN, catalog=catalog)
    with pytest.raises(LockedError), held(lock):
        pass
    # A part of the pipeline ends without a decision: nothing is told, the lock is free.
    hook.after_pipeline_run(run_params=RUN, pipeline=Pipeline([]), catalog=catalog)
    with held(lock):
        pass


def test_the_lock_is_let_go_when_a_recovery_fails(place, tmp_path):
    hook, catalog, lock = place
    (tmp_path / "registry").mkdir()
    (tmp_path / "registry" / "champion.json").write_text("{}")
    with pytest.raises(ModelFileError):
        hook.before_pipeline_run(run_params=RUN, catalog=catalog)
    with held(lock):
        pass


def test_other_pipelines_take_no_lock(place):
    hook, catalog, lock = place
    hook.before_pipeline_run(run_params={"pipeline_names": ["serm"]}, catalog=catalog)
    with held(lock):
        pass
