"""Fits: CPU time against scikit-learn's LogisticRegression on the same rows.

First whole fits as users run them, selection included, then the solver alone on credit. Every case
and LogisticRegression (no penalty to speak of) take the least of the same number of turns. Six
random starts show whether the optimum is one.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

from benchmarks.timing import cpu_seconds
from countermove import StrategicClassifier
from countermove.data.cleaning import clean
from countermove.data.rows import fit_standardiser, rows_of, standardised_table
from countermove.data.schema import load_schema
from countermove.data.sources import read_raw
from countermove.learning.objectives import StrategicRisk
from countermove.people import ActionSet, QuadraticCost
from countermove.response import BestResponse, NoResponse, Population, ScalarResponse
from countermove.response.base import Response
from countermove.scores import LinearScore
from countermove.training import Loss, TrainingRows
from countermove.training._descent import MOST_STEPS, NewtonSteps

ROOT = Path(__file__).parents[1]
ROWS, SMALL, STARTS = 15_000, 300, 6
WHOLE = {
    "everybody alike": 60.0,
    "value bounds": 60.0,
    "two kinds and 30 % who never move": 60.0,
    "log-normal prices, 20 % never move": 100.0,
}
Table = tuple[np.ndarray, np.ndarray]


def credit() -> Table:
    """Return standardised rows and labels in {-1, +1} of the embedded table."""
    schema = load_schema("credit", ROOT / "conf" / "base" / "schemas")
    typed = clean(read_raw("credit", ROOT / "data" / "01_raw", schema), schema)
    typed = typed.sample(ROWS, random_state=0).reset_index(drop=True)
    unit = fit_standardiser(typed, schema, False)
    people = rows_of(standardised_table(typed, schema, unit), schema)
    return people.X, people.y


def populations(X: np.ndarray) -> dict[str, tuple[Response, float]]:
    """Return the people to train for, each with the limit of its ratio."""
    d = X.shape[1]
    box = ActionSet(min_value=X.min(axis=0), max_value=X.max(axis=0))
    some = ActionSet(immutable=range(0, d, 2), only_increase=range(1, d, 4))
    cheap, dear = QuadraticCost(0.5), QuadraticCost(3.0)
    return {
        "nobody moves": (NoResponse(), 2.0),
        "everybody alike": (BestResponse(), 2.5),
        "value bounds": (BestResponse(actions=box), 5.0),
        "two kinds and 30 % who never move": (
            Population([BestResponse(cheap), BestResponse(dear)], [0.6, 0.4], never=0.3),
            4.0,
        ),
        "half immutable, some one-way, two kinds": (
            Population([BestResponse(cheap, some), BestResponse(dear, some)], [0.6, 0.4]),
            4.0,
        ),
        "log-normal prices, 20 % never move": (
            Population(BestResponse(QuadraticCost(2.0)), never=0.2, log_sd=0.5),
            4.0,
        ),
        "smoothed step, temperature 1": (ScalarResponse(temperature=1.0), 20.0),
        "smoothed step, temperature 0.5": (ScalarResponse(temperature=0.5), 20.0),
    }


def solved(people: Response, rows: TrainingRows, seed: int | None = None) -> NewtonSteps:
    """Take Newton's steps from zero, or from a random start."""
    draw = None if seed is None else torch.Generator().manual_seed(seed)
    score = LinearScore(rows.X.shape[1], draw)
    steps = NewtonSteps(score, StrategicRisk((people,), Loss("logistic")), rows, MOST_STEPS)
    taken = 0
    while not steps.ended(taken):
        steps.epoch(steps.objective, taken)
        taken += 1
    return steps


def main() -> None:
    """Print the table of whole fits and that of the solver."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    X, y = credit()
    plain = LogisticRegression(C=1e6, max_iter=2000)
    print("| whole `StrategicClassifier().fit`, selection included | rows | times | limit |")
    print("|---|---|---|---|")
    for name, limit in WHOLE.items():
        people, _ = populations(X)[name]
        rule = StrategicClassifier(response=people)
        for n in (ROWS, SMALL):
            theirs = cpu_seconds(lambda n=n: plain.fit(X[:n], y[:n]))
            ours = cpu_seconds(lambda n=n, rule=rule: rule.fit(X[:n], y[:n]))
            shown = f"{limit:g}" if n == ROWS else ""
            print(f"| {name} | {n:,} | {ours / theirs:.0f} | {shown} |", flush=True)
    rows = TrainingRows(*2 * (torch.from_numpy(X), torch.from_numpy(y)))
    print(f"\n{len(y):,} rows × {X.shape[1]} features.\n")
    print("| solver | times LogisticRegression | limit | gradient | least cosine of six starts |")
    print("|---|---|---|---|---|")
    for name, (people, limit) in populations(X).items():
        steps = solved(people, rows)
        theirs = cpu_seconds(lambda: plain.fit(X, y))
        ours = cpu_seconds(lambda people=people: solved(people, rows))
        ends = [solved(people, rows, seed).run.point[:-1] for seed in range(STARTS)]
        units = np.array([end / np.linalg.norm(end) for end in (steps.run.point[:-1], *ends)])
        cosine = float((units @ units[0]).min())
        print(
            f"| {name} | {ours / theirs:.1f} | {limit:g} | {steps.run.here.norm:.0e} | "
            f"{cosine:.5f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
