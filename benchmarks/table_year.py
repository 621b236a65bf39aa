"""A drifting year from files, by real runs of the retrain pipeline.

    python -m benchmarks.table_year <folder> [kinds] [base rows]

Every month's people respond to the champion at hand, come as a CSV file, and
`kedro run --pipeline=retrain` decides; pages are kept as <folder>/<kind>/<month>.html. With 20,000
base rows the last night is one of 20,000 + 12 x 1,500 rows.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from tests.production.retraining.known_worlds import (
    FEATURES,
    MONTHS,
    MOVABLE,
    DriftingWorld,
)

from benchmarks.bench_retraining import KINDS
from countermove._types import Floats
from countermove.production.registry import Registry

ROOT = Path(__file__).parents[1]
NAMES = [f"f{place}" for place in range(FEATURES)]
SEED = 950
"""Of the worlds: none of the tables' own."""


def rows_of(X: Floats, y: Floats, name: str) -> pd.DataFrame:
    """Return people as a file holds them."""
    table = pd.DataFrame(X, columns=NAMES).assign(repaid=np.where(y > 0, "yes", "no"))
    return table.assign(person=[f"{name}-{place}" for place in range(len(table))])


class Office:
    """A copy of the project with a world's base table."""

    def __init__(self, folder: Path, world: DriftingWorld, base: int) -> None:
        self.folder, self.world = folder, world
        folder.mkdir(parents=True)
        shutil.copy(ROOT / "pyproject.toml", folder)
        shutil.copytree(ROOT / "conf", folder / "conf", ignore=shutil.ignore_patterns("local"))
        (folder / "conf" / "local").mkdir()
        (folder / "src").mkdir()
        features = {
            name: {"kind": "numeric", "change": "both" if place < MOVABLE else "immutable"}
            for place, name in enumerate(NAMES)
        }
        label = {"column": "repaid", "favourable": "yes", "unfavourable": "no"}
        schema = {"description": "A world that drifts", "source": "fabricated", "id": "person"}
        written = json.dumps(schema | {"label": label, "features": features})
        (folder / "conf/base/schemas/drifting.yml").write_text(written)
        self.batches = folder / "data/01_raw/batches/drifting"
        self.batches.mkdir(parents=True)
        X, chance = world.people_of(0, base, 0)
        y = np.where(np.random.default_rng([8, world.seed]).random(base) < chance, 1.0, -1.0)
        rows_of(X, y, "base").to_csv(folder / "data/01_raw/drifting.csv", index=False)

    def night(self) -> tuple[int, float, float]:
        """Run the pipeline; return its exit code, its seconds, and those of the processor."""
        given = f"dataset=drifting,serm.cost.scale={self.world.scale}"
        command = [sys.executable, "-m", "kedro", "run", "--pipeline=retrain", "--params", given]
        alone = os.environ | {"OMP_NUM_THREADS": "1", "DO_NOT_TRACK": "1"}
        alone |= {"PYTHONPATH": str(ROOT / "src")}
        began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        run = subprocess.run(command, cwd=self.folder, env=alone, capture_output=True, text=True)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        if run.returncode not in (0, 3, 5):
            raise RuntimeError(run.stderr)
        spent = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
        return run.returncode, time.perf_counter() - began, spent

    def rule(self) -> tuple[Floats, float]:
        """Return the champion's weights and intercept in the units of the file."""
        champion = Registry(str(self.folder / "data/06_models/drifting")).champion()
        assert champion is not None
        units, score = champion.model.standardiser, champion.model.rule
        weight = score.slope().detach().numpy() / units.scale  # type: ignore[union-attr]
        bias = float(score.bias.detach())  # type: ignore[arg-type,operator]
        return weight, bias - float(weight @ units.mean)

    def bring(self, month: int) -> None:
        """Let a month's people respond and come."""
        came = self.world.arrivals(month, *self.rule())
        path = self.batches / f"2025-{month:02d}.csv"
        rows_of(came.X, came.y, path.stem).to_csv(path, index=False)

    def said(self) -> tuple[str, str]:
        """Return what was decided, and what drift recommends."""
        read = self.folder / "data/08_reporting/drifting/decision.json"
        decision = json.loads(read.read_text())
        proposal = decision["facts"].get("policy", {}).get("proposal", "")
        return f"{decision['outcome']} {proposal}", decision["facts"]["drift"]["recommendation"]


def year(folder: Path, kind: str, base: int) -> None:
    """Run a year, and print a line a month."""
    world = DriftingWorld(kind, SEED)
    office = Office(folder / kind / "project", world, base)
    office.night()
    gaps, page = [], office.folder / "data/08_reporting/drifting/retraining.html"
    for month in range(1, MONTHS + 1):
        gaps.append(100.0 * (world.oracle(month) - world.accuracy(month, *office.rule())))
        office.bring(month)
        code, seconds, spent = office.night()
        shutil.copy(page, folder / kind / f"{month:02d}.html")
        outcome, drift = office.said()
        print(
            f"| {kind} | {month} | {gaps[-1]:.2f} | {outcome} | {code} | {drift} | {seconds:.1f} "
            f"| {spent:.1f} |",
            flush=True,
        )
    print(f"| {kind} | mean | {np.mean(gaps):.2f} | | | | | |", flush=True)


def main() -> None:
    """Run the years asked for."""
    kinds = sys.argv[2].split(",") if len(sys.argv) > 2 else KINDS
    base = int(sys.argv[3]) if len(sys.argv) > 3 else 3_000
    heads = ("world", "month", "points below the oracle", "decision", "exit code", "drift says")
    print(f"| {' | '.join(heads)} | s | processor s |")
    print("|---" * 8 + "|")
    for kind in kinds:
        year(Path(sys.argv[1]), kind, base)


if __name__ == "__main__":
    main()
