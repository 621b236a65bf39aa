r"""Promises that need not be monotone in the threshold: fixed-sequence tests.

Thresholds of a grid fixed beforehand are tested in its order, each at the full
level, up to the first failure: the chance of ever promising falsely stays within
the level, and any threshold passed before the stop may be chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from countermove._types import Floats, Mask
from countermove.certificates import Assumption, Certificate, betting
from countermove.certificates.betting import (
    betting_p_values,
    ratio_p_values,
    upper_means,
    upper_ratios,
)
from countermove.certificates.intervals import upper_share
from countermove.errors import CalibrationError, shown
from countermove.recourse.pare.inputs import (
    COUNTING,
    INDEPENDENT,
    ROWS_PER_CLUSTER,
    ClusterRows,
    at_least,
    confidence,
)

CountArray = NDArray[np.int64]

BEFOREHAND = Assumption(
    "the score, the actions, the grid and its order were fixed before these rows were seen"
)
REFERENCE = "fixed-sequence test of exact binomial tails"
BOUND_REFERENCE = "Clopper and Pearson (1934)"


def fixed_sequence(
    p_values: Floats, failure_probability: float, parts: int = 1
) -> tuple[Floats, Mask]:
    """Return the p-value of every threshold and whether it passes before the first failure."""
    # The maximum over the last axis promises several counts at once: each group (then `parts`
    # is their number, for Bonferroni) and each member of a robust response.
    together: Floats = np.minimum(1.0, parts * p_values.max(axis=-1))
    passed: Mask = np.logical_and.accumulate(together <= failure_probability, axis=-1)
    return together, passed


@dataclass(frozen=True)
class SequencePromise:
    """Thresholds tested in order, and those at which the promise is kept.

    Parameters
    ----------
    thresholds
        In the order of the test.
    miss_share
        Share of the counted calibration people missed, the worst count of each.
    miss_bound
        Upper bound on the true share at that threshold alone (Clopper-Pearson).
    p_values, passed
        P-value of each threshold, and whether it passes before the first failure.
    n
        People counted at each threshold, the smallest count of each.
    miss_rate, failure_probability
        What was asked.
    name, claim
        Name of the certificate, and the claim: "at least {share} of …" in words.
    assumptions
        What it rests on.
    reference, bound_reference
        Of the test, and of the bound at one threshold.
    """

    thresholds: Floats
    miss_share: Floats
    miss_bound: Floats
    p_values: Floats
    passed: Mask
    n: CountArray
    miss_rate: float
    failure_probability: float
    name: str
    claim: str
    assumptions: tuple[Assumption, ...]
    reference: str = REFERENCE
    bound_reference: str = BOUND_REFERENCE

    @property
    def allowed(self) -> Floats:
        """The thresholds one may choose from, in the order of the test; possibly none."""
        return self.thresholds[self.passed]

    @property
    def threshold(self) -> float:
        """The largest threshold allowed."""
        if not self.passed.any():
            raise self.nothing_passed()
        return float(self.allowed.max())

    def nothing_passed(self) -> CalibrationError:
        """Return the error that says why there is no threshold to choose."""
        return CalibrationError(
            f"no threshold keeps the promise {self.name!r}: the first of the grid, "
            f"{self.thresholds[0]:.4g}, has p-value {self.p_values[0]:.3g} with "
            f"{self.miss_share[0]:.3g} of {self.n[0]} people missed; start the grid elsewhere, "
            "add calibration rows or ask for less"
        )

    def certificate(self, threshold: float) -> Certificate:
        """Return the promise at a threshold of the grid; not applicable where it is not kept."""
        places = np.flatnonzero(self.thresholds == threshold)
        if not places.size:
            raise CalibrationError(
                f"{threshold!r} was not tested; the grid is {shown(self.thresholds.tolist())}"
            )
        place = int(places[0])
        if self.passed[place]:
            return self._claimed(place, self.miss_rate, self.reference)
        claimed = self._claimed(place, None, self.reference)
        return replace(claimed, reason=self._reason(place))

    def bound_certificate(self) -> Certificate:
        """Return what can be promised at the one threshold tested, whatever was asked.

        Valid only for a grid of one threshold, fixed without a look at these rows.
        """
        if len(self.thresholds) != 1:
            raise CalibrationError(
                f"a bound at one threshold needs a grid of one, got {len(self.thresholds)}; "
                "test the chosen one alone"
            )
        return self._claimed(0, float(self.miss_bound[0]), self.bound_reference)

    def shared_bound(self, parts: int, failure_probability: float) -> Certificate:
        """Return the bound at the one threshold tested as one of so many that share a level."""
        bound = float(self.miss_bound[0])
        sure = f"{confidence(failure_probability)}, at a threshold of {self.thresholds[0]:.4g}"
        words = self.claim.format(share=at_least(1.0 - bound))
        return replace(
            self.bound_certificate(),
            value=bound if bound < 1.0 else None,
            level=1.0 - failure_probability,
            reference=f"{self.bound_reference}, Bonferroni over {parts} thresholds",
            words=f"{sure}, {words}" if bound < 1.0 else "",
        )

    def _claimed(self, place: int, miss_rate: float | None, reference: str) -> Certificate:
        sure = confidence(self.failure_probability)
        where = f"at a threshold of {self.thresholds[place]:.4g}"
        share = "" if miss_rate is None else at_least(1.0 - miss_rate)
        return Certificate(
            name=self.name,
            value=miss_rate,
            direction="upper",
            kind="certificate",
            level=1.0 - self.failure_probability,
            n=int(self.n[place]),
            assumptions=self.assumptions,
            reference=reference,
            words=f"{sure}, {where}, {self.claim.format(share=share)}" if share else "",
        )

    def _reason(self, place: int) -> str:
        failed = int(np.argmin(self.passed))
        return (
            f"the test in the order of the grid stopped at {self.thresholds[failed]:.4g} "
            f"(p-value {self.p_values[failed]:.3g}); at {self.thresholds[place]:.4g} a share of "
            f"{self.miss_share[place]:.3g} of {self.n[place]} people is missed"
        )


@dataclass(frozen=True)
class _Evidence:
    """What rows say of each threshold, (thresholds, counts): one count per group and response."""

    p_values: Floats
    share: Floats
    bound: Floats
    n: CountArray
    assumption: Assumption
    reference: str
    bound_reference: str


def promise_of_misses(
    thresholds: Floats,
    missed: Mask | Floats,
    *,
    miss_rate: float,
    failure_probability: float,
    name: str,
    claim: str,
    assumptions: Sequence[Assumption] = (),
    codes: NDArray[np.intp] | None = None,
    parts: int = 1,
    spent: float = 0.0,
    counted: Mask | None = None,
    clusters: ClusterRows | None = None,
) -> SequencePromise:
    """Test the thresholds in order, on who is missed or the chance of it.

    ``missed`` has shape (responses, thresholds, n); of ``parts`` groups everybody's is in
    ``codes``, and ``counted`` (thresholds, n) says who counts. ``spent`` is the part of the failure
    probability that something else may fail with. Misses of independent people are tested by
    binomial tails, chances and clusters (whose rows drawn are given) by betting.
    """
    tested = failure_probability - spent
    who = np.ones(missed.shape[1:], np.bool_) if counted is None else counted
    groups = [who if codes is None else who & (codes == code) for code in range(parts)]
    pairs = [(one, group) for one in missed for group in groups]
    if clusters is not None:
        found = _clustered_evidence(pairs, clusters, miss_rate, tested / parts)
        claim += COUNTING
    elif np.isin(missed, (0.0, 1.0)).all():
        found = _counted_evidence(pairs, miss_rate, tested / parts)
    else:
        found = _chance_evidence(pairs, miss_rate, tested / parts)
    p_values, passed = fixed_sequence(found.p_values, tested, parts)
    return SequencePromise(
        thresholds=thresholds,
        miss_share=found.share.max(axis=-1),
        miss_bound=found.bound.max(axis=-1),
        p_values=p_values,
        passed=passed,
        n=found.n.min(axis=-1),
        miss_rate=miss_rate,
        failure_probability=failure_probability,
        name=name,
        claim=claim,
        assumptions=(found.assumption, BEFOREHAND, *assumptions),
        reference=found.reference,
        bound_reference=found.bound_reference,
    )


def _totals(pairs: Sequence[tuple[Any, Mask]]) -> tuple[Floats, CountArray]:
    """Return how much is missed and how many count, (thresholds, pairs)."""
    sums = np.stack([(one * group).sum(axis=-1) for one, group in pairs], axis=-1)
    sizes = np.stack([np.count_nonzero(group, axis=-1) for _, group in pairs], axis=-1)
    return sums.astype(np.float64), sizes.astype(np.int64)


def _shares(sums: Floats, n: CountArray) -> Floats:
    """Return shares missed; of nobody counted everybody."""
    return np.divide(sums, n, out=np.ones(sums.shape), where=n > 0)


def _counted_evidence(
    pairs: Sequence[tuple[Any, Mask]], miss_rate: float, failure_probability: float
) -> _Evidence:
    sums, n = _totals(pairs)
    return _Evidence(
        binom.cdf(sums, n, miss_rate),
        _shares(sums, n),
        upper_share(sums.astype(np.int64), n, failure_probability),
        n,
        INDEPENDENT,
        REFERENCE,
        BOUND_REFERENCE,
    )


def _chance_evidence(
    pairs: Sequence[tuple[Any, Mask]], miss_rate: float, failure_probability: float
) -> _Evidence:
    # Nobody's chance depends on who counts here: the people are the same at every threshold.
    chances = [one[:, group[0]] for one, group in pairs]
    _, n = _totals(pairs)
    return _Evidence(
        np.stack([betting_p_values(one, miss_rate) for one in chances], axis=-1),
        np.stack([one.mean(axis=1) for one in chances], axis=-1),
        np.stack([upper_means(one, failure_probability) for one in chances], axis=-1),
        n,
        INDEPENDENT,
        betting.REFERENCE,
        betting.BOUND_REFERENCE,
    )


def _clustered_evidence(
    pairs: Sequence[tuple[Any, Mask]],
    clusters: ClusterRows,
    miss_rate: float,
    failure_probability: float,
) -> _Evidence:
    sums, n = _totals(pairs)
    by_cluster = [
        (clusters.totals(one * group), clusters.totals(group), ROWS_PER_CLUSTER)
        for one, group in pairs
    ]
    return _Evidence(
        np.stack([ratio_p_values(*each, miss_rate) for each in by_cluster], axis=-1),
        _shares(sums, n),
        np.stack([upper_ratios(*each, failure_probability) for each in by_cluster], axis=-1),
        n,
        clusters.assumption,
        f"{betting.REFERENCE}, clusters as units",
        "bets on falling shares, clusters as units (Waudby-Smith and Ramdas 2024)",
    )
