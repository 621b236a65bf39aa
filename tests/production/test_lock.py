from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from countermove.errors import LockedError
from countermove.production.lock import held

HOLDER = """
import sys, time
from pathlib import Path
from countermove.production.lock import held
with held(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path: Path):
    lock = tmp_path / "a" / ".lock"
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(lock)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process, lock
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_second_run_leaves_and_names_the_first(holder):
    process, lock = holder
    with pytest.raises(LockedError, match=f"process {process.pid} on .* is at work"), held(lock):
        pass


def test_a_killed_holder_leaves_no_lock(holder):
    process, lock = holder
    process.kill()
    process.wait()
    with held(lock):
        pass


def test_a_run_waits_as_long_as_it_was_told(holder):
    _, lock = holder
    started = time.monotonic()
    with pytest.raises(LockedError, match=r"waited 0\.5 s"), held(lock, 0.5):
        pass
    assert time.monotonic() - started >= 0.5


def test_a_lock_can_be_taken_again(tmp_path):
    for _ in range(2):
        with held(tmp_path / ".lock"):
            pass
