"""Training to the optimum: processor time against scikit-learn's LogisticRegression on credit.

Every case and LogisticRegression (no penalty to speak of) are fitted to the same rows in turn, and
the shortest of several turns counts. Six random starts show whether the optimum is one.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

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
ROWS, TURNS, STARTS = 15_000, 5, 6
Table = tuple[np.ndarray, np.ndarray]


def seconds(work: Callable[[], Any], turns: int = TURNS) -> float:
    """Return the processor seconds of the shortest of several turns."""
    best = float("inf")
    for _ in range(turns):
        started = time.process_time()
        work()
        best = min(best, time.process_time() - started)
    return best


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
    """Print the table of the solver and that of whole fits."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    X, y = credit()
    rows = TrainingRows(*2 * (torch.from_numpy(X), torch.from_numpy(y)))
    plain = LogisticRegression(C=1e6, max_iter=2000)
    print(f"{len(y):,} rows × {X.shape[1]} features.\n")
    print("| people | times LogisticRegression | limit | gradient | least cosine of six starts |")
    print("|---|---|---|---|---|")
    for name, (people, limit) in populations(X).items():
        steps = solved(people, rows)
        theirs = seconds(lambda: plain.fit(X, y))
        ours = seconds(lambda people=people: solved(people, rows))
        ends = [solved(people, rows, seed).run.point[:-1] for seed in range(STARTS)]
        units = np.array([end / np.linalg.norm(end) for end in (steps.run.point[:-1], *ends)])
        cosine = float((units @ units[0]).min())
        print(
            f"| {name} | {ours / theirs:.1f} | {limit:g} | {steps.run.here.norm:.0e} | "
            f"{cosine:.5f} |",
            flush=True,
        )
    print("\n| whole `StrategicClassifier().fit`, selection included | times | limit |")
    print("|---|---|---|")
    for name, limit in (("everybody alike", 60.0), ("value bounds", 60.0)):
        _whole(name, limit, X, y, plain)
    _whole("two kinds and 30 % who never move", 60.0, X, y, plain)
    _whole("log-normal prices, 20 % never move", 100.0, X, y, plain)


def _whole(name: str, limit: float, X: np.ndarray, y: np.ndarray, plain: Any) -> None:
    people, _ = populations(X)[name]
    StrategicClassifier(response=people).fit(X, y)
    theirs = seconds(lambda: plain.fit(X, y))
    ours = seconds(lambda: StrategicClassifier(response=people).fit(X, y), 2)
    print(f"| {name} | {ours / theirs:.0f} | {limit:g} |", flush=True)


if __name__ == "__main__":
    main()
