"""Photograph what a user looks at after the last run: terminal, report and kedro-viz.

``python docs/pictures/screens.py [dataset]`` needs Debian's chromium and a finished run.
"""

from __future__ import annotations

import functools
import io
import json
import shutil
import subprocess
import sys
import tempfile
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
SIZE = {"width": 1200, "height": 800}
NO_HINTS = "localStorage.setItem('KedroViz', JSON.stringify({showFeatureHints: false}))"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def terminal(dataset: str) -> str:
    """Return the headline of the last run, as a terminal shows it, in SVG."""
    from rich.console import Console

    from countermove.reporting.terminal import headline

    results = ROOT / "data" / "08_reporting" / dataset
    calibration = ROOT / "data" / "07_model_output" / dataset / "recourse_calibration.json"
    read = (results / "metrics.json", calibration, results / "summary.json")
    metrics, promise, summary = (json.loads(path.read_text("utf-8")) for path in read)
    console = Console(record=True, width=100, file=io.StringIO(), force_terminal=True)
    console.print("$ kedro run --pipeline=serm", highlight=False)
    report = f"data/08_reporting/{dataset}/report.html"
    console.print(headline(metrics, promise, summary["headline"], report))
    return console.export_svg(title="countermove")


def photograph(dataset: str) -> None:
    """Write screen_terminal.png, screen_report.png and screen_viz.png."""
    from playwright.sync_api import sync_playwright

    found = shutil.which("chromium")
    if found is None:
        raise SystemExit("there is no chromium: apt install chromium")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as place:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = browser.new_context(viewport=SIZE).new_page()
        page.set_content(terminal(dataset))
        page.locator("svg").first.screenshot(path=FOLDER / "screen_terminal.png")
        page.goto((ROOT / "data/08_reporting" / dataset / "report.html").as_uri())
        page.wait_for_load_state("networkidle")
        page.screenshot(path=FOLDER / "screen_report.png")
        _viz(browser, Path(place))
        browser.close()


def _viz(browser: Any, place: Path) -> None:
    build = [sys.executable, "-m", "kedro", "viz", "build"]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    sys.path.insert(0, str(FOLDER.parent / "hooks"))
    from pipelines import publish

    publish(ROOT / "build", place / "viz")
    handler = functools.partial(_Quiet, directory=str(place))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        context = browser.new_context(viewport=SIZE)
        context.add_init_script(NO_HINTS)
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/viz/")
        page.wait_for_selector(".pipeline-node--modularPipeline")
        page.click('button[aria-label="Hide menu"]')
        page.wait_for_timeout(2000)
        page.screenshot(path=FOLDER / "screen_viz.png")
        server.shutdown()


if __name__ == "__main__":
    photograph(sys.argv[1] if sys.argv[1:] else "credit")
