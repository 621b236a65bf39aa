"""How long a user waits: start-up, each part of the chain on credit, and beside other load."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from countermove.execution import cores
from countermove.hooks import DURATIONS

ROOT = Path(__file__).parent.parent
BUSY = 2
"""Other processes that keep a core each busy."""


def cpu_seconds() -> float:
    """Return the CPU seconds of all programs that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def chain_seconds() -> tuple[float, float, float]:
    """Return seconds to the first completed node, to the end of the chain, and of the CPU."""
    started, before, first = time.perf_counter(), cpu_seconds(), 0.0
    command = [sys.executable, "-m", "kedro", "run", "--pipeline=serm"]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        for line in run.stderr:
            if not first and "Completed node" in line:
                first = time.perf_counter() - started
    if run.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {run.returncode}")
    return first, time.perf_counter() - started, cpu_seconds() - before


def shares(whole: float) -> dict[str, float]:
    """Return the seconds of each part of the run that has just ended; the rest is start-up."""
    took: dict[str, float] = {}
    for node, seconds in json.loads((ROOT / DURATIONS).read_text())["credit"].items():
        part = node.partition(".")[0]
        took[part] = took.get(part, 0.0) + seconds
    parts = ("ingest", "training", "recourse", "evaluation", "reporting")
    found = {part: took.get(part, 0.0) for part in parts}
    return {"start-up, reading and writing": whole - sum(found.values()), **found}


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keep some processes busy meanwhile."""
    loop = [sys.executable, "-c", "while True: pass"]
    started = [subprocess.Popen(loop) for _ in range(processes)]
    try:
        yield
    finally:
        for each in started:
            each.kill()
            each.wait()


def listing_cpu_seconds() -> float:
    """Return the CPU seconds of ``kedro registry list``."""
    before = cpu_seconds()
    command = [sys.executable, "-m", "kedro", "registry", "list"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return cpu_seconds() - before


def main() -> None:
    """Print the table."""
    chain_seconds()  # kernels compiled, files warm
    first, whole, cpu = chain_seconds()
    print("| what | seconds | limit |")
    print("|---|---|---|")
    print(f"| second run on credit, until the first step is done | {first:.1f} | 15 |")
    print(f"| second run on credit, the whole chain | {whole:.1f} | 20 |")
    for part, seconds in shares(whole).items():
        print(f"| of it, {part} | {seconds:.1f} | |")
    print(f"| the same, CPU | {cpu:.1f} | |")
    with busy(BUSY):
        _, slowed, _ = chain_seconds()
    # One thread among so many others has this share of a core; two of ours have more together.
    share = min(1.0, cores() / (BUSY + 1))
    print(f"| the same beside {BUSY} busy processes | {slowed:.1f} | {cpu / share:.1f} |")
    print(f"| `kedro registry list` (CPU) | {listing_cpu_seconds():.1f} | 1.5 |")


if __name__ == "__main__":
    main()
