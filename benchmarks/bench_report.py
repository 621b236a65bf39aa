"""How long the report of credit takes to build, and to open in a browser."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
REPORT = ROOT / "data" / "08_reporting" / "credit" / "report.html"
BUILDING = ("draw_moves", "draw_accuracy", "draw_transfer", "describe_table", "write_page")
"""Nodes that make the report and nothing else."""
OPENINGS = 5


def node_seconds() -> dict[str, float]:
    """Return the seconds of every building node, loading and saving included, on a finished run."""
    from kedro.framework.session import KedroSession
    from kedro.framework.startup import bootstrap_project
    from kedro.runner import SequentialRunner

    bootstrap_project(ROOT)
    found = {}
    with KedroSession.create(project_path=ROOT) as session:
        from kedro.framework.project import pipelines

        catalog = session.load_context().catalog
        for node in pipelines["serm"].nodes:
            if node.name.rpartition(".")[2] in BUILDING:
                started = time.perf_counter()
                SequentialRunner().run(pipelines["serm"].filter(node_names=[node.name]), catalog)
                found[node.name] = time.perf_counter() - started
    return found


def opening_seconds() -> tuple[float, float]:
    """Return the median seconds until the load event, and until every figure is drawn."""
    from playwright.sync_api import sync_playwright

    loaded, drawn = [], []
    with sync_playwright() as playwright:
        path = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for _ in range(OPENINGS):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            started = time.perf_counter()
            page.goto(REPORT.as_uri(), wait_until="load")
            entry = "performance.getEntriesByType('navigation')[0].loadEventEnd"
            loaded.append(page.evaluate(entry) / 1000.0)
            page.wait_for_selector("html[data-drawn=all]", state="attached")
            drawn.append(time.perf_counter() - started)
            page.close()
        browser.close()
    return statistics.median(loaded), statistics.median(drawn)


def main() -> None:
    """Print the table."""
    if not (ROOT / "data" / "08_reporting" / "credit" / "metrics.json").exists():
        command = [sys.executable, "-m", "kedro", "run", "--pipeline=serm"]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    first, found = node_seconds(), node_seconds()
    print("| what | measured | limit |")
    print("|---|---|---|")
    print(f"| the report of credit, built, imports included (s) | {sum(first.values()):.1f} | 10 |")
    print(f"| built again in the same process (s) | {sum(found.values()):.1f} | 10 |")
    print(f"| of it the move map (s) | {found['evaluation.draw_moves']:.2f} | 2 |")
    print(f"| the page (MB) | {REPORT.stat().st_size / 1e6:.1f} | 8 |")
    if shutil.which("chromium") is None:
        print("| opened | there is no chromium here | 2 |")
        return
    loaded, drawn = opening_seconds()
    print(f"| opened: load event (s) | {loaded:.2f} | 2 |")
    print(f"| opened: every figure drawn (s) | {drawn:.2f} | |")


if __name__ == "__main__":
    main()
