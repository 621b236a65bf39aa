"""The best threshold among those a promise allows, and what the promise costs.

The promise is judged on calibration rows, the choice on other rows, where people
respond to the rule again at every threshold. Chosen by a promise alone, a threshold can undo
strategic training (keeping it may mean approving everybody): `choose_jointly` weighs both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit

from countermove._types import Floats, Mask
from countermove.certificates import Certificate
from countermove.errors import (
    DataError,
    NotEnoughRowsError,
    ParameterError,
    UnknownNameError,
    nearest,
)
from countermove.recourse.pare.after_response import calibrate_after_response, miss_shares
from countermove.recourse.pare.inputs import (
    ChoiceRows,
    PromiseTerms,
    ReachFunction,
    check_disjoint,
    check_level,
    checked_grid,
    numeric_rows,
)
from countermove.recourse.pare.sequence import SequencePromise
from countermove.recourse.problem import probability_slope
from countermove.response import NoResponse, Response
from countermove.response.response_set import members_of
from countermove.scores.base import probability, score_of, values
from countermove.training.units import standardised_model

if TYPE_CHECKING:
    import pandas as pd

MEASURES = ("accuracy", "f1", "utility")
GRID_SIZE = 61
"""Thresholds of a default grid: a step refuses 1 in 60 of those below the wanted one."""
FEW_THRESHOLDS = 13
"""The same where responses take long (people who climb a network): 1 in 12."""

LOWEST_ODDS = -300.0
"""Log-odds below which people count as one: twice as far down a probability still differs from
0, so that however extreme somebody is, thresholds below everybody else remain."""

EQUAL = 1e-12
"""Values closer than this are equal."""


@dataclass(frozen=True)
class ThresholdMeasures:
    """What the rule does at every threshold once people have responded, each shape (t,)."""

    thresholds: Floats
    accuracy: Floats
    f1: Floats
    utility: Floats  # per person: +1 for every deserving person approved, -loss for every other
    approved: Floats

    def of(self, measure: str) -> Floats:
        """Return the values of a measure by name."""
        if measure not in MEASURES:
            raise UnknownNameError(
                f"no measure is called {measure!r}: {nearest(measure, MEASURES)}"
            )
        values: Floats = getattr(self, measure)
        return values


@dataclass(frozen=True)
class ThresholdChoice:
    """The chosen threshold, its value in the measure asked for, and all that was measured."""

    threshold: float
    value: float
    measure: str
    measured: ThresholdMeasures


def default_grid(model: Any, X_selection: Any, wanted: float, size: int = GRID_SIZE) -> Floats:
    """Return a rising grid up to ``wanted``: the probabilities of people below it, evenly spread.

    Two thresholds below the lowest person come first: everybody is approved there, and the
    test has its best chance to begin. The grid does not depend on calibration rows.

    Parameters
    ----------
    model
        What holds the score.
    X_selection
        People who are not calibrated on, shape (n, d).
    wanted, size
        The highest threshold, and how many there are at most.
    """
    check_level(wanted, "threshold")
    score, slope = score_of(model), probability_slope(model)
    X = numeric_rows(X_selection, score)
    if not len(X):
        raise NotEnoughRowsError("a grid of thresholds needs at least one selection row, got none")
    odds = slope * values(score, X)
    below = np.maximum(odds[odds < logit(wanted)], LOWEST_ODDS)
    if not below.size:
        return np.array([wanted])
    lowest = float(below.min())
    depth = logit(wanted) - lowest
    spread = np.quantile(below, np.linspace(0.0, 1.0, size - 3))
    found = probability(np.array([lowest - depth, lowest - 0.5 * depth, *spread]))
    return np.unique([*found[(found > 0.0) & (found < wanted)], wanted])


def measure_after_response(
    model: Any, X: Any, y: ArrayLike, response: Response, thresholds: ArrayLike, loss: float = 1.0
) -> ThresholdMeasures:
    """Measure the rule at every threshold, people responding to it again at each.

    Of a robust response the worst member counts, measure by measure; of a population the
    expected shares.

    Parameters
    ----------
    model
        What holds the score.
    X, y
        People, shape (n, d), and labels in {-1, +1}.
    response
        How people respond.
    thresholds
        On the probability, rising or falling.
    loss
        What approving an undeserving person costs, where a deserving one brings 1.
    """
    model, units = standardised_model(model)
    grid, score = checked_grid(thresholds), score_of(model)
    rows = units.rows(numeric_rows(X, score))
    people, labels = members_of(units.response(response)), np.asarray(y, dtype=np.float64)
    if labels.shape != (len(rows),):
        raise DataError(f"{len(rows)} people need as many labels, got shape {labels.shape}")
    if not len(rows):
        raise NotEnoughRowsError("a choice of threshold needs at least one selection row, got none")
    if not (np.isfinite(loss) and loss >= 0.0):
        raise ParameterError(f"loss is a number of at least 0, got {loss!r}")
    rules = [score.at_threshold(float(p), probability_slope(model)) for p in grid]
    found = np.stack(
        [
            [_figures(member.chance_after(rule, rows), labels > 0, loss) for rule in rules]
            for member in people
        ]
    ).min(axis=0)
    return ThresholdMeasures(grid, *found.T)


def _figures(approved: Floats, deserving: Mask, loss: float) -> tuple[float, float, float, float]:
    n = len(approved)
    right, wrong = np.sum(approved[deserving]), np.sum(approved[~deserving])
    f1 = 2.0 * right / max(approved.sum() + deserving.sum(), 1)
    return (
        float(np.mean(np.where(deserving, approved, 1.0 - approved))),
        float(f1),
        float((right - loss * wrong) / n),
        float(approved.mean()),
    )


def choose_threshold(
    model: Any,
    X_selection: Any,
    y: ArrayLike,
    response: Response,
    allowed: SequencePromise | ArrayLike,
    measure: str = "accuracy",
    *,
    wanted: float = 0.5,
    tolerance: float = 0.0,
    loss: float = 1.0,
    ids: Iterable[Any] | None = None,
    calibrated_on: Sequence[Any] | NDArray[Any] | None = None,
) -> ThresholdChoice:
    r"""Return the best threshold a promise allows, people responding to the rule at each.

    .. math:: \max_{\theta\ \text{allowed}} \text{measure}\bigl(\text{rule at } \theta,\
              \{(x_\theta, y)\}\bigr)

    Parameters
    ----------
    model
        What holds the score.
    X_selection, y
        People who are not calibrated on, and their labels in {-1, +1}.
    response
        How people respond; of a robust one the worst member counts.
    allowed
        A promise (its passed thresholds) or thresholds themselves.
    measure
        ``"accuracy"``, ``"f1"`` or ``"utility"``.
    wanted, tolerance
        Among thresholds within ``tolerance`` of the best the one nearest to ``wanted``,
        in log-odds.
    loss
        See `measure_after_response`.
    ids, calibrated_on
        Ids of the selection rows, and of the calibration rows: an overlap is refused.
    """
    check_level(wanted, "wanted")
    check_disjoint(calibrated_on, ids, 0 if calibrated_on is None else len(calibrated_on))
    if isinstance(allowed, SequencePromise):
        if not allowed.passed.any():
            raise allowed.nothing_passed()
        allowed = allowed.allowed
    measured = measure_after_response(model, X_selection, y, response, allowed, loss)
    everything = np.ones(len(measured.thresholds), dtype=np.bool_)
    return best_among(measured, everything, measure, wanted, tolerance)


def best_among(
    measured: ThresholdMeasures, allowed: Mask, measure: str, wanted: float, tolerance: float = 0.0
) -> ThresholdChoice:
    """Return the best of the measured thresholds that are allowed; see `choose_threshold`."""
    values = np.where(allowed, measured.of(measure), -np.inf)
    best = np.flatnonzero(values >= values.max() - max(tolerance, EQUAL))
    distance = np.abs(logit(measured.thresholds[best]) - logit(wanted))
    chosen = int(best[np.argmin(distance)])
    return ThresholdChoice(
        float(measured.thresholds[chosen]), float(values[chosen]), measure, measured
    )


def frontier(promise: SequencePromise, measured: ThresholdMeasures) -> pd.DataFrame:
    """Return promise (calibration rows) against performance (selection rows), by threshold."""
    import pandas as pd

    order = np.argsort(promise.thresholds)
    if not np.array_equal(promise.thresholds[order], np.sort(measured.thresholds)):
        raise DataError("a frontier needs promise and measures on the same thresholds")
    other = np.argsort(measured.thresholds)
    return pd.DataFrame(
        {
            "threshold": promise.thresholds[order],
            "miss_share": promise.miss_share[order],
            "miss_bound": promise.miss_bound[order],
            "p_value": promise.p_values[order],
            "promised": promise.passed[order],
            "accuracy": measured.accuracy[other],
            "f1": measured.f1[other],
            "utility": measured.utility[other],
            "approved": measured.approved[other],
        }
    )


Led = Literal["promise", "performance"]


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
    slow = any(member.costly for member in members_of(response))
    size = FEW_THRESHOLDS if slow else GRID_SIZE
    default = default_grid(model, selection.X, terms.threshold, size)
    grid = default if terms.grid is None else checked_grid(terms.grid)
    moving = selection.answering(response)
    measured = measure_after_response(model, selection.X, selection.y, moving, grid, terms.loss)
    judged = response if terms.after_response else NoResponse()
    promise = _promise(model, calibration, judged, grid, terms, reach)
    lowest = _lowest_affordable(model, selection, judged, measured, terms, reach)
    if lowest is not None:
        alone = _promise(model, calibration, judged, np.array([lowest]), terms, reach)
        return JointChoice(lowest, "performance", alone.bound_certificate(), promise, measured)
    if not promise.passed.any():
        if terms.largest_loss is not None and len(grid) == 1:  # No other threshold is affordable.
            given = (promise.bound_certificate(), promise, measured)
            return JointChoice(float(grid[0]), "performance", *given)
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
        people.answering(judged),
        grid,
        miss_rate=terms.miss_rate,
        failure_probability=terms.failure_probability,
        groups=people.groups,
        ids=people.ids,
        reach=reach,
        clusters=people.clusters,
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
    moving = selection.answering(judged)
    shares = miss_shares(
        model, selection.X, moving, measured.thresholds, groups=selection.groups, reach=reach
    )
    likely = shares <= terms.miss_rate
    if likely.any() and float(values[likely].max()) >= floor:
        return None
    return float(measured.thresholds[values >= floor].min())
