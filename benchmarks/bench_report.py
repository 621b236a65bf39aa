"""What the report of credit costs: its future, its page, and opening it in a browser."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
REPORT = ROOT / "data" / "08_reporting" / "credit" / "report.html"
FUTURE = "evaluation.foresee"
BUILDING = (
    "evaluation.draw_moves", "reporting.draw_accuracy", "reporting.draw_transfer",
    "reporting.describe_table", "reporting.summarise", "reporting.write_page",
)  # fmt: skip
"""Nodes that make the report and nothing else."""
OPENINGS = 5


def node_seconds() -> list[dict[str, float]]:
    """Return the processor seconds of every node, with its data, the first and the second time.

    The future comes first, as in the chain, so that the page finds torch and tables imported.
    """
    from kedro.framework.session import KedroSession
    from kedro.framework.startup import bootstrap_project
    from kedro.runner import SequentialRunner

    bootstrap_project(ROOT)
    rounds = []
    with KedroSession.create(project_path=ROOT) as session:
        from kedro.framework.project import pipelines

        catalog = session.load_context().catalog
        for _ in range(2):
            found = {}
            for name in (FUTURE, *BUILDING):
                part = pipelines["serm"].filter(node_names=[name])
                started = time.process_time()
                SequentialRunner().run(part, catalog)
                found[name] = time.process_time() - started
            rounds.append(found)
    return rounds


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
    first, again = node_seconds()
    page, rebuilt = (sum(found[name] for name in BUILDING) for found in (first, again))
    print("| what | measured | limit |")
    print("|---|---|---|")
    print(f"| the rule's future, imports included (s) | {first[FUTURE]:.1f} | 4 |")
    print(f"| the same again (s) | {again[FUTURE]:.1f} | 4 |")
    print(f"| the page beyond the chain (s) | {page:.1f} | 3 |")
    print(f"| built again in the same process (s) | {rebuilt:.1f} | 3 |")
    print(f"| the page (MB) | {REPORT.stat().st_size / 1e6:.1f} | 4 |")
    if shutil.which("chromium") is None:
        print("| opened | there is no chromium here | 1 |")
        return
    loaded, drawn = opening_seconds()
    print(f"| opened: load event (s) | {loaded:.2f} | 1 |")
    print(f"| opened: every figure drawn (s) | {drawn:.2f} | |")


if __name__ == "__main__":
    main()
