"""Two retrainings at once: one waits or leaves, none corrupts, a killed one blocks nobody."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from countermove.errors import LockedError, StorageError
from countermove.production.history import DecisionHistory
from countermove.production.lock import held
from countermove.production.registry import Registry

HOLD = """
import sys, time
from pathlib import Path
from countermove.production.lock import held
with held(Path(sys.argv[1])):
    sys.stdout.write("held\\n")
    sys.stdout.flush()
    time.sleep(float(sys.argv[2]))
"""


@contextmanager
def holder(path: Path, seconds: float) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock."""
    command = [sys.executable, "-c", HOLD, str(path), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_taken_lock_names_its_holder_and_a_killed_holder_leaves_none(tmp_path):
    path = tmp_path / "here" / ".lock"
    with holder(path, 60) as process:
        with (
            pytest.raises(LockedError, match=f"process {process.pid} on .* is at work"),
            held(path),
        ):
            pass
        process.send_signal(signal.SIGKILL)
        process.wait()
        began = time.monotonic()
        with held(path):
            assert time.monotonic() - began < 0.1


def test_a_run_waits_as_long_as_it_may(tmp_path):
    path = tmp_path / ".lock"
    with holder(path, 0.5), held(path, wait_seconds=30):
        pass
    with holder(path, 60):
        began = time.monotonic()
        with pytest.raises(LockedError, match=r"waited 0\.5 s"), held(path, wait_seconds=0.5):
            pass
        assert time.monotonic() - began >= 0.5


def test_a_lock_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write the lock"), held(tmp_path / "file" / "x"):
        pass


@pytest.mark.slow
@pytest.mark.fault
def test_of_two_runs_one_leaves_or_waits_and_both_count(working):
    working.bring_batch("one")
    command = [sys.executable, "-m", "kedro", "run", "--pipeline=retrain", "--env=test"]

    def begin(*more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*command, *more],
            cwd=working.path,
            env=os.environ | {"OMP_NUM_THREADS": "1", "DO_NOT_TRACK": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    impatient = [begin(), begin()]
    said = [run.communicate()[1] for run in impatient]
    # One decided; the other left at once (75), or came later and found nothing new (0).
    assert all(run.returncode in (0, 3, 75) for run in impatient), said
    idle = [
        run.returncode == 75 or "no new batch" in words
        for run, words in zip(impatient, said, strict=True)
    ]
    assert sum(idle) == 1, said
    working.bring_batch("two", seed=2)
    patient = [begin("--params=retrain.wait_seconds=600") for _ in range(2)]
    said = [run.communicate()[1] for run in patient]
    assert all(run.returncode in (0, 3) for run in patient), said
    assert sum("no new batch" in words for words in said) == 1, said
    registry = Registry(str(working.path / "data/06_models/tiny"))
    assert registry.champion() is not None
    decided = [decision.outcome for decision in registry.decisions()]
    assert sum(outcome in ("promoted", "kept") for outcome in decided) == 3
    history = DecisionHistory(f"sqlite:///{working.path / 'data/06_models/history.db'}", "tiny")
    assert len(history.decisions()) == len(decided)


@pytest.mark.slow
@pytest.mark.fault
def test_a_run_leaves_with_75_while_the_lock_is_held(working):
    working.bring_batch("one")
    lock = working.path / "data" / "06_models" / "tiny" / ".retrain.lock"
    with lock.open("r+") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        left = working.retrain()
        assert left.returncode == 75
        assert "is at work here" in left.stderr
        assert "Traceback" not in left.stderr
        refused = working.kedro("countermove", "rollback", "--env=test")
        assert refused.returncode == 75
        # Looking does not need the lock.
        assert working.kedro("countermove", "history", "--env=test").returncode == 0
