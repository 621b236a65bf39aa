"""Promise and performance together.

A threshold chosen by a promise alone can undo strategic training: keeping the promise may
mean approving everybody. So the choice weighs both, and reports what is promised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.certificates import Certificate
from countermove.recourse.pare._after_response import calibrate_after_response, miss_shares
from countermove.recourse.pare._choice import (
    ThresholdMeasures,
    best_among,
    default_grid,
    frontier,
    measure_after_response,
)
from countermove.recourse.pare._inputs import (
    ReachFunction,
    check_disjoint,
    check_level,
    checked_grid,
)
from countermove.recourse.pare._sequence import SequencePromise
from countermove.response import NoResponse, Response

if TYPE_CHECKING:
    import pandas as pd

Led = Literal["promise", "performance"]


@dataclass(frozen=True)
class PromiseTerms:
    """What is promised to whom, and what it may cost.

    Parameters
    ----------
    threshold
        The probability asked for without any promise; the choice stays near it where the
        measure shows no difference.
    miss_rate, failure_probability
        Of the promise.
    method, largest_action
        How recourse is searched for, and how far a feature may move (standardised units;
        None: as far as the actions allow).
    groups
        Sensitive column for a promise to each of its groups; None: to everybody.
    after_response
        Whether the promise is to people who have responded to the rule, or where they stood.
    measure, loss
        What to maximise, see `choose_threshold` and `measure_after_response`.
    largest_loss
        How much of the measure, against the best of the grid, the promise may cost;
        None: whatever it costs.
    grid
        Thresholds in the order of the test; None: `default_grid` of the selection rows.
    margin
        How far beyond the threshold advice goes where it can, see `recommend`; at most
        half way to certainty.
    ceiling
        What nobody is advised to exceed, see `recommend`. The promise is about any
        allowed action, whatever it costs.
    confidence
        The probability with which advice should outlast a refit, see `recommend`; None:
        advice ends on the threshold.
    """

    threshold: float = 0.5
    miss_rate: float = 0.05
    failure_probability: float = 0.05
    method: str = "auto"
    largest_action: float | None = None
    groups: str | None = None
    after_response: bool = True
    measure: str = "accuracy"
    loss: float = 1.0
    largest_loss: float | None = None
    grid: tuple[float, ...] | None = None
    margin: float = 0.0
    ceiling: float | None = None
    confidence: float | None = None

    def __post_init__(self) -> None:
        for name in ("threshold", "miss_rate", "failure_probability"):
            check_level(getattr(self, name), name)
        if self.largest_loss is not None:
            check_level(self.largest_loss, "largest_loss")
        if self.confidence is not None:
            check_level(self.confidence, "confidence")


@dataclass(frozen=True)
class ChoiceRows:
    """Rows a choice is made from: features (n, d), labels ±1 (n,), ids and groups or None."""

    X: Floats
    y: Floats
    ids: NDArray[Any] | None = None
    groups: NDArray[Any] | None = None


@dataclass(frozen=True)
class JointChoice:
    """A threshold chosen by promise and performance.

    Parameters
    ----------
    threshold
        The rule: favourable iff the probability is at least this.
    led_by
        ``"promise"``: the miss rate asked for is promised, at the best performance it
        allows. ``"performance"``: that would have cost more than ``largest_loss``, so the
        threshold is the lowest within it, and the certificate says what is promised there.
    certificate
        The promise at the threshold.
    promise, measured
        Over the whole grid, on the calibration and on the selection rows.
    """

    threshold: float
    led_by: Led
    certificate: Certificate
    promise: SequencePromise
    measured: ThresholdMeasures

    def frontier(self) -> pd.DataFrame:
        """Return promise against performance, one row per threshold."""
        return frontier(self.promise, self.measured)


def choose_jointly(
    model: Any,
    calibration: ChoiceRows,
    selection: ChoiceRows,
    response: Response,
    terms: PromiseTerms,
    reach: ReachFunction,
) -> JointChoice:
    """Choose a threshold by a promise of recourse and by what the rule achieves.

    Whether the promise is affordable is judged on the selection rows; the promise
    itself on the calibration rows, at the full level either way.

    Parameters
    ----------
    model
        What holds the score.
    calibration, selection
        Disjoint people, by id; the calibration rows used for nothing else.
    response
        How people respond, at every threshold again.
    terms
        What is promised, and what it may cost.
    reach
        From people to the best score they can reach.
    """
    check_disjoint(calibration.ids, selection.ids, len(calibration.X))
    default = default_grid(model, selection.X, terms.threshold)
    grid = default if terms.grid is None else checked_grid(terms.grid)
    measured = measure_after_response(model, selection.X, selection.y, response, grid, terms.loss)
    judged = response if terms.after_response else NoResponse()
    promise = _promise(model, calibration, judged, grid, terms, reach)
    lowest = _lowest_affordable(model, selection, judged, measured, terms, reach)
    if lowest is not None:
        alone = _promise(model, calibration, judged, np.array([lowest]), terms, reach)
        return JointChoice(lowest, "performance", alone.bound_certificate(), promise, measured)
    if not promise.passed.any():
        raise promise.nothing_passed()
    # The largest standard error of a share: smaller differences are noise.
    tolerance = 0.5 / np.sqrt(len(selection.X))
    chosen = best_among(measured, promise.passed, terms.measure, terms.threshold, tolerance)
    certificate = promise.certificate(chosen.threshold)
    return JointChoice(chosen.threshold, "promise", certificate, promise, measured)


def _promise(
    model: Any,
    people: ChoiceRows,
    judged: Response,
    grid: Floats,
    terms: PromiseTerms,
    reach: ReachFunction,
) -> SequencePromise:
    return calibrate_after_response(
        model,
        people.X,
        judged,
        grid,
        miss_rate=terms.miss_rate,
        failure_probability=terms.failure_probability,
        groups=people.groups,
        ids=people.ids,
        reach=reach,
    )


def _lowest_affordable(
    model: Any,
    selection: ChoiceRows,
    judged: Response,
    measured: ThresholdMeasures,
    terms: PromiseTerms,
    reach: ReachFunction,
) -> float | None:
    """Return the lowest threshold within the loss, or None if the promise itself is within it."""
    # Judged on the selection rows, so that the calibration rows are tested only once.
    if terms.largest_loss is None:
        return None
    values = measured.of(terms.measure)
    floor = float(values.max()) - terms.largest_loss
    shares = miss_shares(
        model, selection.X, judged, measured.thresholds, groups=selection.groups, reach=reach
    )
    likely = shares <= terms.miss_rate
    if likely.any() and float(values[likely].max()) >= floor:
        return None
    return float(measured.thresholds[values >= floor].min())
