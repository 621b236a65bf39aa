"""Newton's method on a million rows in parts: an iteration against one pass of reading.

Processor seconds, the shortest of several turns; parts are read again in every turn. The rule is
compared with the one trained on the same rows in memory.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.scale_tables import FEATURES, ROWS_PER_PART, made
from countermove import StrategicClassifier
from countermove.learning.objectives import StrategicRisk
from countermove.people import ActionSet, QuadraticCost
from countermove.response import BestResponse, NoResponse, Population
from countermove.response.base import Response
from countermove.training import Loss
from countermove.training.streamed import PartRows, StreamedRows, _cached

ROWS, TURNS, HELD = 1_000_000, 3, 20_000
LIMITS = {"ratio": 3.0, "difference": 1e-8}
BOX = ActionSet(min_value=np.full(len(FEATURES), -6.0), max_value=np.full(len(FEATURES), 6.0))
PEOPLE: dict[str, Response] = {
    "nobody moves": NoResponse(),
    "everybody alike": BestResponse(),
    "two kinds": Population([BestResponse(), BestResponse(QuadraticCost(3.0))], [0.6, 0.4]),
    "value bounds": BestResponse(actions=BOX),
}


def seconds(work: Callable[[], Any]) -> float:
    """Return the processor seconds of the shortest of several turns, nothing read before."""
    spent = []
    for _ in range(TURNS):
        _cached.cache_clear()
        started = time.process_time()
        work()
        spent.append(time.process_time() - started)
    return min(spent)


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        rows = PartRows(made(Path(name) / "parts", ROWS, ROWS_PER_PART, label=True), FEATURES)
        sample = StreamedRows.of(rows, rows, 0, HELD)
        X, y = (np.concatenate(both) for both in zip(*map(rows.read, rows.pieces), strict=True))
        print(f"{ROWS:,} rows × {len(FEATURES)} features in parts of {ROWS_PER_PART:,}.\n")
        print(
            "| people | an iteration, times a pass of reading | limit | steps | converged "
            "| largest difference from the rule in memory | limit |\n|---|---|---|---|---|---|---|"
        )
        for people, response in PEOPLE.items():
            measure(people, response, sample, (X, y))


def measure(
    name: str, response: Response, sample: StreamedRows, whole: tuple[np.ndarray, np.ndarray]
) -> None:
    """Print one row."""
    # Each starts as it would by default, in parts from the rows held; a threshold would be settled
    # on those.
    settings = {"response": response, "selection": "none", "calibrate": False, "standardise": False}
    rows, risk = sample.rows, StrategicRisk((response,), Loss("logistic"))
    there = StrategicClassifier(**settings).fit_parts(rows, rows, held=HELD)
    here = StrategicClassifier(**settings).fit(*whole)
    reading = seconds(lambda: [rows.read(piece) for piece in rows.pieces])
    iteration = seconds(lambda: sample.second_order(risk, there.score_))
    difference = np.abs(there.coef_ - here.coef_).max(), np.abs(there.intercept_ - here.intercept_)
    print(
        f"| {name} | {iteration / reading:.1f} | {LIMITS['ratio']:g} | "
        f"{len(there.history_) - 1} | {there.history_.converged} | "
        f"{max(float(difference[0]), float(difference[1].max())):.0e} | "
        f"{LIMITS['difference']:g} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
