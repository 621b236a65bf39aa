r"""Whether training did better than the simple rule.

The simple rule is the blind direction with the best intercept after response.
Where everybody reaches equally far, the response only moves the intercept and the direction
cannot matter, so a trained direction has to prove itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from countermove._types import Floats
from countermove.learning._populations import Population
from countermove.response.base import NoResponse, Response
from countermove.response.rational import rational_people
from countermove.scores import Score

ALIKE = 1e-9
"""Reaches that differ by less than this share are equal up to the solvers' rounding."""
PROOF = 2.0
"""Standard errors by which training must win: its rows are the ones it was fitted to.

Not required where several kinds of people respond: no one intercept suits them all, so the
direction matters by construction and any gain of the worst case counts.
"""


@dataclass(frozen=True)
class Choice:
    """Which rule was kept, judged on training and validation rows after response."""

    kept: str  # "trained", or "blind" for the blind direction with the best intercept
    trained: float  # accuracies after response, worst member or weighted mean
    blind: float
    standard_error: float  # of their paired difference
    alike: bool  # everybody reaches equally far under both: the direction cannot matter


def choose(trained: Score, blind: Score, people: Population, X: Floats, y: Floats) -> Choice:
    """Compare both rules row by row, each with its best intercept, and say which to keep."""
    ours, theirs = _correctness(trained, people, X, y), _correctness(blind, people, X, y)
    better = ours - theirs
    # Kept iff the mean difference exceeds two standard errors, as McNemar's test counts them (any
    # gain for several kinds of people): never less accurate on these rows than the simple rule.
    noise = float(np.sqrt(np.sum(better**2)))
    alike = all(all_reach_alike(rule, people.members, X) for rule in (blind, trained))
    proof = PROOF if len(people.members) == 1 else 0.0
    proven = float(better.sum()) > proof * noise
    kept = "trained" if proven and not alike else "blind"
    means = float(ours.mean()), float(theirs.mean())
    return Choice(kept, *means, standard_error=noise / len(y), alike=alike)


def all_reach_alike(score: Score, members: tuple[Response, ...], X: Floats) -> bool:
    """Say whether one kind of people responds, and each can raise the score equally far."""
    # Then whoever scores alike ends alike: the decision after response is a threshold on s(x), and
    # the best rule is the best rule for people who do not move, its intercept lowered. True without
    # bounds on values, whatever is immutable and whatever the cost of the move.
    if len(members) != 1:
        return False
    if isinstance(members[0], NoResponse):
        return True
    rational = rational_people(members[0], score, X)
    if rational is None:
        # A score that bends is reached differently from everywhere.
        return False
    rule, rows = rational.score, torch.from_numpy(rational.rows)
    with torch.no_grad():
        reach = rational.response.scores_after(rule, rows) - rule(rows)
        size = 1.0 + rule(rows).abs().max()
    return float(reach.max() - reach.min()) <= ALIKE * float(size + reach.abs().max())


def _correctness(score: Score, people: Population, X: Floats, y: Floats) -> Floats:
    """Return, per person, whether the worst member is decided correctly (or the weighted mean)."""
    favourable = y > 0
    right = np.stack([m.decisions_after(score, X) == favourable for m in people.members])
    if people.weights is not None:
        mixed: Floats = np.asarray(people.weights) @ right
        return mixed
    worst: Floats = right[np.argmin(right.mean(axis=1))].astype(np.float64)
    return worst
