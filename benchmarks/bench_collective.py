"""Helping somebody through the retraining: logistic learners, participants times features.

The engine needs a few arrays of the size of the people, and no matrix of people by people:
memory above the table's own is measured in a process of its own for each size.
"""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np

from benchmarks.memory import high_water_mark
from countermove.dynamics.collective.recourse import individual, together
from countermove.dynamics.collective.recourse_problem import CollectiveRecourseProblem, Reach
from countermove.dynamics.collective.recourse_search import RecourseSearch
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners import LogisticLearner

SIZES = ((2_500, 20), (5_000, 20), (10_000, 20), (20_000, 20))
BUDGET = 0.3


def problem_of(n: int, d: int) -> CollectiveRecourseProblem:
    """Return a refused person among noisy classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = (X @ rng.normal(size=d) / np.sqrt(d) + rng.logistic(size=n) > 0.0).astype(np.float64)
    learner = LogisticLearner(penalty=1e-2)
    crowd = Crowd(X, y)
    theta = learner.fit(crowd)
    scores = learner.scores(theta, X)
    return CollectiveRecourseProblem(crowd, X[scores.argsort()[n // 4]], 1.0, learner)


def measure(n: int, d: int) -> str:
    """Return one line: seconds, memory, losses."""
    problem = problem_of(n, d)
    alone = individual(problem, Reach(BUDGET)).loss
    before, start = high_water_mark(), time.process_time()
    found = together(problem, Reach(BUDGET), search=RecourseSearch(tolerance=1e-4, max_steps=500))
    spent, extra = time.process_time() - start, high_water_mark() - before
    goal = " (goal 30)" if (n, d) == (10_000, 20) else ""
    return (
        f"| {n:,} × {d} | {spent:.1f}{goal} | {extra / 1e6:.0f} | {extra / (8 * n * d):.0f} | "
        f"{found.loss_before:.3f} | {alone:.3f} | {found.loss:.3f} | {found.converged} |"
    )


def main() -> None:
    """Print the table."""
    print(
        "| people × features | processor s | MB more | in copies of the table | loss before "
        "| alone | together | search ended |\n|---|---|---|---|---|---|---|---|"
    )
    for n, d in SIZES:
        line = [sys.executable, "-m", "benchmarks.bench_collective", str(n), str(d)]
        done = subprocess.run(line, capture_output=True, text=True, check=True)
        print(done.stdout.strip(), flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(measure(int(sys.argv[1]), int(sys.argv[2])))
    else:
        main()
