r"""Promises that need not be monotone in the threshold: fixed-sequence tests.

Thresholds of a grid fixed beforehand are tested in its order, each at the full
level, up to the first failure: the chance of ever promising falsely stays within
the level, and any threshold passed before the stop may be chosen. One such promise is made
to the refused alone: PARE counts the approved, so approving nearly everybody keeps it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit
from scipy.stats import binom

from countermove._types import Floats, Mask
from countermove.certificates import Assumption, Certificate
from countermove.certificates.intervals import upper_share
from countermove.errors import CalibrationError, shown
from countermove.people import ActionSet
from countermove.recourse._search import probability_slope
from countermove.recourse.pare._calibration import INDEPENDENT, at_least, confidence
from countermove.recourse.pare._inputs import (
    ReachFunction,
    check_disjoint,
    check_level,
    checked_grid,
    numeric_rows,
    reach_of,
)
from countermove.scores.base import score_of, values

CountArray = NDArray[np.int64]

BEFOREHAND = Assumption(
    "the score, the actions, the grid and its order were fixed before these rows were seen"
)
REFERENCE = "fixed-sequence test of exact binomial tails"
BOUND_REFERENCE = "Clopper and Pearson (1934)"


def fixed_sequence(
    misses: CountArray, n: CountArray, miss_rate: float, failure_probability: float, parts: int = 1
) -> tuple[Floats, Mask]:
    """Return the p-value of every threshold and whether it passes before the first failure."""
    # The maximum over the last axis promises several counts at once: each group (then `parts`
    # is their number, for Bonferroni) and each member of a robust response.
    p_values: Floats = np.minimum(1.0, parts * binom.cdf(misses, n, miss_rate).max(axis=-1))
    return p_values, passed_in_order(p_values, failure_probability)


def passed_in_order(p_values: Floats, failure_probability: float) -> Mask:
    """Return whether each threshold passes before the first failure."""
    passed: Mask = np.logical_and.accumulate(p_values <= failure_probability, axis=-1)
    return passed


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


def sequence_promise(
    thresholds: Floats,
    misses: CountArray,
    n: CountArray,
    *,
    miss_rate: float,
    failure_probability: float,
    name: str,
    claim: str,
    assumptions: Sequence[Assumption] = (),
    parts: int = 1,
    spent: float = 0.0,
) -> SequencePromise:
    """Test the thresholds in order; ``misses`` and ``n`` have shape (thresholds, counts).

    ``spent`` is the part of the failure probability that something else may fail with.
    """
    tested = failure_probability - spent
    p_values, passed = fixed_sequence(misses, n, miss_rate, tested, parts)
    share = np.divide(misses, n, out=np.ones(misses.shape), where=n > 0)
    return SequencePromise(
        thresholds=thresholds,
        miss_share=share.max(axis=-1),
        miss_bound=upper_share(misses, n, tested / parts).max(axis=-1),
        p_values=p_values,
        passed=passed,
        n=n.min(axis=-1),
        miss_rate=miss_rate,
        failure_probability=failure_probability,
        name=name,
        claim=claim,
        assumptions=(INDEPENDENT, BEFOREHAND, *assumptions),
    )


CLAIM = "of those refused, at least {share} have recourse"


def refused_counts(
    scores: Floats, best: Floats, thresholds: Floats, slope: float = 1.0
) -> tuple[CountArray, CountArray]:
    """Return how many people are refused without recourse, and how many are refused."""
    cuts = logit(thresholds) / slope
    refused = [scores < cut for cut in cuts]
    missed = [below & (best < cut) for below, cut in zip(refused, cuts, strict=True)]
    return _counted(missed), _counted(refused)


def _counted(masks: list[Mask]) -> CountArray:
    return np.stack([np.count_nonzero(mask, axis=-1) for mask in masks], axis=-1).astype(np.int64)


def certify_refused(
    model: Any,
    X_calibration: Any,
    grid: ArrayLike,
    method: str = "auto",
    miss_rate: float = 0.05,
    failure_probability: float = 0.05,
    actions: ActionSet | None = None,
    *,
    largest_action: float | None = None,
    ids: Sequence[Any] | NDArray[Any] | None = None,
    trained_on: Iterable[Any] | None = None,
    reach: ReachFunction | None = None,
) -> SequencePromise:
    r"""Find the thresholds at which enough of the refused have recourse.

    .. math:: P\bigl[\,\exists\,\theta \text{ passed}:\ P(m(x) < \theta \mid s(x) < \theta)
              > \text{miss rate}\,\bigr] \le \text{failure probability}

    Parameters
    ----------
    grid
        Thresholds in the order of the test, rising or falling, fixed without a look
        at the calibration rows. A low start refuses too few people for a test, a high
        one leaves too many without recourse: `refused_grid` finds a start on other rows.
    model, X_calibration, method, miss_rate, failure_probability, actions,
    largest_action, ids, trained_on, reach
        See `countermove.recourse.calibrate_pare`.
    """
    check_level(miss_rate, "miss_rate")
    check_level(failure_probability, "failure_probability")
    thresholds, score = checked_grid(grid), score_of(model)
    X = numeric_rows(X_calibration, score)
    check_disjoint(ids, trained_on, len(X))
    search = reach_of(model, actions, method, largest_action) if reach is None else reach
    misses, n = refused_counts(values(score, X), search(X), thresholds, probability_slope(model))
    return sequence_promise(
        thresholds,
        misses[:, None],
        n[:, None],
        miss_rate=miss_rate,
        failure_probability=failure_probability,
        name="refused_miss_rate",
        claim=CLAIM,
    )


def refused_grid(
    model: Any, X_selection: Any, grid: ArrayLike, miss_rate: float, *, reach: ReachFunction
) -> Floats:
    """Return the rising part of a grid from where the test has most power on other rows.

    Parameters
    ----------
    model
        What holds the score.
    X_selection
        People who are not calibrated on.
    grid
        Thresholds to start from.
    miss_rate
        Of the promise.
    reach
        From people to the best score they can reach, see `reach_of`.
    """
    thresholds = np.sort(checked_grid(grid))
    probe = certify_refused(model, X_selection, thresholds, miss_rate=miss_rate, reach=reach)
    return thresholds[int(np.argmin(probe.p_values)) :]


def refused_certificate(
    model: Any,
    X_calibration: Any,
    grid: ArrayLike,
    threshold: float,
    failure_probability: float,
    *,
    reach: ReachFunction,
) -> Certificate:
    """Bound the share of the refused without recourse at any threshold of a grid.

    Clopper-Pearson at every threshold, Bonferroni over the grid: the bound holds at
    whichever of them is chosen, with whatever share the rows show.
    """
    check_level(failure_probability, "failure_probability")
    thresholds, score = checked_grid(grid), score_of(model)
    X = numeric_rows(X_calibration, score)
    misses, n = refused_counts(
        values(score, X), reach(X), np.array([threshold]), probability_slope(model)
    )
    bound = float(upper_share(misses, n, failure_probability / len(thresholds))[0])
    claim = Certificate(
        name="refused_without_recourse",
        value=bound,
        direction="upper",
        kind="certificate",
        level=1.0 - failure_probability,
        n=int(n[0]),
        assumptions=(INDEPENDENT, BEFOREHAND),
        reference=f"Clopper and Pearson (1934), Bonferroni over {len(thresholds)} thresholds",
        words=(
            f"{confidence(failure_probability)}, at a threshold of {threshold:.4g}, of those "
            f"refused at least {at_least(1.0 - bound)} have recourse"
        ),
    )
    if bound < 1.0:
        return claim
    reason = f"none of the {n[0]} calibration people refused at {threshold:.4g} has recourse"
    return replace(claim, value=None, reason=reason, words="")
