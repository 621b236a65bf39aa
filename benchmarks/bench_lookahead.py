"""Looking ahead: a logistic fit and Figure 1 of the look-ahead paper, against scikit-learn.

The peer answers all rows at once with NumPy and fits by scikit-learn's Newton method, from the
last model, with the tolerance at which its models agree with ours to 1e-6. Both train 25 models on
give-me-some-credit, each after imagining one for the people of level 2. CPU seconds, the least of
as many turns for each.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from benchmarks.timing import cpu_seconds
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

Floats = NDArray[np.float64]


def people() -> LookaheadTable | None:
    """Return the paper's people, if their table was fetched."""
    folder = ROOT / "data" / "01_raw"
    if not (folder / f"{PAPER_TABLE}.csv").is_file():
        return None
    schema = load_schema(PAPER_TABLE, ROOT / "conf" / "base" / "schemas")
    return paper_table(read_raw(PAPER_TABLE, folder, schema))


def peer(intercept: bool) -> LogisticRegression:
    """Return scikit-learn's fit by Newton's method; C = 1 is our penalty of 1/n."""
    return LogisticRegression(
        C=1.0, solver="newton-cholesky", fit_intercept=intercept, tol=1e-8, warm_start=True
    )


def peer_rounds(table: LookaheadTable, start: Floats) -> tuple[Floats, list[float]]:
    """Retrain as published: two answers and two fits a round; return the model and the gaps."""
    X = np.column_stack([table.crowd.X, np.ones(table.crowd.n)])
    columns, y = list(table.columns(table.changeable)), table.crowd.y
    order, edge = np.random.default_rng(0).permutation(len(X)), int(SHARES[1] * len(X))
    first, second = order[:edge], order[edge:]
    imagining, training = peer(False), peer(False)

    def moved(rows: NDArray[np.intp], theta: Floats) -> Floats:
        places = X[rows]
        places[:, columns] += STRENGTH * theta[columns]
        return places

    theta, gaps = start, []
    for _ in range(ROUNDS):
        imagined = imagining.fit(moved(np.arange(len(X)), theta), y).coef_[0]
        places = np.empty_like(X)
        places[first], places[second] = moved(first, theta), moved(second, imagined)
        following = training.fit(places, y).coef_[0].copy()
        gaps.append(float(np.linalg.norm(following - theta)))
        theta = following
    return theta, gaps


def our_rounds(table: LookaheadTable, start: Floats) -> tuple[Floats, Floats]:
    """Retrain as we do; return the model and the gaps."""
    population = LevelKPopulation.drawn(
        table.crowd, gain_response(table, (), STRENGTH), SHARES, np.random.default_rng(0)
    )
    learner = LogisticLearner(1.0 / table.crowd.n, penalise_intercept=True)
    # A tolerance below any rounding, so that all rounds are walked as in the published loop.
    run = retrain_until_stable(
        learner, population, start, rounds=ROUNDS, tolerance=0.0, theory=False
    )
    return run.theta, run.gaps


def main() -> None:
    """Print the table."""
    table = people()
    if table is None:
        print(f"`{PAPER_TABLE}` has not been fetched: `kedro countermove fetch {PAPER_TABLE}`")
        return
    learner, one = LogisticLearner(1.0 / table.crowd.n), peer(True)
    start = learner.fit(table.crowd)
    fitted = one.fit(table.crowd.X, table.crowd.y)
    apart = np.abs(np.append(fitted.coef_[0], fitted.intercept_) - start).max()
    walked, gaps = our_rounds(table, start)
    away = np.abs(peer_rounds(table, start)[0] - walked).max()
    print("| piece | scikit-learn, s | ours, s | times ours | largest difference |")
    print("|---|---|---|---|---|")

    def row(name: str, theirs: float, ours: float, difference: float) -> None:
        print(f"| {name} | {theirs:.4f} | {ours:.4f} | {theirs / ours:.1f} | {difference:.0e} |")

    def cold() -> None:
        peer(True).fit(table.crowd.X, table.crowd.y)

    row("one logistic fit", cpu_seconds(cold), cpu_seconds(lambda: learner.fit(table.crowd)), apart)
    rounds = f"Figure 1, {len(gaps)} rounds"
    row(
        rounds,
        cpu_seconds(lambda: peer_rounds(table, start)),
        cpu_seconds(lambda: our_rounds(table, start)),
        away,
    )


if __name__ == "__main__":
    main()
