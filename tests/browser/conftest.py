"""Debian's chromium, headless, on the report of a real run."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """A browser; without Debian's chromium these tests are skipped."""
    found = shutil.which("chromium")
    if found is None:
        pytest.skip("there is no chromium: apt install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def report(on_credit: Any) -> Path:
    """The report of the chain on the credit table."""
    path: Path = on_credit.path / "data" / "08_reporting" / "credit" / "report.html"
    return path


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of axe-core, installed from npm for this run alone."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("there is no npm to install axe-core with")
    folder = tmp_path_factory.mktemp("axe")
    command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), "axe-core@4"]
    try:
        outcome = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip("npm could not install axe-core within two minutes: is its registry off?")
    if outcome.returncode:
        pytest.skip(f"npm could not install axe-core: {outcome.stderr.strip()[-300:]}")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text()
