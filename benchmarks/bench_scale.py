"""A population out of core: everybody's answer against reading and writing the same parquet.

Rows of 15 float64 in parquet parts of 250,000, answered by the best response on local Dask workers;
the yardstick copies the same parts with the same workers. `python -m benchmarks.bench_scale 1 10`
measures other sizes (millions of rows); the largest of the default ones needs 14 GB of disk.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.scale_gains import gains, overhead
from benchmarks.scale_tables import ROWS_PER_PART, CopyTask, least, made, responding, seconds
from countermove.execution import Execution, Mapper

MILLIONS = (1, 5, 20, 50)
LIMITS = {"ratio": 2.5, "memory": 2_000}


def main() -> None:
    """Print the tables."""
    sizes = [int(word) for word in sys.argv[1:]] if "bench_scale" in sys.argv[0] else []
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"Load of the machine before the run (1, 5, 15 minutes): {load}.\n")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        opened = time.perf_counter()
        with Execution("dask", workers=2).open() as mapper:
            ready = time.perf_counter()
            fixed = first_parts(folder, mapper, ready - opened)
            grown = growth(folder, sizes or MILLIONS, mapper, fixed)
        exponents(grown, fixed)
        print()
        gains(folder)
        print()
        overhead(folder)


def first_parts(folder: Path, mapper: Mapper, starting: float) -> float:
    """Say what start-up takes; return the seconds of a run with one row for each worker."""
    nobody, task = made(folder / "nobody", 2, 1), responding()
    imports = seconds(task, nobody, folder, mapper)
    fixed = least(lambda: seconds(task, nobody, folder, mapper), 5)
    print(
        f"Two workers start in {starting:.1f} s, their first parts take {imports:.1f} s more "
        f"(imports, compiled kernels); neither is in the table. A run over two rows then takes "
        f"{fixed:.2f} s: the fixed share of every run below.\n"
    )
    return fixed


def growth(
    folder: Path, millions: Sequence[int], mapper: Mapper, fixed: float
) -> list[tuple[int, float]]:
    """Measure answering against copying for tables of several sizes, with two workers."""
    print(
        "| million rows | copying, s | answering, s | ratio | limit | peak, MB a worker | limit "
        "| µs a row, fixed share taken off |\n|---|---|---|---|---|---|---|---|"
    )
    found, respond = [], responding()
    for size in millions:
        n = size * 1_000_000
        table = made(folder / f"table-{size}", n, ROWS_PER_PART)
        copying, answering = np.min(
            [
                [seconds(task, table, folder, mapper) for task in (CopyTask(), respond)]
                for _ in range(2 if size > 5 else 5)
            ],
            axis=0,
        )
        peak = max(one.value for one in mapper.map(peak_megabytes, range(8)))
        found.append((n, float(answering)))
        print(
            f"| {size} | {copying:.2f} | {answering:.2f} | {answering / copying:.2f} | "
            f"{LIMITS['ratio']} | {peak:.0f} | {LIMITS['memory']} | "
            f"{(answering - fixed) / n * 1e6:.3f} |"
        )
        for file in table.files:
            file.unlink()
    return found


def exponents(grown: Sequence[tuple[int, float]], fixed: float) -> None:
    """Fit seconds = a + b rows^p, with a as measured and with a = 0."""
    rows, spent = np.log([row[0] for row in grown]), np.array([row[1] for row in grown])
    plain, rest = (np.polyfit(rows, np.log(spent - a), 1)[0] for a in (0.0, fixed))
    print(
        f"\nSeconds grow as rows to the power {plain:.2f}; without the fixed {fixed:.2f} s, to the "
        f"power {rest:.2f} (limit 1 ± 0.05)."
    )


def peak_megabytes(shared: None, item: int) -> float:
    """Return the high-water mark of this worker's memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
