"""How long a user waits: start-up, first completed step and the whole chain on credit."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent


def chain_seconds() -> tuple[float, float]:
    """Return seconds to the first completed node and to the end of the chain."""
    started, first = time.perf_counter(), 0.0
    command = [sys.executable, "-m", "kedro", "run", "--pipeline=serm"]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        for line in run.stderr:
            if not first and "Completed node" in line:
                first = time.perf_counter() - started
    if run.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {run.returncode}")
    return first, time.perf_counter() - started


def listing_cpu_seconds() -> float:
    """Return the CPU seconds of ``kedro registry list``."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "kedro", "registry", "list"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the table."""
    chain_seconds()  # kernels compiled, files warm
    first, whole = chain_seconds()
    print("| what | seconds | limit |")
    print("|---|---|---|")
    print(f"| second run on credit, until the first step is done | {first:.1f} | 15 |")
    print(f"| second run on credit, the whole chain | {whole:.1f} | 60 |")
    print(f"| `kedro registry list` (CPU) | {listing_cpu_seconds():.1f} | 2 |")


if __name__ == "__main__":
    main()
