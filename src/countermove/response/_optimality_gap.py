"""How far responses found by ascent are known to fall short of the best."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from countermove._types import Floats
from countermove.randomness import torch_generator
from countermove.response._climbing import Climb, affordable
from countermove.response.base import GAIN
from countermove.scores import Score, deciding

if TYPE_CHECKING:
    from countermove.response.ascent import AscentResponse

POINTS = {1: 401, 2: 61, 3: 25}
"""Grid points per dimension: at most some fifteen thousand places per person."""
CERTAIN = 1e-6
"""A gap below this is rounding of two searches that met."""


@dataclass(frozen=True)
class OptimalityGap:
    """How much utility people lose by ascent, against the best response known.

    Attributes
    ----------
    gap
        Utility of the best place known minus that of the response, at least 0, shape (n,). The
        decision is worth 2, so 0.02 is one per cent of it.
    against
        ``"exact"``: the global maximum (scores with a slope); ``"grid"``: the best place of a
        grid over all that can be paid for, climbed from (up to three movable features);
        ``"starts"``: the best of many more starts.
    exact
        Whether the gap is the true one; else it is a *lower* estimate of it.
    """

    gap: Floats
    against: str
    exact: bool

    @property
    def worst(self) -> float:
        """The largest gap."""
        return float(self.gap.max(initial=0.0))

    @property
    def share(self) -> float:
        """Share of the people for whom something better is known."""
        return float(np.mean(self.gap > CERTAIN)) if len(self.gap) else 0.0


def optimality_gap(
    response: AscentResponse, score: Score, X: Floats, starts: int = 64
) -> OptimalityGap:
    """Compare everybody's response with the best that a more expensive search finds."""
    problem, stop = response.solve(score, X)
    found = problem.place(stop.action).numpy()
    mine = response.utility(score, X, found)
    if score.slope() is not None:
        against, other = "exact", _exact(response, score, X)
    else:
        with deciding(score), torch.no_grad():
            m = len(problem.columns)
            grid = m in POINTS
            tried = _best_of_grid(problem) if grid else _many(problem, starts, response.seed)
        problem, stop = response.solve(score, X, tried)
        against, other = ("grid" if grid else "starts"), problem.place(stop.action).numpy()
    gap = np.maximum(response.utility(score, X, other) - mine, 0.0)
    return OptimalityGap(gap, against, exact=against == "exact")


def _exact(response: AscentResponse, score: Score, X: Floats) -> Floats:
    from countermove.response.smooth import ScalarResponse

    people = ScalarResponse(
        response.cost, response.actions, response.temperature, unit=response.unit
    )
    places: Floats = people.respond(score, X).x_new
    return places


def _many(problem: Climb, starts: int, seed: int) -> Tensor:
    """Return actions in all directions and of all affordable lengths, shape (k, n, m)."""
    n, m = len(problem.X), len(problem.columns)
    draws = torch_generator(seed, "optimality gap")
    ways = torch.randn(starts, n, m, generator=draws, dtype=torch.float64)
    lengths = torch.rand(starts, n, 1, generator=draws, dtype=torch.float64)
    return torch.stack(
        [length * affordable(problem, way) for way, length in zip(ways, lengths, strict=True)]
    )


def _best_of_grid(problem: Climb) -> Tensor:
    """Return the best action of a grid over everything affordable, shape (1, n, m)."""
    n, m = len(problem.X), len(problem.columns)
    reach = _largest_move(problem)
    low = problem.lower.clamp(min=-reach)
    width = problem.upper.clamp(max=reach) - low
    best = torch.zeros(n, m, dtype=torch.float64).clamp(problem.lower, problem.upper)
    highest = problem.smooth(best) - problem.kinked(best)
    for corner in product(torch.linspace(0.0, 1.0, POINTS[m], dtype=torch.float64), repeat=m):
        action = low + width * torch.stack(corner)
        value = problem.smooth(action) - problem.kinked(action)
        better = value > highest
        best = torch.where(better[:, None], action, best)
        highest = torch.where(better, value, highest)
    return best[None]


def _largest_move(problem: Climb) -> float:
    """Return how far anybody goes: nobody pays more than the decision is worth."""
    if problem.matrix is not None:
        least = float(torch.linalg.eigvalsh(problem.matrix)[0])
    elif problem.weights is not None:
        least = float(problem.weights.min())
    else:
        return float("inf")
    return float(np.sqrt(GAIN / least))
