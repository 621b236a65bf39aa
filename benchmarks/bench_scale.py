"""A population out of core: everybody's answer against reading and writing the same parquet.

Rows of 15 float64 in parquet parts of 250,000, answered by the best response on local Dask workers;
the yardstick copies the same parts with the same workers. `python -m benchmarks.bench_scale 1 10`
measures other sizes (millions of rows); the largest of the default ones needs 14 GB of disk.
"""

from __future__ import annotations

import resource
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from countermove.data.partitions import Partitions
from countermove.execution import Execution, Mapper, PartTask, SerialMapper, map_parts
from countermove.people import QuadraticCost
from countermove.response import BestResponse, ConicResponse
from countermove.response.population import RespondTask
from countermove.scores import LinearScore

MILLIONS = (1, 5, 50)
FEATURES = tuple(f"x{j}" for j in range(15))
ROWS_PER_PART = 250_000
CONIC_ROWS, CONIC_PART = 600, 50
LIMITS = {"ratio": 2.5, "memory": 2_000, "scalar": 1.5, "conic": 1.7, "overhead": 0.3}
SCORE = LinearScore(len(FEATURES), torch.Generator().manual_seed(0))


class CopyTask(PartTask):
    """Read and write, nothing else."""

    columns = FEATURES

    def __call__(self, rows: Any, first_row: int) -> Any:
        """Return the rows as they are."""
        return rows

    def fingerprint(self) -> str:
        """Return its name."""
        return "copy"


def main() -> None:
    """Print the tables."""
    sizes = [int(word) for word in sys.argv[1:]] if "bench_scale" in sys.argv[0] else []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        grown = growth(folder, sizes or MILLIONS)
        workers(folder)
    exponent = np.polyfit(np.log([row[0] for row in grown]), np.log([row[1] for row in grown]), 1)[
        0
    ]
    print(
        f"\nSeconds grow as rows to the power {exponent:.2f} (limit 1 ± 0.05), start-up of the "
        "workers not counted."
    )


def growth(folder: Path, millions: Sequence[int]) -> list[tuple[int, float]]:
    """Measure answering against copying for tables of several sizes, with two workers."""
    print(
        "| million rows | copying, s | answering, s | ratio | limit | peak, MB a worker | limit |"
    )
    print("|---|---|---|---|---|---|---|")
    found = []
    with Execution("dask", workers=2).open() as mapper:
        respond = RespondTask(BestResponse(QuadraticCost(1.0)), SCORE, FEATURES)
        warm_up(folder, respond, mapper)
        for size in millions:
            table = made(folder / f"table-{size}", size * 1_000_000, ROWS_PER_PART)
            copying = seconds(CopyTask(), table, folder, mapper)
            answering = seconds(respond, table, folder, mapper)
            peak = max(one.value for one in mapper.map(peak_megabytes, range(8)))
            found.append((size * 1_000_000, answering))
            print(
                f"| {size} | {copying:.1f} | {answering:.1f} | {answering / copying:.2f} | "
                f"{LIMITS['ratio']} | {peak:.0f} | {LIMITS['memory']} |"
            )
            if size > 5:
                for file in table.files:
                    file.unlink()
    return found


def workers(folder: Path) -> None:
    """Measure one worker against two, and Dask against none."""
    big = made(folder / "scalar", 5_000_000, ROWS_PER_PART)
    small = made(folder / "conic", CONIC_ROWS, CONIC_PART)
    best = RespondTask(BestResponse(QuadraticCost(1.0)), SCORE, FEATURES)
    ccp = ConicResponse(QuadraticCost(1.0), max_iterations=1_000)
    conic = RespondTask(ccp, SCORE, FEATURES)
    tasks = {"scalar": (best, big), "conic": (conic, small)}
    times: dict[tuple[str, int], float] = {}
    for n in (1, 2):
        with Execution("dask", workers=n).open() as mapper:
            for name, (task, table) in tasks.items():
                warm_up(folder, task, mapper)
                times[name, n] = seconds(task, table, folder, mapper)
    print("\n| path | one worker, s | two workers, s | gain | limit |")
    print("|---|---|---|---|---|")
    for name in tasks:
        one, two = times[name, 1], times[name, 2]
        print(f"| {name} | {one:.1f} | {two:.1f} | {one / two:.2f} | {LIMITS[name]} |")
    million = made(folder / "million", 1_000_000, ROWS_PER_PART)
    serial = least(lambda: seconds(best, million, folder, SerialMapper()))
    with Execution("dask", workers=1).open() as mapper:
        warm_up(folder, best, mapper)
        dask = least(lambda: seconds(best, million, folder, mapper))
    print(
        f"\n1 million rows: here {serial:.2f} s, one Dask worker {dask:.2f} s, "
        f"{dask / serial - 1:+.0%} (limit +{LIMITS['overhead']:.0%})."
    )


def made(folder: Path, n: int, rows_per_part: int) -> Partitions:
    """Write a table of ``n`` rows, sixteen parts a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(n)
    folder.mkdir()
    files = []
    for first in range(0, n, 16 * rows_per_part):
        files.append(folder / f"{first:010d}.parquet")
        writer = None
        for begin in range(first, min(n, first + 16 * rows_per_part), rows_per_part):
            X = rng.normal(size=(len(FEATURES), min(rows_per_part, n - begin)))
            table = pa.table(dict(zip(FEATURES, map(pa.array, X), strict=True)))
            writer = writer or pq.ParquetWriter(files[-1], table.schema, use_dictionary=False)
            writer.write_table(table, row_group_size=rows_per_part)
        if writer is not None:
            writer.close()
    return Partitions(tuple(files), rows_per_part)


def seconds(task: PartTask, table: Partitions, folder: Path, mapper: Mapper) -> float:
    """Return how long a task takes on a table; its result is not kept."""
    import shutil

    out = folder / "out"
    run = map_parts(task, table, out, mapper)
    shutil.rmtree(out)
    return run.seconds


def warm_up(folder: Path, task: PartTask, mapper: Mapper) -> None:
    """Let every worker import and compile what the task needs."""
    import shutil

    table = made(folder / "warm", 8 * 50, 50)
    seconds(task, table, folder, mapper)
    shutil.rmtree(folder / "warm")


def least(measure: Callable[[], float], times: int = 3) -> float:
    """Return the shortest of some measurements."""
    return min(measure() for _ in range(times))


def peak_megabytes(shared: None, item: int) -> float:
    """Return the high-water mark of this worker's memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
