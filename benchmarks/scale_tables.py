"""Tables in parts and what is done to them, for the benchmarks of scale."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from countermove.data.partitions import Partitions
from countermove.execution import Mapper, PartTask, map_parts
from countermove.people import QuadraticCost
from countermove.response import BestResponse, Response
from countermove.response.partitions import RespondTask
from countermove.scores import LinearScore

FEATURES = tuple(f"x{j}" for j in range(15))
ROWS_PER_PART = 250_000
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


def responding(response: Response | None = None) -> RespondTask:
    """Return everybody's answer to one score, rational people's by default."""
    people = BestResponse(QuadraticCost(1.0)) if response is None else response
    return RespondTask(people, SCORE, FEATURES)


def made(folder: Path, n: int, rows_per_part: int, label: bool = False) -> Partitions:
    """Write a table of ``n`` rows, sixteen parts a file; labels follow the score, with noise."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, weight = np.random.default_rng(n), SCORE.weight.detach().numpy()
    folder.mkdir()
    files = []
    for first in range(0, n, 16 * rows_per_part):
        files.append(folder / f"{first:010d}.parquet")
        writer = None
        for begin in range(first, min(n, first + 16 * rows_per_part), rows_per_part):
            X = rng.normal(size=(len(FEATURES), min(rows_per_part, n - begin)))
            columns = dict(zip(FEATURES, map(pa.array, X), strict=True))
            if label:
                columns["label"] = pa.array(np.sign(weight @ X + 0.3 * rng.normal(size=X.shape[1])))
            table = pa.table(columns)
            writer = writer or pq.ParquetWriter(files[-1], table.schema, use_dictionary=False)
            writer.write_table(table, row_group_size=rows_per_part)
        if writer is not None:
            writer.close()
    return Partitions(tuple(files), rows_per_part)


def seconds(task: PartTask, table: Partitions, folder: Path, mapper: Mapper) -> float:
    """Return how long a task takes on a table; its result is not kept."""
    out = folder / "out"
    run = map_parts(task, table, out, mapper)
    shutil.rmtree(out)
    return run.seconds


def warm_up(folder: Path, task: PartTask, mapper: Mapper) -> None:
    """Let every worker import and compile what the task needs."""
    table = made(folder / "warm", 8, 1)
    seconds(task, table, folder, mapper)
    shutil.rmtree(folder / "warm")


def least(measure: Callable[[], float], times: int = 3) -> float:
    """Return the shortest of some measurements."""
    return min(measure() for _ in range(times))
