"""Scoring a batch: a million applicants read, judged, advised in words and written.

The embedded credit table, its rows drawn again up to a million with ids of their own, judged by a
rule trained on it; advice by the linear programme. `python -m benchmarks.bench_score 100000`
measures another size.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.memory import high_water_mark
from countermove.data.cleaning import clean
from countermove.data.partitions import Partitions, raw_partitions
from countermove.data.rows import fit_standardiser, standardised_table
from countermove.data.schema import Schema, load_schema
from countermove.data.sources import read_embedded
from countermove.data.splits import split_table
from countermove.execution import Execution
from countermove.learning.rule_training import train_published
from countermove.params import RecourseParameters, SermParameters
from countermove.pipelines.people import champion_people
from countermove.production.registry import Decision, Registry
from countermove.production.scoring import Scored, ScoringSettings, score_batch
from countermove.production.scoring.applicants import AdmitTask
from countermove.production.scoring.task import ScoreTask, ScoringRule

ROWS, LIMIT = 1_000_000, 60.0
PART = 100_000
ENGINES = (Execution("serial"), Execution("threads", workers=2), Execution("dask", workers=2))
SERM = SermParameters()


def main() -> None:
    """Print the tables."""
    asked = sys.argv[1:] if "bench_score" in sys.argv[0] else []
    n = int(asked[0]) if asked else ROWS
    schema = load_schema("credit", Path(__file__).parents[1] / "conf" / "base" / "schemas")
    raw = read_embedded("credit").apply(pd.to_numeric)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        registry = champion(raw, schema, folder / "models")
        write_batch(raw, n, folder)
        engines(n, schema, registry, folder)
        steps(schema, registry, raw)


def engines(n: int, schema: Schema, registry: Registry, folder: Path) -> None:
    """Measure a whole batch on every engine, from the file to the manifest."""
    print("| rows | engine | seconds | limit | processor s | peak, MB a process | refused |")
    print("|---|---|---|---|---|---|---|")
    for number, execution in enumerate(ENGINES):
        with execution.open() as mapper:  # So that a cluster's start is not counted.
            list(mapper.map(imported, range(8)))
            before = processor_seconds()
            scored, seconds = timed(
                lambda e=execution, k=number: scored_by(e, k, schema, registry, folder)
            )
            used = processor_seconds() - before
            peak = max(one.value for one in mapper.map(peak_megabytes, range(8)))
        refused = scored.manifest["decisions"]["refused"]
        limit = "" if execution.engine == "serial" else f"{LIMIT * n / ROWS:g}"
        print(
            f"| {n:,} | {execution.engine}, {execution.workers or 1} | {seconds:.1f} | {limit} | "
            f"{used:.1f} | {peak:.0f} | {refused:,} |"
        )


def steps(schema: Schema, registry: Registry, raw: pd.DataFrame) -> None:
    """Measure where the time of one part goes, in this process."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from countermove.recourse.words import sentence_array

    rows = pa.Table.from_pandas(drawn(raw, PART, seed=1), preserve_index=False)
    judge = judge_of(schema, registry)
    spent: dict[str, float] = {}
    admitted, spent["reading and checking rows"] = timed(lambda: AdmitTask(schema)(rows, 0))
    task = ScoreTask(judge, schema)
    X = np.column_stack([admitted[name].to_numpy() for name in schema.feature_names])
    Z, spent["standardising"] = timed(lambda: judge.model.standardiser.transform(X))
    _, spent["deciding"] = timed(lambda: judge.model.rule(tensor(Z)))
    table, whole = timed(lambda: task(admitted, 0))
    advice, spent["advice by the linear programme"] = timed(lambda: recommended(judge, Z))
    _, spent["words"] = timed(lambda: sentence_array(advice, Z, schema, judge.model.standardiser))
    spent["columns of the output"] = whole - sum(list(spent.values())[1:])
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "part.parquet"
        _, spent["writing"] = timed(lambda: pq.write_table(table, path))
    total = sum(spent.values())
    print(f"\n| {PART:,} rows, one core | s | share |\n|---|---|---|")
    for step, seconds in spent.items():
        print(f"| {step} | {seconds:.3f} | {seconds / total:.0%} |")


