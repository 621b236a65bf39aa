"""A throw-away copy of the project, run as a user runs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parent.parent

# Elsewhere examples are drawn anew each time; a verdict on a commit must be repeatable.
settings.register_profile("repeatable", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("repeatable")


@dataclass(frozen=True)
class Project:
    """A copy of the project in its own folder."""

    path: Path

    def kedro(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a Kedro command in the copy, in a process of its own."""
        return subprocess.run(
            [sys.executable, "-m", "kedro", *arguments],
            cwd=self.path,
            env=os.environ | {"OMP_NUM_THREADS": "1", "DO_NOT_TRACK": "1"},
            capture_output=True,
            text=True,
            check=False,
        )

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run ``kedro run``."""
        return self.kedro("run", *arguments)


def copy_project(folder: Path) -> Project:
    for name in ("pyproject.toml", ".telemetry", "README.md"):
        shutil.copy(ROOT / name, folder / name)
    shutil.copytree(ROOT / "conf", folder / "conf", ignore=shutil.ignore_patterns("local"))
    (folder / "conf" / "local").mkdir()
    # The package itself is the installed one, so that its compiled kernels are shared.
    (folder / "src").mkdir()
    (folder / "data" / "01_raw").mkdir(parents=True)
    return Project(folder)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A fresh copy of the project, without data."""
    return copy_project(tmp_path)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A copy in which the whole chain ran on the fabricated table."""
    project = copy_project(tmp_path_factory.mktemp("finished"))
    outcome = project.run("--pipeline=serm", "--env=test")
    assert outcome.returncode == 0, outcome.stderr
    return project


@pytest.fixture(scope="session")
def on_credit(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A copy in which the whole chain ran on the embedded credit table: for slow tests."""
    project = copy_project(tmp_path_factory.mktemp("on_credit"))
    outcome = project.run("--pipeline=serm")
    assert outcome.returncode == 0, outcome.stderr
    return project
