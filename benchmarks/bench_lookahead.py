"""Looking ahead: a logistic fit and Figure 1 of the look-ahead paper, against the published loops.

The published way is written out here: people answer one row at a time, every fit starts from zero,
by lbfgs (tolerance 1e-5) or by gradient descent until the loss falls by less than 1e-7 a step.
Ours answers all rows at once and fits by Newton's method from the last model, to rounding. Both
train 25 models on give-me-some-credit, each after imagining one for the people of level 2.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from countermove.data.schema import load_schema
from countermove.data.sources import read_raw
from countermove.dynamics import LevelKPopulation, LogisticLearner, retrain_until_stable
from countermove.experiments.lookahead.people import (
    PAPER_TABLE,
    LookaheadTable,
    gain_response,
    paper_table,
)

ROOT = Path(__file__).parents[1]
STRENGTH, ROUNDS, SHARES = 0.5, 25, {1: 0.9, 2: 0.1}
REPEATS = 3

Floats = NDArray[np.float64]


def people() -> LookaheadTable | None:
    """Return the paper's people, if their table was fetched."""
    folder = ROOT / "data" / "01_raw"
    if not (folder / f"{PAPER_TABLE}.csv").is_file():
        return None
    schema = load_schema(PAPER_TABLE, ROOT / "conf" / "base" / "schemas")
    return paper_table(read_raw(PAPER_TABLE, folder, schema))


def reported_loss(X: Floats, y: Floats, theta: Floats, penalty: float) -> float:
    """Return the loss the published descent watches."""
    s = X @ theta
    return float(np.mean(np.log(1 + np.exp(s)) - y * s) + penalty / 2 * np.linalg.norm(theta[:-1]))


def published_descent(X: Floats, y: Floats) -> tuple[Floats, int]:
    """Descend until the loss falls by less than 1e-7; return the model and the steps taken."""
    n, d = X.shape
    penalty = 1.0 / n
    longest = 1 / (np.sum(np.square(np.linalg.norm(X, axis=1))) / (4.0 * n) + penalty)
    theta, step, steps = np.zeros(d), longest, 0
    before, fallen = reported_loss(X, y, theta, penalty), 1.0
    while fallen > 1e-7:
        odds = np.exp(X @ theta)
        residual = odds / (1 + odds) - y
        slope = np.sum(X * residual[:, np.newaxis], axis=0) / n
        there = theta - step * (slope + penalty * np.append(theta[:-1], 0))
        loss = reported_loss(X, y, there, penalty)
        if loss > before:
            step *= 0.1
            continue
        theta, fallen, before, step, steps = there, before - loss, loss, longest, steps + 1
    return theta, steps


def answer_by_rows(X: Floats, theta: Floats, columns: list[int]) -> Floats:
    """Move everybody, a row at a time."""
    moved = np.copy(X)
    for row in range(len(X)):
        moved[row, columns] += STRENGTH * theta[columns]
    return moved


def published_rounds(table: LookaheadTable, start: Floats) -> list[float]:
    """Retrain as published: two answers and two cold fits a round; return the gaps."""
    from sklearn.linear_model import LogisticRegression

    X = np.column_stack([table.crowd.X, np.ones(table.crowd.n)])
    columns, y = list(table.columns(table.changeable)), table.crowd.y
    order, edge = np.random.default_rng(0).permutation(len(X)), int(SHARES[1] * len(X))
    first, second = order[:edge], order[edge:]

    def fit(rows: Floats) -> Floats:
        model = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-5, max_iter=1000)
        return np.asarray(model.fit(rows, y).coef_[0])

    theta, gaps = start, []
    for _ in range(ROUNDS):
        imagined = fit(answer_by_rows(X, theta, columns))
        rows = np.copy(X)
        rows[first] = answer_by_rows(X[first], theta, columns)
        rows[second] = answer_by_rows(X[second], imagined, columns)
        following = fit(rows)
        gaps.append(float(np.linalg.norm(following - theta)))
        theta = following
    return gaps


def our_rounds(table: LookaheadTable, start: Floats) -> Floats:
    """Retrain as we do; return the gaps."""
    population = LevelKPopulation.drawn(
        table.crowd, gain_response(table, (), STRENGTH), SHARES, np.random.default_rng(0)
    )
    learner = LogisticLearner(1.0 / table.crowd.n, penalise_intercept=True)
    # A tolerance below any rounding, so that all rounds are walked as in the published loop.
    run = retrain_until_stable(
        learner, population, start, rounds=ROUNDS, tolerance=0.0, theory=False
    )
    return run.gaps


def seconds(work: Callable[[], object]) -> float:
    """Return the processor time of a piece of work."""
    start = time.process_time()
    work()
    return time.process_time() - start


def paired(slow: Callable[[], object], fast: Callable[[], object], times: int) -> tuple[float, ...]:
    """Return the median seconds of both and the median of their ratios, run in turns."""
    fast()
    pairs = [(seconds(slow), seconds(lambda: [fast() for _ in range(times)]) / times)
             for _ in range(REPEATS)]  # fmt: skip
    slows, fasts = zip(*pairs, strict=True)
    ratios = [a / b for a, b in pairs]
    return statistics.median(slows), statistics.median(fasts), statistics.median(ratios)


def main() -> None:
    """Print the table."""
    table = people()
    if table is None:
        print(f"`{PAPER_TABLE}` has not been fetched: `kedro countermove fetch {PAPER_TABLE}`")
        return
    X, y = np.column_stack([table.crowd.X, np.ones(table.crowd.n)]), table.crowd.y
    learner = LogisticLearner(1.0 / table.crowd.n)
    start, steps = published_descent(X, y)
    fits = paired(lambda: published_descent(X, y), lambda: learner.fit(table.crowd), 20)
    walks = paired(lambda: published_rounds(table, start), lambda: our_rounds(table, start), 3)
    walked = len(our_rounds(table, start))
    print("| piece | published, s | ours, s | times faster |")
    print("|---|---|---|---|")
    fit = f"one logistic fit ({steps:,} steps that stop early; Newton to rounding)"
    print(f"| {fit} | {fits[0]:.2f} | {fits[1]:.4f} | {fits[2]:.0f} (goal 200) |")
    loop = f"Figure 1, {ROUNDS} rounds ({walked} walked by ours)"
    print(f"| {loop} | {walks[0]:.2f} | {walks[1]:.3f} | {walks[2]:.0f} (goal 40) |")


if __name__ == "__main__":
    main()