def champion(raw: pd.DataFrame, schema: Schema, folder: Path) -> Registry:
    """Train a rule on the table and make it the champion of a new registry."""
    shares = {"train": 0.6, "validation": 0.2, "rest": 0.2}
    splits = split_table(clean(raw, schema), schema, shares, seed=0)
    units = fit_standardiser(splits["train"], schema, divide_by_root_d=False)
    train, validation = (
        standardised_table(splits[name], schema, units) for name in ("train", "validation")
    )
    people = SERM.build(schema, units)
    training = SERM.training.model_dump() | {"score": None, "max_epochs": 5}
    trained = train_published(train, validation, schema, units, people, training, 0)
    registry = Registry(str(folder), schema.digest())
    version = registry.next_version()
    registry.add(version, trained.model, {"metrics": {}, "data_hash": "", "certificates": []})
    decision = Decision(version, "cold_start", "promoted", registry.time(), None, version, [])
    registry.record(decision)
    registry.carry_out(decision)
    return registry


def write_batch(raw: pd.DataFrame, n: int, folder: Path) -> None:
    """Write one parquet file of applicants, as pandas writes it: in one row group or few."""
    drawn(raw, n, seed=0).to_parquet(folder / "batch.parquet", index=False)


def drawn(raw: pd.DataFrame, n: int, seed: int) -> pd.DataFrame:
    """Return rows drawn again, without their outcome."""
    rows = np.random.default_rng(seed).integers(0, len(raw), n)
    people = raw.drop(columns="default payment next month").iloc[rows]
    return people.assign(ID=np.arange(n)).reset_index(drop=True)


def scored_by(
    execution: Execution, number: int, schema: Schema, registry: Registry, folder: Path
) -> Scored:
    """Score the batch, as if for the first time."""
    applicants: Partitions = raw_partitions("batch", folder, PART)
    return score_batch(
        "batch", applicants, rules(schema, registry), folder / f"scored-{number}", execution
    )


def rules(schema: Schema, registry: Registry) -> ScoringSettings:
    """Return what applicants are judged by: the project's defaults."""
    from functools import partial

    terms = RecourseParameters().build()
    people = partial(champion_people, schema=schema, serm=SERM)
    return ScoringSettings(registry, schema, people, terms, "linear_program", 0)


def judge_of(schema: Schema, registry: Registry) -> ScoringRule:
    """Return the champion as a judge."""
    stored = registry.champion()
    if stored is None:
        raise RuntimeError("the benchmark made no champion")
    return rules(schema, registry).rule_of(stored)


def recommended(judge: ScoringRule, X: Any) -> Any:
    """Return the advice of a part, without its table."""
    from countermove.recourse.recommend import recommend

    threshold = judge.model.threshold
    return recommend(
        judge.model, X, "linear_program", threshold, judge.response.actions, judge.response.cost
    )


def tensor(X: Any) -> Any:
    """Return rows as torch reads them."""
    import torch

    return torch.from_numpy(X)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result and the seconds it took."""
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started


def imported(shared: None, item: int) -> int:
    """Let a worker import what scoring needs."""
    import countermove.production.scoring

    return len(countermove.production.scoring.__name__)


def peak_megabytes(shared: None, item: int) -> float:
    """Return the high-water mark of this process's memory."""
    return high_water_mark() / 1e6


def processor_seconds() -> float:
    """Return the processor time of this process and of its workers, so far."""
    import psutil

    me = psutil.Process()
    times = [one.cpu_times() for one in (me, *me.children(recursive=True))]
    return sum(one.user + one.system for one in times)


if __name__ == "__main__":
    main()
