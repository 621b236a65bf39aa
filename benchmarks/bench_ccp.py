"""One training batch: compiled response against the convex-concave procedure through CVXPY.

The credit batch of the SERM experiments (64 people, 11 features, quadratic cost,
temperature 0.5): forward and backward of ours against (a) one compiled CVXPY
problem solved person by person, (b) one batched DIFFCP layer, both stopped at a
move of 1e-3 as published and followed by one differentiable DIFFCP solve. CPU seconds, the
least of as many turns for each.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import cvxpy as cp
import numpy as np
import torch

from benchmarks.timing import cpu_seconds
from countermove.people import QuadraticCost
from countermove.response import BestResponse, ConicResponse, Response, ScalarResponse
from countermove.response._conic_people import ConicPeople
from countermove.response.conic import ConicProblem, ConicRule
from countermove.response.step import pull_at
from countermove.scores import LinearScore

BATCH, TEMPERATURE, TOLERANCE, CAP = 64, 0.5, 1e-3, 100


def people() -> np.ndarray:
    """Return a batch of the credit parity table, or people of the same shape without it."""
    folder = os.environ.get("COUNTERMOVE_PARITY_DATA")
    if folder and (Path(folder) / "serm" / "credit.npz").exists():
        with np.load(Path(folder) / "serm" / "credit.npz") as stored:
            return np.asarray(stored["X0"][:BATCH], dtype=float)
    return np.random.default_rng(0).normal(size=(BATCH, 11)) / np.sqrt(11)


def rule(d: int) -> LinearScore:
    """Return a rule with a spread of scores."""
    score = LinearScore(d, torch.Generator().manual_seed(2))
    with torch.no_grad():
        score.weight *= 4.0
    return score


def ours(response: Response, score: LinearScore, X: torch.Tensor) -> float:
    """Return the seconds of one forward and backward pass."""
    return cpu_seconds(lambda: response.scores_after(score, X).sum().backward())


def per_person(score: LinearScore, X: np.ndarray) -> np.ndarray:
    """Return the places of the procedure solved person by person."""
    d = X.shape[1]
    w, b = score.weight.detach().numpy(), float(score.bias.detach())
    x, place, pull = cp.Parameter(d), cp.Variable(d), cp.Parameter(d)
    root = cp.norm(cp.hstack([(w @ place + b) / TEMPERATURE - 1.0, 1.0]))
    problem = cp.Problem(cp.Maximize(pull @ place - 0.5 * root - cp.sum_squares(place - x)))
    places = np.empty_like(X)
    for i, row in enumerate(X):
        x.value, at = row, row
        for _ in range(CAP):
            up = (w @ at + b) / TEMPERATURE + 1.0
            pull.value = 0.5 * up / np.sqrt(1.0 + up * up) / TEMPERATURE * w
            problem.solve(solver="CLARABEL")
            at, before = place.value, at
            if np.linalg.norm(at - before) <= TOLERANCE:
                break
        places[i] = at
    return places


def batched(score: LinearScore, X: torch.Tensor) -> float:
    """Return the seconds of the batched procedure with its differentiable last solve."""
    response = ConicResponse(
        QuadraticCost(), None, TEMPERATURE, "stay", False, "last_proxy", solver="DIFFCP"
    )
    problem = ConicProblem(response, ConicPeople.in_boxes(response.plan(X.shape[1]), X))

    def one_pass() -> None:
        now = score(X).detach()
        fixed = ConicRule(now, score.weight.detach(), torch.tensor(1.0 / TEMPERATURE).double())
        at, action = now, torch.zeros_like(X)
        for _ in range(CAP):
            with torch.no_grad():
                ahead, _ = problem.proxy(fixed, pull_at(fixed.sharpness, at))
            moved = float((ahead - action).norm(dim=1).mean())
            action, at = ahead, now + ahead @ fixed.slope
            if moved <= TOLERANCE:
                break
        graph = ConicRule(score(X), score.weight, fixed.sharpness)
        last = score(X + action)
        final, _ = problem.proxy(graph, pull_at(fixed.sharpness, last))
        score(X + final).sum().backward()

    return cpu_seconds(one_pass)


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    rows = people()
    X, score = torch.from_numpy(rows), rule(rows.shape[1])
    published = ScalarResponse(QuadraticCost(), None, TEMPERATURE, "stay", False, "last_proxy")
    mine = ours(published, score, X)
    places = per_person(score, rows)
    alone = cpu_seconds(lambda: per_person(score, rows))
    together = batched(score, X)
    apart = np.abs(places - published.respond(score, rows).x_new).max()
    print("| method | CPU seconds per batch | times the compiled response | limit |")
    print("|---|---|---|---|")
    print(f"| compiled, published protocol | {mine:.6f} | 1 | |")
    print(f"| compiled, smooth | {ours(ScalarResponse(), score, X):.6f} | | |")
    print(f"| compiled, best | {ours(BestResponse(), score, X):.6f} | | |")
    print(f"| CVXPY, person by person | {alone:.3f} | {alone / mine:.0f} | 1000 |")
    print(f"| DIFFCP, batched | {together:.3f} | {together / mine:.0f} | 100 |")
    print(f"\nLargest distance between our places and CVXPY's at its tolerance: {apart:.1e}.")


if __name__ == "__main__":
    main()
