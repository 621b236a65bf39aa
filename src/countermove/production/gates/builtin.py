"""The gates that come with the package: fixed limits first, then comparisons with the champion."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from countermove._types import Mask
from countermove.certificates.intervals import lower_share
from countermove.production.gates.base import Case, Gate, GateResult, HoldoutDecisions

FIRST = "there is no champion to compare with"


@dataclass(frozen=True)
class MinimumAccuracy(Gate):
    """Enough decisions are right once people have responded.

    Parameters
    ----------
    least
        Share of the people.
    failure_probability
        The share shown is a lower bound that fails with this probability
        (Clopper and Pearson), under the worst of the stated responses.
    """

    least: float = 0.5
    failure_probability: float = 0.05
    name = "minimum_accuracy"

    def check(self, case: Case) -> GateResult:
        """Compare the lower bound with the least accuracy."""
        response = case.challenger.worst(case.stated)
        right = case.challenger.right[response]
        low = float(lower_share(int(np.sum(right)), len(right), self.failure_probability))
        words = (
            f"right for {right.mean():.3f} of the people judged under {response!r}, at least "
            f"{low:.3f} with {1 - self.failure_probability:.0%} confidence; {self.least:g} is "
            "required"
        )
        return GateResult(self.name, low >= self.least, low, self.least, words)


@dataclass(frozen=True)
class RecourseCertificate(Gate):
    r"""The promise of recourse is there, is no weaker than required, and the hold-out agrees.

    Parameters
    ----------
    largest_miss_rate
        Largest share without recourse that may be promised; None: the champion's.
    contradiction
        The hold-out contradicts the promise :math:`\epsilon` when so many people without
        recourse or more would be seen with less than this probability if it were true.
    """

    largest_miss_rate: float | None = None
    contradiction: float = 0.01
    name = "recourse_certificate"

    def check(self, case: Case) -> GateResult:
        """Compare the promise with the limit and with the hold-out."""
        from scipy.stats import binom

        promised, limit = case.certificate["value"], self._limit(case)
        if promised is None:
            words = f"recourse is not promised: {case.certificate['reason']}"
            return GateResult(self.name, False, None, limit, words)
        missed, people = case.without_recourse
        chance = float(binom.sf(missed - 1, people, promised)) if people else 1.0
        seen = f"{missed} of {people} people judged have no recourse"
        if chance < self.contradiction:
            words = f"at most {promised:.3g} without recourse is promised, but {seen}"
            return GateResult(self.name, False, missed / people, promised, words)
        if limit is not None and promised > limit + 1e-12:
            words = f"at most {promised:.3g} without recourse is promised; {limit:.3g} is required"
            return GateResult(self.name, False, promised, limit, words)
        words = f"at most {promised:.3g} without recourse is promised, and {seen}"
        return GateResult(self.name, True, promised, limit, words)

    def _limit(self, case: Case) -> float | None:
        if self.largest_miss_rate is not None or case.champion_certificate is None:
            return self.largest_miss_rate
        known: float | None = case.champion_certificate["value"]
        return known


@dataclass(frozen=True)
class TransferBound(Gate):
    """The certified error after deployment stays below a limit.

    Parameters
    ----------
    limit
        Of the error.
    bound
        Which upper bound: ``worst_case_direct_upper`` holds whichever
        of the plausible responses is true, ``direct_upper`` for the stated one.
    """

    limit: float = 0.5
    bound: str = "worst_case_direct_upper"
    name = "transfer_bound"

    def check(self, case: Case) -> GateResult:
        """Compare the certificate with the limit."""
        found = [entry["forecast"] for entry in case.bounds if entry["claim"] == self.bound]
        if not found:
            words = f"there is no bound {self.bound!r} on the error"
            return GateResult(self.name, False, None, self.limit, words)
        value = max(found)
        words = f"the error after deployment is at most {value:.3f}; {self.limit:g} is allowed"
        return GateResult(self.name, value <= self.limit, value, self.limit, words)


@dataclass(frozen=True)
class Improvement(Gate):
    r"""The challenger is better, and not by chance (exact paired test, one-sided).

    Of the people on whom the two rules differ in being right, under the stated response the
    challenger gains least under, for b only the challenger is right. If the rules
    were equally good, b would be at most binomial(m, 1/2):

    .. math:: p = P(\mathrm{Bin}(m, 1/2) \ge b)

    Parameters
    ----------
    significance
        Largest p of a promotion, and so the largest chance that a challenger no better than
        the champion is promoted.
    over
        ``each``: that chance is per decision. ``all``: over all challengers ever evaluated on
        this hold-out; the k-th is tested at :math:`6 \alpha / (\pi k)^2`.
    """

    significance: float = 0.05
    over: Literal["each", "all"] = "each"
    name = "improvement"

    def check(self, case: Case) -> GateResult:
        """Compare the paired test with its level."""
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
            f"alone for {lost}: p = {chance:.2g}, {level:.2g} is required"
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

    largest: float = 0.35
    name = "flip_rate"

    def check(self, case: Case) -> GateResult:
        """Compare the share of changed decisions with the limit."""
        if case.champion is None:
            return self.not_applicable(FIRST)
        changed = case.challenger.approved["none"] != case.champion.approved["none"]
        rate = float(changed.mean())
        words = f"{rate:.1%} of the decisions change; {self.largest:.1%} may"
        return GateResult(self.name, rate <= self.largest, rate, self.largest, words)


@dataclass(frozen=True)
class OpenAdvice(Gate):
    """Not too much of the advice that is open would be broken.

    Who follows it is approved until it expires, whatever the champion; the gate limits for how
    many that would be an exception.

    Parameters
    ----------
    largest_share
        Of the open advice that could be judged: refused by the challenger although followed.
    """

    largest_share: float = 0.1
    name = "open_advice"

    def check(self, case: Case) -> GateResult:
        """Compare the share of broken advice with the limit."""
        if case.open_advice is None or not case.open_advice["open"]:
            return self.not_applicable("no advice is open")
        broken, judged, known = (case.open_advice[key] for key in ("broken", "judged", "open"))
        if not judged:
            words = f"none of the {known} people with open advice is in the applicants' files"
            return self.not_applicable(words)
        share = broken / judged
        rest = "" if judged == known else f" ({known - judged} more are no longer in the files)"
        words = (
            f"of {judged} people with open advice the challenger would refuse {broken} who follow "
            f"it{rest}; {self.largest_share:.1%} may be"
        )
        return GateResult(self.name, share <= self.largest_share, share, self.largest_share, words)


@dataclass(frozen=True)
class GroupDisparity(Gate):
    """Groups do not drift further apart.

    The gap of a sensitive column is the largest difference between its groups in the share
    of the measure, once people have responded; groups smaller than ``smallest`` are left out.

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
        """Compare each column's gap with the champion's and with the limit."""
        response = case.stated[0]

        def gaps(rule: HoldoutDecisions) -> dict[str, float]:
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
