"""What a second worker is worth, beside what the machine's second core is worth.

One and two workers take turns, with the same settings, and the shortest time of each counts:
on a machine that others use too, a single pair of runs measures the others. Processor seconds
tell what two workers would gain with a core each: they grow where workers hinder each other.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.scale_tables import (
    FEATURES,
    ROWS_PER_PART,
    CopyTask,
    least,
    made,
    responding,
    seconds,
    warm_up,
)
from countermove.data.partitions import Partitions
from countermove.execution import Execution, Mapper, SerialMapper
from countermove.learning import StrategicClassifier
from countermove.people import QuadraticCost
from countermove.response import ConicResponse
from countermove.training.streamed import PartRows

ROUNDS = 3
CONIC_ROWS, CONIC_PART = 96, 8
LIMITS = {"answering, scalar": 1.5, "answering, conic": 1.7}
OVERHEAD = 0.3
LOOPS, TURNS = 4, 4_000_000
RULES: dict[int, np.ndarray] = {}
"""The trained rule by number of workers."""


def gains(folder: Path) -> None:
    """Measure one worker against two; a loop without memory or disk is the ceiling."""
    big = made(folder / "scalar", 3_000_000, ROWS_PER_PART)
    small = made(folder / "conic", CONIC_ROWS, CONIC_PART)
    labelled = made(folder / "labelled", 400_000, 100_000, label=True)
    ccp = responding(ConicResponse(QuadraticCost(1.0), max_iterations=1_000))
    tasks: dict[str, Callable[[Mapper], float]] = {
        "a loop of additions": looping,
        "copying parquet": lambda mapper: seconds(CopyTask(), big, folder, mapper),
        "answering, scalar": lambda mapper: seconds(responding(), big, folder, mapper),
        "answering, conic": lambda mapper: seconds(ccp, small, folder, mapper),
        "training, full gradients": lambda mapper: training(labelled, mapper),
    }
    times: dict[tuple[str, int], float] = {}
    spent: dict[tuple[str, int], float] = {}
    for _ in range(ROUNDS):
        for n in (1, 2):
            with Execution("dask", workers=n).open() as mapper:
                warm_up(folder, responding(), mapper)
                warm_up(folder, ccp, mapper)
                for name, measure in tasks.items():
                    before = processor(mapper)
                    times[name, n] = min(measure(mapper), times.get((name, n), np.inf))
                    used = processor(mapper) - before
                    spent[name, n] = min(used, spent.get((name, n), np.inf))
    print(
        "| what | one worker, s | two workers, s | gain | limit | of the first row's gain "
        "| processor s, one | two | gain with a core each |\n|---|---|---|---|---|---|---|---|---|"
    )
    ceiling = times[next(iter(tasks)), 1] / times[next(iter(tasks)), 2]
    for name in tasks:
        one, two = times[name, 1], times[name, 2]
        alone, both = spent[name, 1], spent[name, 2]
        print(
            f"| {name} | {one:.2f} | {two:.2f} | {one / two:.2f} | {LIMITS.get(name, '')} | "
            f"{one / two / ceiling:.0%} | {alone:.2f} | {both:.2f} | {2 * alone / both:.2f} |"
        )
    print(
        f"\nShortest of {ROUNDS} turns each. The trained rules differ by "
        f"{np.abs(RULES[1] - RULES[2]).max():.1g} at most."
    )


def overhead(folder: Path) -> None:
    """Measure one Dask worker against none."""
    million, task = made(folder / "million", 1_000_000, ROWS_PER_PART), responding()
    with Execution("dask", workers=1).open() as mapper:
        warm_up(folder, task, mapper)
        pairs = [
            (seconds(task, million, folder, SerialMapper()), seconds(task, million, folder, mapper))
            for _ in range(2 * ROUNDS)
        ]
    serial, dask = (min(column) for column in zip(*pairs, strict=True))
    print(
        f"1 million rows: here {serial:.2f} s, one Dask worker {dask:.2f} s, "
        f"{dask / serial - 1:+.0%} (limit +{OVERHEAD:.0%})."
    )


def processor(mapper: Mapper) -> float:
    """Return the processor seconds all workers have used so far."""
    asked = mapper.map(used_here, range(4 * mapper.workers))
    return sum(dict(one.value for one in asked).values())


def used_here(shared: None, item: int) -> tuple[int, float]:
    """Return which process this is and the processor seconds it has used."""
    time.sleep(0.1)  # So that every worker is asked.
    return os.getpid(), time.process_time()


def looping(mapper: Mapper) -> float:
    """Return how long some loops take that need a core and nothing else."""

    def turn() -> float:
        started = time.perf_counter()
        list(mapper.map(loop, range(LOOPS)))
        return time.perf_counter() - started

    return least(turn, 2)


def loop(shared: None, item: int) -> int:
    """Add numbers."""
    total = 0
    for number in range(TURNS):
        total += number
    return total


def training(table: Partitions, mapper: Mapper) -> float:
    """Return how long a rule takes whose full gradients the workers sum; the rule is kept."""
    rows = PartRows(table, FEATURES)
    classifier = StrategicClassifier(
        response="smooth", optimiser="lbfgs", max_epochs=5, random_state=0, selection="none"
    )
    started = time.perf_counter()
    classifier.fit_parts(rows, rows, held=10_000, mapper=mapper)
    spent = time.perf_counter() - started
    RULES[mapper.workers] = np.append(classifier.coef_, classifier.intercept_)
    return spent
