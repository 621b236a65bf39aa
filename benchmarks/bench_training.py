"""Seconds per epoch, strategic against blind, in one process on one thread.

The parity tables are found through the environment variable COUNTERMOVE_PARITY_DATA.
Blind and strategic epochs alternate, so that a busy machine slows both alike.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import torch

from countermove.learning.comparison import Split, compare, train_blind
from countermove.learning.objectives import StrategicRisk
from countermove.learning.simple_rules import class_means
from countermove.people import QuadraticCost
from countermove.response import named_response
from countermove.training import Loss, Trainer, TrainingRows

BATCH = {"credit": 64, "distress": 24, "fraud": 24, "spam": 128}
LIMIT = {"credit": 1.5, "distress": 2.0, "fraud": 2.0, "spam": 2.0}
ROUNDS = 15


def splits(folder: Path, name: str) -> list[Split]:
    """Return the three splits of a parity table."""
    stored = np.load(folder / "serm" / f"{name}.npz")
    first, second = np.cumsum(stored["sizes"])[:2]
    parts = (slice(0, first), slice(first, second), slice(second, None))
    tables = [(stored[f"X{k}"].astype(float), stored[f"y{k}"].astype(float)) for k in range(3)]
    return [Split(*((X[part], y[part]) for part in parts)) for X, y in tables]


def epoch_seconds(name: str, response: str, sample: TrainingRows) -> float:
    """Return the fastest of five epochs, each with its validation, from the same start."""
    people = named_response(response, QuadraticCost(1.0), None, 0.5)
    trainer = Trainer(batch_size=BATCH[name], max_epochs=5, patience=5)
    objective = StrategicRisk((people,), Loss("hinge"))
    history = trainer.fit(class_means(sample.X.numpy(), sample.y.numpy()), objective, sample)
    return min(record.seconds for record in history.records[1:])


def ratios(folder: Path) -> None:
    """Print the median epoch of every response and its ratio to the blind epoch."""
    print("| data | batch | blind ms | best ratio | smooth ratio | published ratio | limit |")
    print("|---|---|---|---|---|---|---|")
    for name, batch in BATCH.items():
        split = splits(folder, name)[0]
        sample = TrainingRows(*map(torch.from_numpy, (*split.train, *split.validation)))
        responses = ("none", "best", "smooth", "published")
        rounds = [[epoch_seconds(name, r, sample) for r in responses] for _ in range(ROUNDS + 2)]
        blind, *others = np.median(np.array(rounds[2:]), axis=0)
        shown = " | ".join(f"{seconds / blind:.2f}" for seconds in others)
        print(f"| {name} | {batch} | {1e3 * blind:.1f} | {shown} | {LIMIT[name]} |", flush=True)


def figure_1_right(folder: Path) -> None:
    """Print how long the whole grid takes under the published protocol and under ``best``."""
    epochs = {"learning_rate": 0.5, "max_epochs": 7, "patience": 4, "eval_temperature": 0.2}
    adam = {"loss": "hinge", "optimiser": "adam", "selection": "none"}
    for response, settings in (("published", adam | epochs), ("best", adam)):
        started = time.perf_counter()
        for name, batch in BATCH.items():
            for split in splits(folder, name):
                blind = train_blind(split, batch_size=batch, **adam)
                for scale in (0.5, 1.0, 2.0):
                    cost = QuadraticCost(scale)
                    compare(split, response, cost, blind=blind, batch_size=batch, **settings)
        seconds = time.perf_counter() - started
        print(f"Figure 1 right, `{response}`: {seconds:.0f} s for 4 x 3 x 3 cells (limit 120 s).\n")


def main() -> None:
    """Print both."""
    torch.set_num_threads(1)
    given = os.environ.get("COUNTERMOVE_PARITY_DATA")
    if not given:
        print("Not measured: COUNTERMOVE_PARITY_DATA does not say where the parity tables are.")
        return
    ratios(Path(given))
    print()
    figure_1_right(Path(given))


if __name__ == "__main__":
    main()
