"""Gates that compare the challenger with the champion, person by person."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from countermove._types import Mask
from countermove.production.gates.base import Case, Gate, GateResult, Judged

FIRST = "there is no champion to compare with"


@dataclass(frozen=True)
class Improvement(Gate):
    r"""The challenger is better, and not by chance (exact paired test, one-sided).

    Of the people on whom the two rules differ in being right, under the stated response the
    challenger gains least under, b are judged rightly by the challenger alone. If the rules
    were equally good, b would be at most binomial(m, 1/2):

    .. math:: p = P(\mathrm{Bin}(m, 1/2) \ge b)

    Parameters
    ----------
    significance
        Largest p of a promotion, and so the largest chance that a challenger no better than
        the champion is promoted.
    over
        ``each``: that chance is per decision. ``all``: over all challengers ever judged on
        this hold-out; the k-th is judged at :math:`6 \alpha / (\pi k)^2`.
    """

    significance: float = 0.05
    over: Literal["each", "all"] = "each"
    name = "improvement"

    def check(self, case: Case) -> GateResult:
        """Hold the paired test against its level."""
        from scipy.stats import binom

        if case.champion is None:
            return self.not_applicable(FIRST)
        level = self.significance
        if self.over == "all":
            level *= 6.0 / (math.pi * (case.looks + 1)) ** 2
        found = []
        for response in case.stated:
            ours, theirs = case.challenger.right[response], case.champion.right[response]
            won, lost = int(np.sum(ours & ~theirs)), int(np.sum(theirs & ~ours))
            chance = float(binom.sf(won - 1, won + lost, 0.5)) if won + lost else 1.0
            found.append((chance, won, lost, response))
        chance, won, lost, response = max(found)
        words = (
            f"under {response!r} the challenger alone is right for {won} people, the champion "
            f"alone for {lost}: p = {chance:.2g}, {level:.2g} is asked"
        )
        return GateResult(self.name, chance <= level, chance, level, words)


@dataclass(frozen=True)
class FlipRate(Gate):
    """Not too many people get another decision than the champion's.

    Parameters
    ----------
    largest
        Share of the hold-out, where people stand.
    """

    largest: float = 0.2
    name = "flip_rate"

    def check(self, case: Case) -> GateResult:
        """Hold the share of changed decisions against the limit."""
        if case.champion is None:
            return self.not_applicable(FIRST)
        changed = case.challenger.approved["none"] != case.champion.approved["none"]
        rate = float(changed.mean())
        words = f"{rate:.1%} of the decisions change; {self.largest:.1%} may"
        return GateResult(self.name, rate <= self.largest, rate, self.largest, words)


@dataclass(frozen=True)
class GroupDisparity(Gate):
    """Groups do not drift further apart.

    The gap of a sensitive column is the largest difference between its groups in the share
    of the measure, once people have answered; groups smaller than ``smallest`` are left out.

    Parameters
    ----------
    measure
        ``approval`` or ``accuracy``.
    tolerance
        By how much the gap of a column may exceed the champion's.
    largest
        Largest gap at all, also at a cold start; None: no such limit.
    smallest
        People a group needs to count.
    """

    measure: Literal["approval", "accuracy"] = "approval"
    tolerance: float = 0.02
    largest: float | None = None
    smallest: int = 50
    name = "group_disparity"

    def check(self, case: Case) -> GateResult:
        """Hold each column's gap against the champion's and the limit."""
        response = case.stated[0]

        def gaps(rule: Judged) -> dict[str, float]:
            shares = rule.approved if self.measure == "approval" else rule.right
            return self._gaps(case.groups, shares[response])

        ours = gaps(case.challenger)
        theirs = {} if case.champion is None else gaps(case.champion)
        limits = {column: self._limit(theirs.get(column)) for column in ours}
        held = {column: limit for column, limit in limits.items() if limit is not None}
        if not held:
            known = "no sensitive column has two groups of enough people"
            return self.not_applicable(FIRST if ours else known)
        worst = max(held, key=lambda column: ours[column] - held[column])
        before = f", {theirs[worst]:.3f} before" if worst in theirs else ""
        words = (
            f"the gap in {self.measure} between groups of {worst!r} is {ours[worst]:.3f}{before}; "
            f"{held[worst]:.3f} is allowed"
        )
        passed = ours[worst] <= held[worst]
        return GateResult(self.name, passed, ours[worst], held[worst], words)

    def _limit(self, champion: float | None) -> float | None:
        limits = [] if champion is None else [champion + self.tolerance]
        limits += [] if self.largest is None else [self.largest]
        return min(limits, default=None)

    def _gaps(self, groups: pd.DataFrame, happened: Mask) -> dict[str, float]:
        found = {}
        for column in groups.columns:
            shares = pd.Series(happened).groupby(groups[column].to_numpy()).agg(["mean", "size"])
            counted = shares.loc[shares["size"] >= self.smallest, "mean"]
            if len(counted) > 1:
                found[str(column)] = float(counted.max() - counted.min())
        return found
