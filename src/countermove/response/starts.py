"""Where an ascent begins: here, up and down the slope, towards the approved, and anywhere."""

from __future__ import annotations

import torch
from torch import Tensor

from countermove.randomness import torch_generator
from countermove.response.base import GAIN
from countermove.response.climb import Climb

DRAWN_SHARE = 0.7
"""How far along a drawn direction to start, of what is affordable: half of the cost is left."""


def starting_points(problem: Climb, reference: Tensor, drawn: int, seed: int) -> Tensor:
    """Return the actions to climb from, shape (5 + drawn, n, m).

    Parameters
    ----------
    problem
        Everybody's problem.
    reference
        People among whom approved ones are looked for, shape (k, d).
    drawn
        Number of directions drawn at random, the same for everybody.
    seed
        Of those.
    """
    n, m = len(problem.X), len(problem.columns)
    uphill = problem.score.gradient(problem.X)[:, problem.columns]
    if problem.weights is not None:
        uphill = uphill / problem.weights
    elif problem.matrix is not None:
        uphill = torch.linalg.solve(problem.matrix, uphill.T).T
    draws = torch_generator(seed, "ascent starts")
    ways = torch.randn(drawn, m, generator=draws, dtype=torch.float64)
    top = affordable(problem, uphill)
    return torch.stack(
        [
            torch.zeros(n, m, dtype=torch.float64),
            top,
            0.5 * top,
            0.5 * affordable(problem, -uphill),
            _towards_approved(problem, reference),
            *(DRAWN_SHARE * affordable(problem, way.expand(n, m)) for way in ways),
        ]
    )


def affordable(problem: Climb, way: Tensor) -> Tensor:
    """Return the longest action along each way that costs no more than a decision is worth."""
    size = way.norm(dim=1, keepdim=True)
    way = way / torch.where(size > 0.0, size, 1.0)
    bent = way.new_zeros(len(way))
    if problem.weights is not None:
        bent = bent + way.square() @ problem.weights
    if problem.matrix is not None:
        bent = bent + ((way @ problem.matrix) * way).sum(1)
    steep = problem.kinked(way)
    root = steep + (steep.square() + 4.0 * GAIN * bent).sqrt()
    # Without any cost along the way the box ends it: far is far enough.
    length = torch.where(root > 0.0, 2.0 * GAIN / root.clamp(min=1e-12), 1e6)
    return (way * length[:, None]).clamp(problem.lower, problem.upper)


def _towards_approved(problem: Climb, reference: Tensor) -> Tensor:
    """Return the way to the nearest approved person, as far as it can be paid for."""
    good = reference[problem.score(reference) >= 0.0]
    if not len(good):
        return torch.zeros(len(problem.X), len(problem.columns), dtype=torch.float64)
    here, there = problem.X[:, problem.columns], good[:, problem.columns]
    way = there[torch.cdist(here, there).argmin(1)] - here
    most = affordable(problem, way)
    nearer = way.norm(dim=1, keepdim=True) < most.norm(dim=1, keepdim=True)
    return torch.where(nearer, way, most)
