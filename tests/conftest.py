"""A throw-away copy of the project, run as a user runs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import settings

from countermove.data.synthetic import fabricate

ROOT = Path(__file__).parent.parent
LONG = ("validity", "pipelines", "faults", "adopted", "learning", "experiments")
"""Folders whose files take longest: handed out first, so that no worker ends with one of them."""

# Elsewhere examples are drawn again each time; a verdict on a commit must be repeatable.
settings.register_profile("repeatable", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("repeatable")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put files that take long first; the runner keeps a file in one worker."""
    items.sort(key=lambda item: item.path.parent.name not in LONG)


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

    def retrain(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a retraining on the fabricated table."""
        return self.run("--pipeline=retrain", "--env=test", *arguments)

    @property
    def batches(self) -> Path:
        """Where labelled batches of the fabricated table go."""
        folder = self.path / "data" / "01_raw" / "batches" / "tiny"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def bring_batch(self, name: str, rows: int = 30, seed: int = 1) -> Path:
        """Bring a batch of new people; return its file."""
        table = fabricate("tiny", rows, seed=seed)
        table["person"] = f"{name}-" + table["person"]
        path = self.batches / f"{name}.csv"
        table.to_csv(path, index=False)
        return path


def copy_project(folder: Path) -> Project:
    for name in ("pyproject.toml", ".telemetry", "README.md"):
        shutil.copy(ROOT / name, folder / name)
    shutil.copytree(ROOT / "conf", folder / "conf", ignore=shutil.ignore_patterns("local"))
    (folder / "conf" / "local").mkdir()
    # The package itself is the installed one, so that its compiled kernels are shared.
    (folder / "src").mkdir()
    (folder / "data" / "01_raw").mkdir(parents=True)
    return Project(folder)


def bring_examples(project: Project) -> None:
    """Copy the example files that the project carries: a table, applicants, labelled months."""
    raw = project.path / "data" / "01_raw"
    shutil.copy(ROOT / "data" / "01_raw" / "my.csv", raw)
    for folder in ("applicants", "batches"):
        shutil.copytree(ROOT / "data" / "01_raw" / folder, raw / folder, dirs_exist_ok=True)


def set_experiment(project: Project, **experiment: Any) -> None:
    """Let the environment test run another experiment of the papers."""
    path = project.path / "conf" / "test" / "parameters_experiments.yml"
    settings = yaml.safe_load(path.read_text("utf-8")) | {"paper": {"experiment": experiment}}
    path.write_text(yaml.safe_dump(settings), "utf-8")


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


@pytest.fixture(scope="session")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A copy in which a first champion was promoted on the fabricated table; copy it again."""
    project = copy_project(tmp_path_factory.mktemp("deployed"))
    outcome = project.run("--pipeline=retrain", "--env=test")
    assert outcome.returncode == 0, outcome.stderr
    return project


@pytest.fixture
def working(deployed: Project, tmp_path: Path) -> Project:
    """A copy with a champion, for one test to change."""
    folder = tmp_path / "working"
    shutil.copytree(deployed.path, folder)
    return Project(folder)
