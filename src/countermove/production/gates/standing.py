"""Gates a challenger passes or not by itself: accuracy, promise, forecast."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from countermove.certificates.intervals import lower_share
from countermove.production.gates.base import Case, Gate, GateResult


@dataclass(frozen=True)
class MinimumAccuracy(Gate):
    """At least so many are judged rightly once people have answered.

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
    name = "accuracy_after_response"

    def check(self, case: Case) -> GateResult:
        """Hold the lower bound against the least accuracy."""
        response = case.challenger.worst(case.stated)
        right = case.challenger.right[response]
        low = float(lower_share(int(np.sum(right)), len(right), self.failure_probability))
        words = (
            f"right for {right.mean():.3f} of the hold-out under {response!r}, at least {low:.3f} "
            f"with {1 - self.failure_probability:.0%} confidence; {self.least:g} is asked"
        )
        return GateResult(self.name, low >= self.least, low, self.least, words)


@dataclass(frozen=True)
class RecourseCertificate(Gate):
    r"""The promise of recourse is there, is no weaker than asked, and the hold-out agrees.

    Parameters
    ----------
    largest_miss_rate
        Largest share without a way that may be promised; None: the champion's.
    contradiction
        The hold-out contradicts the promise :math:`\epsilon` when so many people without a
        way or more would be seen with less than this probability if it were true.
    """

    largest_miss_rate: float | None = None
    contradiction: float = 0.01
    name = "recourse_certificate"

    def check(self, case: Case) -> GateResult:
        """Hold the promise against the limit and against the hold-out."""
        from scipy.stats import binom

        promised, limit = case.certificate["value"], self._limit(case)
        if promised is None:
            words = f"recourse is not promised: {case.certificate['reason']}"
            return GateResult(self.name, False, None, limit, words)
        missed, people = case.without_recourse
        chance = float(binom.sf(missed - 1, people, promised)) if people else 1.0
        seen = f"{missed} of {people} people of the hold-out have no way"
        if chance < self.contradiction:
            words = f"at most {promised:.3g} without a way is promised, but {seen}"
            return GateResult(self.name, False, missed / people, promised, words)
        if limit is not None and promised > limit + 1e-12:
            words = f"at most {promised:.3g} without a way is promised; {limit:.3g} is asked"
            return GateResult(self.name, False, promised, limit, words)
        words = f"at most {promised:.3g} without a way is promised, and {seen}"
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
        Which upper bound of the transfer report: ``worst_case_direct_upper`` holds whichever
        of the plausible responses is true, ``direct_upper`` for the stated one.
    """

    limit: float = 0.5
    bound: str = "worst_case_direct_upper"
    name = "transfer_bound"

    def check(self, case: Case) -> GateResult:
        """Hold the certificate against the limit."""
        found = [
            entry["value"]
            for entry in case.transfer["bounds"]
            if entry["name"] == self.bound
            and entry["kind"] == "certificate"
            and entry["labels"] == "kept"
            and entry["value"] is not None
        ]
        if not found:
            words = f"the transfer report has no certificate {self.bound!r}"
            return GateResult(self.name, False, None, self.limit, words)
        value = max(found)
        words = f"the error after deployment is at most {value:.3f}; {self.limit:g} is allowed"
        return GateResult(self.name, value <= self.limit, value, self.limit, words)
