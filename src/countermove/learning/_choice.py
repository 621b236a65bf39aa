r"""Whether training earned its keep against the simple rule.

The simple rule is the blind direction with the best intercept after response.
Where everybody reaches equally far, answering people only moves the intercept
and no direction can be owed to them; so a trained direction has to prove itself.
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
"""Reaches that differ by less than this share are the same: rounding of the solvers."""
PROOF = 2.0
"""Standard errors by which training must win: its rows are the ones it was fitted to.

Not asked for where several kinds of people answer: no one intercept suits them all, so the
direction has a part by construction and any gain of the worst case counts.
"""


@dataclass(frozen=True)
class Choice:
    """Which rule was kept, judged on training and validation rows after response.

    Attributes
    ----------
    kept
        ``"trained"``, or ``"blind"`` for the blind direction with the best intercept.
    trained, blind
        Accuracies after response (worst member, or weighted mean) of both rules, each
        with its own best intercept.
    standard_error
        Of their paired difference.
    alike
        Whether everybody reaches equally far under both, so that the direction cannot matter.
    """

    kept: str
    trained: float
    blind: float
    standard_error: float
    alike: bool


def choose(trained: Score, blind: Score, people: Population, X: Floats, y: Floats) -> Choice:
    r"""Compare both rules row by row and say which to keep.

    With :math:`d_i \in [-1, 1]` how much better the trained rule decides person
    :math:`i`, it is kept iff

    .. math:: \frac1n \sum_i d_i > z \cdot \frac1n \Bigl(\sum_i d_i^2\Bigr)^{1/2}

    and people do not all reach alike, with :math:`z = 2` (two standard errors, as
    McNemar's test counts them) for one kind of people and 0 for several. Guarantee: on
    these rows the rule kept is never less accurate after response than the blind
    direction with its best intercept, and where everybody reaches alike it is that rule.

    Parameters
    ----------
    trained, blind
        Both with the intercept that is best for them on these rows.
    people
        Whose response counts.
    X, y
        Training and validation rows, shape (n, d), and labels in {-1, +1}.
    """
    ours, theirs = _rightness(trained, people, X, y), _rightness(blind, people, X, y)
    better = ours - theirs
    noise = float(np.sqrt(np.sum(better**2)))
    alike = all(all_reach_alike(rule, people.members, X) for rule in (blind, trained))
    proof = PROOF if len(people.members) == 1 else 0.0
    proven = float(better.sum()) > proof * noise
    kept = "trained" if proven and not alike else "blind"
    means = float(ours.mean()), float(theirs.mean())
    return Choice(kept, *means, standard_error=noise / len(y), alike=alike)


def all_reach_alike(score: Score, members: tuple[Response, ...], X: Floats) -> bool:
    r"""Tell whether one kind of people answers, and each of them can raise the score as far.

    Then whoever scores alike ends alike: the decision after response is a threshold on
    :math:`s(x)`, and the best rule after response is the best rule for people
    who do not move, its intercept lowered. True without bounds on values, whatever
    is immutable and whatever the cost of the move.
    """
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


def _rightness(score: Score, people: Population, X: Floats, y: Floats) -> Floats:
    """Return, per person, whether the worst member is decided rightly (or the weighted mean)."""
    favourable = y > 0
    right = np.stack([m.decisions_after(score, X) == favourable for m in people.members])
    if people.weights is not None:
        mixed: Floats = np.asarray(people.weights) @ right
        return mixed
    worst: Floats = right[np.argmin(right.mean(axis=1))].astype(np.float64)
    return worst
