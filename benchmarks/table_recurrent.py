"""Tables of docs/papers/serm.md: recurrent scores on the last k years of each company.

    python -m benchmarks.table_recurrent intercept|published|others

``intercept`` settles whether the output bias is learned, on rows that are tested nowhere; the
others measure, on the parity splits, the published protocol and people who answer our way. The
parity table is found through the environment variable COUNTERMOVE_PARITY_DATA.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from countermove import StrategicClassifier
from countermove.learning import accuracy_after
from countermove.learning.comparison import Split
from countermove.people import QuadraticCost
from countermove.randomness import generator, torch_generator
from countermove.response import named_response
from countermove.scores import RecurrentScore

COST = QuadraticCost(1.0)
SPLITS, SEEDS, LENGTHS = range(3), range(3), range(1, 15)
JUDGED, DRAWS = (2, 5, 14), 10
"""Lengths and fresh splits, of each parity split, by which the bias is settled."""
BLIND: Mapping[str, Any] = {
    "response": "none", "learning_rate": 0.005, "max_epochs": 15,
    "start": "random", "calibrate": False,
}  # fmt: skip
SERM: Mapping[str, Any] = {
    "response": "published", "temperature": 0.5, "eval_temperature": 0.2,
    "learning_rate": 0.05, "max_epochs": 5,
}  # fmt: skip
OURS: Mapping[str, Any] = {"learning_rate": 0.005, "max_epochs": 15}
PUBLISHED = named_response("published", COST, None, 0.2)


def split_of(folder: Path, steps: int, number: int) -> Split:
    """Return one parity split, each company's last steps in one row."""
    stored = np.load(folder / "serm" / "distress_series.npz")
    first, second = np.cumsum(stored["sizes"])[:2]
    order = stored[f"order{number}"]
    X = stored["X"][order][:, -steps:].reshape(len(order), -1)
    y = stored["y"][order].astype(float)
    parts = (slice(0, first), slice(first, second), slice(second, None))
    return Split(*((X[part], y[part]) for part in parts))


def fresh(split: Split, draw: int) -> Split:
    """Split training and validation rows again, 60/20/20; the test rows stay out."""
    X, y = split.known
    order = generator(draw, "fresh recurrent split").permutation(len(y))
    cuts = (3 * len(y) // 5, 4 * len(y) // 5)
    return Split(*((X[rows], y[rows]) for rows in np.split(order, cuts)))


def trained(
    steps: int, split: Split, seed: int, settings: Mapping[str, Any], learned_bias: bool = False
) -> StrategicClassifier:
    """Train one rule from the start that goes with a seed."""
    start = torch_generator(seed, "recurrent")
    score = RecurrentScore.of_sequences(steps, split.train[0].shape[1] // steps, generator=start)
    score.bias.requires_grad_(learned_bias)
    protocol = {"loss": "hinge", "selection": "none", "batch_size": 16, "patience": 10}
    rule = StrategicClassifier(
        score, cost=COST, random_state=seed, standardise=False, **(protocol | settings)
    )
    return rule.fit(*split.train, validation=split.validation)


def intercept(folder: Path) -> None:
    """Print, per parity split, accuracies of held and learned bias on fresh splits within it."""
    print("| parity split | k | bias held | bias learned | difference | standard error |")
    print("|---|---|---|---|---|---|")
    for number in SPLITS:
        found = fresh_accuracies(folder, number)
        for steps, pairs in zip((*JUDGED, "all"), (*found, np.concatenate(found)), strict=True):
            held, learned = pairs.mean(axis=0)
            differences = pairs[:, 0] - pairs[:, 1]
            error = differences.std(ddof=1) / len(differences) ** 0.5
            cells = f"{held:.3f} | {learned:.3f} | {held - learned:+.4f} | {error:.4f}"
            print(f"| {number} | {steps} | {cells} |", flush=True)


@cache
def fresh_accuracies(folder: Path, number: int) -> Any:
    """Return accuracies with the bias held and learned, shape (lengths, draws, 2)."""
    found = np.empty((len(JUDGED), DRAWS, 2))
    for i, steps in enumerate(JUDGED):
        for draw in range(DRAWS):
            split = fresh(split_of(folder, steps, number), draw)
            rules = [trained(steps, split, draw, SERM, learned) for learned in (False, True)]
            found[i, draw] = [rule.score_after_response(*split.test) for rule in rules]
    return found


def learns_bias(folder: Path, number: int) -> bool:
    """Tell whether a parity split's own training and validation rows speak for learning it."""
    held, learned = fresh_accuracies(folder, number).mean(axis=(0, 1))
    return bool(learned > held)


def published(folder: Path) -> None:
    """Print mean test accuracies in the published protocol."""
    _table(folder, _published_cell)


def others(folder: Path) -> None:
    """Print mean test accuracies for people who answer our way."""
    _table(folder, _other_cell)


def _published_cell(folder: Path, steps: int, number: int, seed: int) -> dict[str, float]:
    split = split_of(folder, steps, number)
    started = time.process_time()
    blind = trained(steps, split, seed, BLIND)
    between = time.process_time()
    serm = trained(steps, split, seed, SERM)
    seconds = time.process_time() - between
    held = serm.score_after_response(*split.test)
    learned = trained(steps, split, seed, SERM, True).score_after_response(*split.test)
    return {
        "benchmark": blind.score(*split.test),
        "SERM": held,
        "SERM, bias learned": learned,
        "SERM, by the rule": learned if learns_bias(folder, number) else held,
        "blind": accuracy_after(blind.score_, *split.test, PUBLISHED).accuracy,
        "SERM, rational": serm.score_after_response(*split.test, response="best"),
        "blind s": between - started,
        "SERM s": seconds,
        "epoch ratio": (seconds / len(serm.history_)) / ((between - started) / len(blind.history_)),
    }


def _other_cell(folder: Path, steps: int, number: int, seed: int) -> dict[str, float]:
    split = split_of(folder, steps, number)
    blind = trained(steps, split, seed, OURS | {"response": "none"})
    found = {"benchmark": blind.score(*split.test)}
    for response in ("best", "smooth"):
        rule = trained(steps, split, seed, OURS | {"response": response})
        found[response] = rule.score_after_response(*split.test)
        people = named_response(response, COST, None, 0.5)
        found[f"blind, {response}"] = accuracy_after(blind.score_, *split.test, people).accuracy
    return found


def _table(folder: Path, cell: Callable[[Path, int, int, int], dict[str, float]]) -> None:
    """Print the mean over splits and starts, length by length."""
    for steps in LENGTHS:
        found = [cell(folder, steps, number, seed) for number in SPLITS for seed in SEEDS]
        if steps == LENGTHS[0]:
            print("| k | " + " | ".join(found[0]) + " |")
            print("|---|" + "---|" * len(found[0]))
        means = [np.mean([each[name] for each in found]) for name in found[0]]
        print(f"| {steps} | " + " | ".join(f"{value:.4f}" for value in means) + " |", flush=True)


TABLES = {"intercept": intercept, "published": published, "others": others}


def main() -> None:
    """Print the tables asked for."""
    torch.set_num_threads(1)
    given = os.environ.get("COUNTERMOVE_PARITY_DATA")
    if not given:
        print("Not measured: COUNTERMOVE_PARITY_DATA does not say where the parity tables are.")
        return
    for name in sys.argv[1:] or TABLES:
        TABLES[name](Path(given))


if __name__ == "__main__":
    main()
