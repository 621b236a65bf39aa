"""Searching for moves: several starts, stretches of steps, a way over the kinks of distances."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from countermove._types import Floats, Index
from countermove.dynamics.bilevel import Bilevel, Solution
from countermove.dynamics.goals import CentroidGoals
from countermove.dynamics.parts import Part
from countermove.dynamics.queries import QueryUtility
from countermove.errors import NotConvergedError, ParameterError
from countermove.randomness import generator

STRETCH, STALLED = 50, 1e-7
"""Steps between looks at the gain, and the share of the value below which a gain is none."""
LADDER = (1e-2, 1e-4, 1e-6, 1e-8)
"""Softenings of the distances, as shares of the farthest goal's."""
ON_KINK = 5e-2
"""A query this near its goal's centroid, as such a share, sits on the kink."""
CYCLES = 6
"""How often each class moves in turn there, at most."""


@dataclass(frozen=True, eq=False)
class Search:
    """How long and how closely to look.

    Parameters
    ----------
    starts
        Starts in all; those after the first are drawn at random.
    tolerance, max_steps
        See `Bilevel.maximise`.
    seed
        Of the random starts.
    strict
        Raise `NotConvergedError` where the search still gains when its steps are used up.
    """

    starts: int = 1
    tolerance: float = 1e-7
    max_steps: int = 2_000
    seed: int = 0
    strict: bool = True


def best_found(engine: Bilevel, starts: list[Floats], search: Search) -> tuple[Solution, bool]:
    """Climb from staying, from random starts, and from each given start that is not lower.

    Returns
    -------
    tuple
        The best strategy, and whether the search for it ended.
    """
    if search.starts < 1:
        raise ParameterError(f"a search needs starts >= 1, got {search.starts}")
    rng = generator(search.seed, "recourse starts")
    begun = [engine.space.stay()] + [engine.space.drawn(rng) for _ in range(search.starts - 1)]
    utility = engine.utility
    assert isinstance(utility, QueryUtility)
    if isinstance(utility.goals, CentroidGoals):
        best, ended = _over_kinks(engine, begun, starts, search)
    else:
        best, ended = _by_stretches(engine, begun, starts, search)
    if search.strict and not ended:
        raise NotConvergedError(
            f"the search still gains after {search.max_steps} steps (projected gradient "
            f"{best.residual:.2g}, tolerance {search.tolerance:.2g}); allow more steps, a "
            "larger tolerance, or take what was found with Search(strict=False)"
        )
    return best, ended


def _by_stretches(
    engine: Bilevel, begun: list[Floats], starts: list[Floats], search: Search
) -> tuple[Solution, bool]:
    best = max((_climb(engine, eta, search) for eta in begun), key=lambda found: found[0].value)
    for start in starts:
        allowed = engine.space.project(start)
        if engine.at(allowed, best[0].theta).value > best[0].value:
            best = _climb(engine, allowed, search)
    return best


def _climb(engine: Bilevel, eta: Floats, search: Search) -> tuple[Solution, bool]:
    """Climb until stationary, or until a stretch gains nothing."""
    best = _stretch(engine, eta, search)
    for _ in range(search.max_steps // STRETCH - 1):
        if best.converged:
            break
        found = _stretch(engine, best.eta, search)
        gained = found.value - best.value
        best = found if gained >= 0.0 else best
        if gained <= STALLED * (1.0 + abs(best.value)):
            return best, True
    return best, best.converged


def _over_kinks(
    engine: Bilevel, begun: list[Floats], starts: list[Floats], search: Search
) -> tuple[Solution, bool]:
    """Climb with softened distances first, then with the distances themselves.

    A query on its goal's centroid sits on a kink of its loss, where no slope vanishes and every
    step is short: there the search goes on class by class (`_by_class`).
    """
    scale = max(_distance(engine, begun[0]), 1e-3)
    soft = _softened(engine, LADDER[0] * scale)
    begun = begun + [engine.space.project(start) for start in starts]
    found = [_stretch(soft, eta, search) for eta in begun]
    # A start may be better than where softened distances lead from it.
    ends = [one.eta for one in found] + begun
    eta = max(ends, key=lambda end: engine.at(end).value)
    best, ended = replace(found[0], point=engine.at(eta)), True
    if _distance(engine, eta) > ON_KINK * scale:
        best, ended = _climb(engine, eta, search)
    # The climb itself may have led to the kink.
    if _distance(engine, best.eta) <= ON_KINK * scale:
        best, ended = _by_class(engine, best, scale, search), True
    return best, ended


def _by_class(engine: Bilevel, best: Solution, scale: float, search: Search) -> Solution:
    """Let one class move at a time, its distances softened ever less, until a cycle gains nothing.

    The stiff kink of the goal's class then no longer shortens the steps of the others.
    """
    members = engine.space.members_at(best.eta)
    kinds = np.column_stack([members.y, members.mass > 0.0])
    blocks = [np.flatnonzero((kinds == kind).all(axis=1)) for kind in np.unique(kinds, axis=0)]
    for _ in range(CYCLES):
        before = best.value
        for rows in blocks:
            best = _one_block(engine, best, rows, scale, search)
        if best.value - before <= STALLED * 1e-2 * (1.0 + abs(before)):
            break
    return best


def _one_block(
    engine: Bilevel, best: Solution, rows: Index, scale: float, search: Search
) -> Solution:
    eta = best.eta[rows]
    for share in LADDER:
        part = replace(_softened(engine, share * scale), space=Part(engine.space, best.eta, rows))
        eta = _stretch(part, eta, search).eta
    space = Part(engine.space, best.eta, rows)
    there = engine.at(space.whole(eta), best.theta)
    return replace(best, point=there) if there.value > best.value else best


def _stretch(engine: Bilevel, eta: Floats, search: Search) -> Solution:
    steps = min(STRETCH, search.max_steps)
    return engine.maximise(eta, tolerance=search.tolerance, max_steps=steps, strict=False)


def _softened(engine: Bilevel, softening: float) -> Bilevel:
    utility = engine.utility
    assert isinstance(utility, QueryUtility)
    assert isinstance(utility.goals, CentroidGoals)
    soft = replace(utility.goals, softening=softening)
    return replace(engine, utility=replace(utility, goals=soft))


def _distance(engine: Bilevel, eta: Floats) -> float:
    """Return how near the nearest query is to its goal's centroid."""
    utility = engine.utility
    assert isinstance(utility, QueryUtility)
    assert isinstance(utility.goals, CentroidGoals)
    learner = utility.goals.learner
    means = learner.centroids(engine.at(eta).theta)[learner.codes(utility.goal)]
    apart = utility.at(engine.space.members_at(eta)) - means
    return float(np.linalg.norm(apart, axis=1).min())
