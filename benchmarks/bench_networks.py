"""Who has no recourse before a network: how many are proven, in what time, and whether it is so.

Two hidden layers of 100 on credit, ceiling 2, refused people of the other half of the table.
``linear_program`` searches first; the proof then finds recourse that was missed, or none. CPU time
of one thread, over the people without any. Sampled moves are allowed, of everybody proven.
"""

from __future__ import annotations

import os
import time
import warnings
from typing import Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from benchmarks.bench_trees import credit
from countermove._types import Floats
from countermove.people import ActionSet, QuadraticCost
from countermove.recourse import Settings, recommend
from countermove.recourse.networks import network_of, prove
from countermove.recourse.problem import search_problem
from countermove.scores import MLPScore
from countermove.scores.base import values

CEILING, HIDDEN = 2.0, (100, 100)
MOVES = 100_000
"""Sampled moves per row of the table, at least."""


def fitted(Z: Floats, y: Any, activation: str) -> MLPScore:
    """Return a fitted network as a score."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MLPClassifier(
            HIDDEN, activation=activation, alpha=1e-3, max_iter=30, random_state=0
        )
        model.fit(Z, y)
    score = MLPScore(Z.shape[1], HIDDEN, activation, dropout=0.0)
    with torch.no_grad():
        layers = zip(score.weights, score.offsets, model.coefs_, model.intercepts_, strict=False)
        for weight, offset, matrix, shift in layers:
            weight.copy_(torch.from_numpy(matrix.T))
            offset.copy_(torch.from_numpy(shift))
        score.weight.copy_(torch.from_numpy(model.coefs_[-1][:, 0]))
        score.bias.fill_(float(model.intercepts_[-1][0]))
    return score.eval()


def crossing(
    score: MLPScore, X: Floats, movable: list[int], ends: tuple[Floats, Floats], aim: float
) -> tuple[int, int]:
    """Return how many sampled moves within the ceiling cross, of how many."""
    if not len(X):
        return 0, 0
    draws, each = np.random.default_rng(0), -(-MOVES // len(X))
    crossed = 0
    for x in X:
        move = draws.normal(size=(each, len(movable)))
        length = np.sqrt(CEILING) * draws.random((each, 1)) ** (1.0 / len(movable))
        move *= length / np.linalg.norm(move, axis=1, keepdims=True)
        there = np.repeat(x[None], each, axis=0)
        there[:, movable] += move
        crossed += int((values(score, np.clip(there, *ends)) >= aim).sum())
    return crossed, each * len(X)


def row(score: MLPScore, X: Floats, share: float, movable: list[int], ends: Any) -> str:
    """Return one row of the table."""
    aim = float(np.quantile(values(score, X), share))
    people = X[values(score, X) < aim][: int(os.environ.get("COUNTERMOVE_BENCH_PEOPLE", "100"))]
    held = [j for j in range(X.shape[1]) if j not in movable]
    actions = ActionSet(min_value=ends[0], max_value=ends[1], immutable=held)
    threshold = float(1.0 / (1.0 + np.exp(-aim)))
    searched = Settings(network_nodes=0)
    found = recommend(
        score, people, "linear_program", threshold, actions, ceiling=CEILING, settings=searched
    )
    left = people[found.status != "FOUND"]
    problem = search_problem(score, left, actions, QuadraticCost(), aim)
    network = network_of(problem)
    assert network is not None
    nodes = Settings().network_nodes
    more = ~np.isnan(prove(problem, network, CEILING, nodes).action[:, 0])
    start = time.process_time()
    proof = prove(problem.rows(~more), network, CEILING, nodes)
    spent = 1e3 * (time.process_time() - start) / (~more).sum()
    none = proof.proven_none
    crossed, tried = crossing(score, left[~more][none], movable, ends, aim)
    return (
        f"| {score.activation}, {share:.0%} refused, {len(movable)} | {len(people)} "
        f"| {len(people) - len(left)} | {more.sum()} | {none.sum()} of {len(none)} "
        f"({none.mean():.0%}) | {spent:.2f} | {proof.nodes.mean():.0f} | {crossed} of {tried:,} |"
    )


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    X, y, order = credit()
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    half, ends = len(Z) // 2, (Z.min(axis=0), Z.max(axis=0))
    head = (
        "network, movable columns (goal: 100 % at up to 3 in 1 ms, 70 % at 6)",
        "people",
        "found by the search",
        "found by the proof",
        "proven of the rest",
        "ms a person of the rest",
        "nodes",
        "sampled moves that cross",
    )
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for activation in ("tanh", "relu"):
        score = fitted(Z[:half], y[:half], activation)
        for share in (0.5, 0.9):
            for count in (2, 3, 6, 10):
                print(row(score, Z[half:], share, order[:count], ends), flush=True)


if __name__ == "__main__":
    main()
