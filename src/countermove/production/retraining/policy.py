"""Terms of the retraining policy; read when settings are, so nothing heavy is imported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class FollowingPolicy:
    """Terms of the policy that follows the world.

    Parameters
    ----------
    yearly_false_promotions
        Probability that a champion as good as its challengers is replaced within a year.
    monthly_false_promotions
        The same within a month, for the ``pooled_months`` after a promotion: it has shown that the
        world moves, so less is asked of the next. None: as much is asked as ever.
    evidence
        ``likelihood``: z of the newest looks. ``e_value``: valid at any time, less powerful.
    pooled_months
        Looks of how many months are taken together, none from before the last promotion.
    discounts
        Weights of people a month older, among which the newest labels choose.
    trend
        Let them choose, too, among rules moved on to the newest month: by a discount the rule is
        as old as its people are on average, and the rule of the largest discount, which is older,
        shows the course.
    folds
        Of the newest labels; each is predicted by rules fitted without it.
    least_shift
        Smallest change of the threshold, as a share of the reach, for which the champion's is
        shifted.
    propensities
        Weight people approved by draw by the inverse of their propensity where labels are of the
        approved only; else every label counts the same.
    """

    yearly_false_promotions: float = 0.05
    monthly_false_promotions: float | None = 0.5
    evidence: Literal["likelihood", "e_value"] = "likelihood"
    pooled_months: float = 3.0
    discounts: tuple[float, ...] = (0.1, 0.4, 0.7, 1.0)
    trend: bool = True
    folds: int = 6
    least_shift: float = 0.05
    propensities: bool = False


@dataclass(frozen=True)
class DriftActs:
    """What the drift report changes about a night."""

    forget: bool = False  # labels given the score changed: nothing is weighted as if it had not
    reweight: bool = False  # what nobody can change has shifted: older people count as the new
    people: bool = False  # other people explain the new table: less is asked for a shift
