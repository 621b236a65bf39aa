"""Recurrent scores: seconds per epoch, strategic against blind, by length of history.

The parity table is found through the environment variable COUNTERMOVE_PARITY_DATA. Epochs have
the same batches, validation included, and alternate, so that a busy machine slows all alike;
process seconds on one thread.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import torch

from countermove.learning.objectives import StrategicRisk
from countermove.people import QuadraticCost
from countermove.response import named_response
from countermove.scores import RecurrentScore
from countermove.training import Loss, Trainer, TrainingRows

LENGTHS = (1, 2, 5, 14)
RESPONSES = ("none", "best", "smooth", "published")
LIMIT, ROUNDS, EPOCHS, BATCH = 3.0, 7, 3, 16
BLIND_EPOCHS, STRATEGIC_EPOCHS = 15, 5
"""Of the published protocol."""


def sample(folder: Path, steps: int) -> TrainingRows:
    """Return the training and validation rows of the first split, their last steps."""
    stored = np.load(folder / "serm" / "distress_series.npz")
    first, second = np.cumsum(stored["sizes"])[:2]
    order = stored["order0"]
    X = stored["X"][order][:, -steps:].reshape(len(order), -1)
    y = stored["y"][order].astype(float)
    parts = (X[:first], y[:first], X[first:second], y[first:second])
    return TrainingRows(*map(torch.from_numpy, parts))


def epoch_seconds(response: str, steps: int, rows: TrainingRows) -> float:
    """Return the mean process seconds of an epoch."""
    people = named_response(response, QuadraticCost(1.0), None, 0.5)
    trainer = Trainer(batch_size=BATCH, max_epochs=EPOCHS, patience=EPOCHS, learning_rate=0.01)
    score = RecurrentScore.of_sequences(steps, rows.X.shape[1] // steps)
    started = time.process_time()
    trainer.fit(score, StrategicRisk((people,), Loss("hinge")), rows)
    return (time.process_time() - started) / EPOCHS


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    given = os.environ.get("COUNTERMOVE_PARITY_DATA")
    if not given:
        print("Not measured: COUNTERMOVE_PARITY_DATA does not say where the parity tables are.")
        return
    print("| steps | blind ms | best | smooth | published | published, 5 epochs to 15 | limit |")
    print("|---|---|---|---|---|---|---|")
    for steps in LENGTHS:
        rows = sample(Path(given), steps)
        rounds = [[epoch_seconds(r, steps, rows) for r in RESPONSES] for _ in range(ROUNDS + 1)]
        blind, *others = np.median(np.array(rounds[1:]), axis=0)
        ratios = [seconds / blind for seconds in others]
        shown = " | ".join(f"{ratio:.2f}" for ratio in ratios)
        whole = ratios[-1] * STRATEGIC_EPOCHS / BLIND_EPOCHS
        print(f"| {steps} | {1e3 * blind:.1f} | {shown} | {whole:.2f} | {LIMIT} |", flush=True)


if __name__ == "__main__":
    main()
