"""Terms of the retraining policy; read when settings are, so nothing heavy is imported."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FollowingPolicy:
    """Terms of the policy that follows the world.

    Parameters
    ----------
    yearly_false_promotions
        Probability that a champion as good as its challengers is replaced within a year.
    monthly_false_promotions
        The same within a month, for three months after a promotion: it has shown that the
        world moves, so less is asked of the next. None: as much is asked as ever.
    propensities
        Weight people approved by draw by the inverse of their propensity where labels are of the
        approved only; else every label counts the same.
    """

    yearly_false_promotions: float = 0.05
    monthly_false_promotions: float | None = 0.5
    propensities: bool = False


@dataclass(frozen=True)
class DriftActs:
    """What the drift report changes about a night."""

    forget: bool = False  # labels given the score changed: nothing is weighted as if it had not
    reweight: bool = False  # what nobody can change has shifted: older people count as the new
    people: bool = False  # other people explain the new table: less is asked for a shift
