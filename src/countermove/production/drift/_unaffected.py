r"""What no response to the rule can change: where it differs, people came who are not the same.

Whatever their costs, people who respond move within one set of directions. Features nobody moves
stay, and so does every feature once those directions are taken out of it. And whoever responds
stops where the rule is content: people approved before, and further beyond than any response
leads, did not move. Neither test depends on how strongly people responded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from countermove._types import Floats
from countermove.people.costs import KINDS
from countermove.production.drift._comparison import ColumnTest, column_tests
from countermove.production.drift._kernel_distance import spread_of
from countermove.production.drift._samples import LEAST, DriftSamples, ScoredSample, answers
from countermove.production.drift.terms import DriftTerms
from countermove.randomness import generator
from countermove.response import Response
from countermove.scores import Score

FACTORS = (0.25, 1.0, 4.0)
"""Costs under which directions are collected: bounds turn people who go further."""
NOTHING = 1e-6
"""Directions shorter than this part of the longest are rounding."""
PEOPLE = 4_000
"""Whose moves show the directions."""


@dataclass(frozen=True, eq=False)
class Unaffected:
    """Coordinates no response changes: their weights on the features (d, k), and their names."""

    basis: Floats
    names: tuple[str, ...]


def untouched(samples: DriftSamples, score: Score, names: tuple[str, ...], seed: int) -> Unaffected:
    """Return what stays however much a move costs."""
    rng = generator(seed, "untouched")
    who = np.arange(min(len(samples.reference.X), PEOPLE))
    X = samples.reference.X[who]
    people = [scaled(samples.response.of_rows(who), factor) for factor in FACTORS]
    moves = np.vstack([answers(kind, score, X, rng) - X for kind in people])
    size = np.abs(moves).max(axis=0)
    moving = np.flatnonzero(size > NOTHING * max(float(size.max()), 1e-300))
    basis, called = np.eye(len(names)), list(names)
    if moving.size:
        within = moves[:, moving]
        squares, directions = np.linalg.eigh(within.T @ within)
        used = directions[:, squares > NOTHING**2 * squares[-1]]
        basis[np.ix_(moving, moving)] -= used @ used.T
    for j in moving:
        called[j] = f"{names[j]} (answers taken out)"
    left = np.flatnonzero(np.linalg.norm(basis, axis=0) > NOTHING)
    return Unaffected(basis[:, left], tuple(called[j] for j in left))


def unaffected_tests(
    samples: DriftSamples, score: Score, names: tuple[str, ...], terms: DriftTerms, seed: int
) -> tuple[ColumnTest, ...]:
    """Test whether what no response can change is as it was; none where responses change all.

    Any alarm has probability at most half of ``terms.level`` if the same kind of people came,
    however strongly they responded along the directions that multiples of our cost lead to.
    """
    stays = untouched(samples, score, names, seed)
    if not stays.names:
        return ()
    pooled = np.concatenate([samples.reference.X, samples.observed.X]) @ stays.basis
    n = len(samples.reference.X)
    return column_tests(pooled, n, stays.names, terms.resolution, 0.5 * terms.level)


def scaled(response: Response, factor: float) -> Response:
    """Return people for whom everything costs ``factor`` times as much; code in a cost stays."""
    if response.cost.kind not in KINDS:
        return response
    return response.with_cost(response.cost.times(factor))


def approved_before_tests(
    samples: DriftSamples, accounts: Sequence[ScoredSample], names: Sequence[str], terms: DriftTerms
) -> tuple[ColumnTest, ...]:
    """Test whether people beyond the reach of all responses are as before.

    Any alarm has probability at most half of ``terms.level`` if the same kind of people came
    and responding by one of the accounts, or at other costs but stopping no further beyond. None
    where fewer than 50 people of either table stand there.
    """
    before, seen = samples.reference, samples.observed
    step = terms.resolution * float(spread_of(before.score[:, None])[0])
    furthest = 0.0
    for account in accounts:
        moved = np.abs(account.score - before.score) > step
        furthest = max(furthest, float(account.score[moved].max(initial=0.0)))
    old, new = (sample.X[sample.score > furthest + step] for sample in (before, seen))
    if min(len(old), len(new)) < LEAST:
        return ()
    called = [f"{name} (people approved before)" for name in names]
    pooled = np.concatenate([old, new])
    return column_tests(pooled, len(old), called, terms.resolution, 0.5 * terms.level)
