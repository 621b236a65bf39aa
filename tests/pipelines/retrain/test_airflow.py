"""The DAG that kedro-airflow makes of the retraining imports in Airflow, and its tasks run."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from typing import Any

import pytest

from countermove.production.registry import Registry

INSTALLED = all(importlib.util.find_spec(name) for name in ("airflow", "kedro_airflow"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not INSTALLED, reason="the extra airflow is not installed: make test-airflow"
    ),
]
IMPORT = """
import json, sys
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(sys.argv[1], include_examples=False)
assert not bag.import_errors, bag.import_errors
[dag] = bag.dags.values()
print(json.dumps({
    "schedule": dag.schedule,
    "max_active_runs": dag.max_active_runs,
    "catchup": dag.catchup,
    "retries": {task.task_id: task.retries for task in dag.tasks},
    "after": {task.task_id: sorted(task.upstream_task_ids) for task in dag.tasks},
}))
every = [task.task_id for task in dag.topological_sort()]
for name in every if sys.argv[2:] == ["all"] else sys.argv[2:]:
    dag.get_task(name).python_callable()
"""


def made(project, group: str) -> str:
    ran = project.kedro(
        "airflow", "create", "--pipelines=retrain", f"--group-by={group}", "--env=test", "-t", group
    )
    assert ran.returncode == 0, ran.stderr
    return str(project.path / group)


def imported(project, folder: str, *tasks: str) -> subprocess.CompletedProcess[str]:
    """Import a DAG in Airflow, describe it, and run some of its tasks in turn."""
    place = {
        "AIRFLOW_HOME": str(project.path / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "OMP_NUM_THREADS": "1",
    }
    return subprocess.run(
        [sys.executable, "-c", IMPORT, folder, *tasks],
        cwd=project.path,
        env=os.environ | place,
        capture_output=True,
        text=True,
        check=False,
    )


def description(said: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        next(line for line in said.splitlines() if line.startswith('{"schedule"'))
    )
    return found


def test_two_tasks_by_namespace_and_they_run(working):
    working.bring_batch("one")
    before = len(Registry(str(working.path / "data/06_models/tiny")).decisions())
    ran = imported(working, made(working, "namespace"), "ingest", "retrain")
    assert ran.returncode == 0, ran.stderr
    described = description(ran.stdout)
    assert described == {
        "schedule": "15 2 * * *",
        "max_active_runs": 1,
        "catchup": False,
        "retries": {"ingest": 0, "retrain": 0},
        "after": {"ingest": [], "retrain": ["ingest"]},
    }
    decisions = Registry(str(working.path / "data/06_models/tiny")).decisions()
    assert len(decisions) == before + 1
    assert decisions[-1].outcome in ("promoted", "kept")
    # A night without a batch skips the task, for the same reason as anywhere else.
    again = imported(working, str(working.path / "namespace"), "ingest", "retrain")
    assert again.returncode != 0
    [reason] = [line for line in again.stderr.splitlines() if "AirflowSkipException: " in line]
    assert "no new batch: all 1 were looked at before" in reason
    ended = json.loads((working.path / "data/08_reporting/tiny/retrain_outcome.json").read_text())
    assert ended["outcome"] == "nothing_new"
    assert working.retrain().returncode == 0  # outside of a task, Airflow installed or not


def test_nodes_that_share_memory_are_one_task_and_all_tasks_decide(working):
    working.bring_batch("one")
    before = len(Registry(str(working.path / "data/06_models/tiny")).decisions())
    ran = imported(working, made(working, "memory"), "all")
    assert ran.returncode == 0, ran.stderr
    after = description(ran.stdout)["after"]
    [together] = [name for name in after if "train-challenger" in name]
    parts = ("follow", "set-terms", "calibrate-challenger", "judge", "remake-challenger", "decide")
    assert all(f"retrain-{part}" in together for part in parts)
    assert after["retrain-write-page"] == ["retrain-compare-drift", together]
    decisions = Registry(str(working.path / "data/06_models/tiny")).decisions()
    assert [each.outcome in ("promoted", "kept") for each in decisions[before:]] == [True]
