"""Children that die on purpose, ordered from one process that forks them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

DYING = Path(__file__).with_name("dying.py")


@dataclass(frozen=True)
class Forker:
    """A process that forks a child per order and says how it ended."""

    process: subprocess.Popen[str]
    log: Path

    def order(self, scenario: str, folder: Path, **how: Any) -> dict[str, Any]:
        """Run a scenario in a child; ``kill_at`` a step, ``kill_after`` seconds, or neither."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        said = json.dumps({"scenario": scenario, "folder": str(folder)} | how)
        self.process.stdin.write(said + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


@contextmanager
def started(where: Path, *arguments: str) -> Iterator[Forker]:
    process = subprocess.Popen(
        [sys.executable, str(DYING), *arguments],
        cwd=where,
        env=os.environ | {"OMP_NUM_THREADS": "1", "DO_NOT_TRACK": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield Forker(process, where / "dying.log")
    assert process.returncode == 0


@pytest.fixture(scope="session")
def forker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forker]:
    """Ready for scenarios on a registry alone."""
    with started(tmp_path_factory.mktemp("forker")) as ready:
        yield ready


@pytest.fixture
def warm_forker(deployed, tmp_path) -> Iterator[Forker]:
    """Ready for whole runs: it has been through one itself."""
    folder = tmp_path / "warm"
    shutil.copytree(deployed.path, folder)
    type(deployed)(folder).bring_batch("first")
    with started(folder, "run", str(folder)) as ready:
        yield ready


@pytest.fixture
def chain_forker(tmp_path) -> Iterator[Forker]:
    """Ready for retrainings without Kedro."""
    folder = tmp_path / "rehearsal"
    folder.mkdir()
    with started(folder, "chain", str(folder)) as ready:
        yield ready


@pytest.fixture(scope="module")
def scoring_forker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forker]:
    """Ready for batches scored beside a challenger and with exploration."""
    folder = tmp_path_factory.mktemp("rehearsed")
    with started(folder, "rehearsed", str(folder)) as ready:
        yield ready
