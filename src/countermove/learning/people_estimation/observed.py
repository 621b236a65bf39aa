r"""What a deployment showed: people before and after a rule was published.

Every person becomes two numbers in units of distance along the rule: the gap to
approval before, :math:`-s(x)/N`, and the advance, :math:`w\cdot(x'-x)/N` over what can move.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.errors import DataError, NotEnoughRowsError, ParameterError, shown
from countermove.people import ActionSet
from countermove.response.action_plan import ActionPlan, slope_of
from countermove.scores import Score

if TYPE_CHECKING:
    from countermove.learning.people_estimation.pairing import People


LEAST_PAIRS = 30
"""Matched people below which not even the share of movers is known to a sixth."""
LEAST_SAMPLE = 200
"""People per sample without keys: two histograms of scores have to be told apart."""
ROUNDING = 1e-9
"""Changes below this share of ``1 + |x|`` are rounding, not moves."""
RECORDED = 0.01
"""Share of exactly unmoved people from which on records are taken as exact."""


@dataclass(frozen=True)
class Observation:
    """A rule, and people before and after it.

    Attributes
    ----------
    score, actions
        The rule and the allowed actions, standardised units.
    names
        Of the features.
    X, X_after
        People before and after; row i is the same person iff ``matched``.
    matched
        Whether rows are paired.
    unit
        N: score per unit of distance over the usable directions.
    slope
        w / N over the features that can move, zero elsewhere, shape (d,).
    gap, gap_after
        Distance below the boundary, negative for the approved.
    advance
        Distance gained along the rule (matched only, else empty).
    still
        Who stands exactly where they stood (matched only, else empty).
    """

    score: Score
    actions: ActionSet
    names: tuple[str, ...]
    X: Floats
    X_after: Floats
    matched: bool
    unit: float
    slope: Floats
    gap: Floats
    gap_after: Floats
    advance: Floats
    still: Mask

    @property
    def recorded_exactly(self) -> bool:
        """Whether records are free of measurement noise: some people did not change at all."""
        return bool(self.still.size) and float(self.still.mean()) >= RECORDED

    @property
    def spread(self) -> float:
        """Standard deviation of the gaps, the yardstick of distances here."""
        return float(self.gap.std()) or 1.0

    @property
    def movable(self) -> Mask:
        """Which features a response moves."""
        return ActionPlan(self.actions, self.X.shape[1]).moving

    @property
    def usable(self) -> Mask:
        """Which features a response moves in answer to this rule."""
        used: Mask = ActionPlan(self.actions, self.X.shape[1]).usable(self.slope) != 0.0
        return used

    def changed_fixed(self) -> tuple[NDArray[np.intp], tuple[str, ...]]:
        """Return the rows, and names of the features, that changed although they cannot."""
        if not self.matched:
            return np.empty(0, dtype=np.intp), ()
        changed = _changes(self.X, self.X_after) & ~self.movable
        columns = [self.names[j] for j in np.flatnonzero(changed.any(axis=0))]
        return np.flatnonzero(changed.any(axis=1)), tuple(columns)


def observe(score: Score, people: People, actions: ActionSet | None = None) -> Observation:
    """Reduce people before and after to what an estimate reads.

    Raises
    ------
    ParameterError
        If the rule gives nobody a reason to move (no slope where people can move).
    NotEnoughRowsError
        If there are fewer people than needed; the message says how many.
    """
    _check_size(people)
    X, X_after = people.before, people.after
    if X.shape[1] != score.n_features:
        raise DataError(
            f"the rule reads {score.n_features} features but the tables hold {X.shape[1]}: "
            f"{shown(people.names)}"
        )
    allowed = ActionSet() if actions is None else actions
    allowed.check_people(len(X), "the people before")
    plan = ActionPlan(allowed, X.shape[1])
    weight = slope_of(score).detach().numpy()
    unit = float(np.linalg.norm(plan.usable(weight)))
    if not unit > 0.0:
        raise ParameterError(
            "the rule has zero slope in every feature people can move, so nobody has a reason to "
            "move and nothing can be learned about costs; check the actions, or use a deployment "
            "of a rule that reads something people can change"
        )
    slope = weight * plan.ones / unit
    still: Mask = np.empty(0, dtype=bool)
    if people.matched:
        still = np.asarray(~_changes(X, X_after).any(axis=1), dtype=bool)
    return Observation(
        score=score,
        actions=allowed,
        names=people.names,
        X=X,
        X_after=X_after,
        matched=people.matched,
        unit=unit,
        slope=slope,
        gap=-_scores(score, X) / unit,
        gap_after=-_scores(score, X_after) / unit,
        advance=(X_after - X) @ slope if people.matched else np.empty(0),
        still=still,
    )


def _scores(score: Score, X: Floats) -> Floats:
    with torch.no_grad():
        values: Floats = score(torch.from_numpy(X)).numpy()
    return values


def _changes(X: Floats, X_after: Floats) -> Mask:
    changed: Mask = np.abs(X_after - X) > ROUNDING * (1.0 + np.abs(X))
    return changed


def _check_size(people: People) -> None:
    least = LEAST_PAIRS if people.matched else LEAST_SAMPLE
    fewest = min(len(people.before), len(people.after))
    if fewest < least:
        what = "matched people" if people.matched else "people in each of two samples"
        raise NotEnoughRowsError(
            f"an estimate needs at least {least} {what}, got {len(people.before)} before and "
            f"{len(people.after)} after; wait for more rows"
        )
