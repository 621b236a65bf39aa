r"""What a promise of recourse is made from: terms, rows, ids, grids, groups, clusters, the reach.

The order statistics of PARE are valid only because the best score a person can reach,
:math:`m(x)`, does not depend on the threshold. Promises ask for it here and nowhere else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from countermove._types import Floats, Mask
from countermove.certificates import Assumption
from countermove.certificates.betting import fewest_clusters, ratio_p_values
from countermove.errors import CalibrationError, DataError, ParameterError, shown
from countermove.people import ActionSet, Cost
from countermove.randomness import seed_of
from countermove.recourse.problem import actions_of_model, checked_people, method_of
from countermove.recourse.recommend import Limits, best_reachable
from countermove.response import Response
from countermove.scores import Score
from countermove.scores.base import score_of, values
from countermove.training.units import standardised_model


def check_level(value: float, name: str) -> None:
    """Refuse a probability that is not strictly between 0 and 1."""
    if not (isinstance(value, int | float | np.number) and 0.0 < value < 1.0):
        raise ParameterError(f"{name} must lie strictly between 0 and 1, got {value!r}")


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
    ceiling, max_features
        What nobody is advised to exceed, and how many features may change, see `recommend`.
        The promise obeys both.
    max_steps
        How many steps along a history advice, and so the promise, asks for; None: any number.
    cost_share
        Share of the refused for whom a price of recourse is promised, see `certify_cost`;
        None: no such promise.
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
    max_features: int | None = None
    max_steps: int | None = None
    cost_share: float | None = 0.9

    def __post_init__(self) -> None:
        for name in ("threshold", "miss_rate", "failure_probability"):
            check_level(getattr(self, name), name)
        for name in ("largest_loss", "cost_share"):
            if getattr(self, name) is not None:
                check_level(getattr(self, name), name)

    def limits(self, cost: Cost | None) -> Limits:
        """Return what advice and promise obey beside the actions, at a cost."""
        return Limits(cost, self.ceiling, self.max_features)

    def allowed(self, actions: ActionSet, n_features: int) -> ActionSet:
        """Return the actions advice and promise may use."""
        return actions.narrowed(self.largest_action, n_features).within_steps(self.max_steps)

    def reach(self, model: Any, response: Response) -> AdvisedReach:
        """Return the best score that advice takes the people of a response to."""
        # Windows are left out: whoever's history is known can do no less than features tell.
        allowed = self.allowed(response.actions, score_of(model).n_features)
        return reach_of(model, allowed, self.method, limits=self.limits(response.cost))


@dataclass(frozen=True)
class ChoiceRows:
    """Rows a choice is made from: features (n, d), labels ±1 (n,), and what else is known."""

    X: Floats
    y: Floats
    ids: NDArray[Any] | None = None
    groups: NDArray[Any] | None = None
    clusters: NDArray[Any] | None = None
    windows: pd.DataFrame | None = None

    def answering(self, response: Response) -> Response:
        """Return a response as it is of these people, whose histories may be known."""
        return response if self.windows is None else response.with_windows(self.X, self.windows)


INDEPENDENT = Assumption("calibration rows are independent draws of the people to be judged")


def confidence(failure_probability: float) -> str:
    """Return the level in words: "with 95 % confidence"."""
    return f"with {at_least(1.0 - failure_probability)} confidence"


def at_least(share: float) -> str:
    """Return a share as a percentage, rounded down so that the claim is not stronger."""
    # 1 - 0.05 rounds to just below 0.95: lift by less than any share people ask for.
    return f"{np.floor(1e4 * share + 1e-6) / 1e2:.10g} %"


def check_disjoint(
    ids: Sequence[Any] | NDArray[Any] | None, others: Iterable[Any] | None, n: int
) -> None:
    """Refuse calibration rows that appear twice or that were trained or selected on, by id."""
    if ids is None:
        if others is not None:
            raise ParameterError(
                "trained_on names rows but the calibration rows have no ids; pass ids as well, "
                "one per calibration row, so that an overlap can be found"
            )
        return
    named = [str(value) for value in ids]
    if len(named) != n:
        raise DataError(f"{n} calibration rows need as many ids, got {len(named)}")
    first: dict[str, int] = {}
    twice = [row for row, name in enumerate(named) if first.setdefault(name, row) != row]
    if twice:
        raise DataError(
            f"calibration rows appear twice: ids {shown(named[row] for row in twice)}; a promise "
            "counts independent people, so keep one row of each",
            rows=twice,
        )
    used = {str(value) for value in (() if others is None else others)}
    overlap = [row for row, name in enumerate(named) if name in used]
    if overlap:
        raise DataError(
            f"{len(overlap)} of {n} calibration rows were also trained or selected on: ids "
            f"{shown(named[row] for row in overlap)}; a promise needs rows used for nothing else",
            rows=overlap,
        )


def checked_grid(grid: ArrayLike) -> Floats:
    """Return the thresholds of a grid: in (0, 1), strictly rising or strictly falling."""
    # They are tested in the order given, fixed before the calibration rows are seen: a shuffled
    # grid is taken for a mistake.
    thresholds = np.atleast_1d(np.asarray(grid, dtype=np.float64))
    if thresholds.ndim != 1 or thresholds.size == 0:
        raise ParameterError("the grid of thresholds is empty; give at least one, in (0, 1)")
    outside = thresholds[~((thresholds > 0.0) & (thresholds < 1.0))]
    if outside.size:
        raise ParameterError(
            f"thresholds lie strictly between 0 and 1, the grid holds {shown(outside.tolist())}"
        )
    steps = np.diff(thresholds)
    if not ((steps > 0.0).all() or (steps < 0.0).all()):
        place = int(np.flatnonzero(np.sign(steps) != np.sign(steps[0]))[0]) if steps[0] else 0
        raise ParameterError(
            "the grid is tested in its order and must rise or fall throughout; it does not from "
            f"{thresholds[place]:g} to {thresholds[place + 1]:g}: sort it, each threshold once"
        )
    return thresholds


def group_codes(groups: ArrayLike, n: int) -> tuple[list[str], NDArray[np.intp]]:
    """Return the names of the groups and the position of each person's."""
    return _codes(groups, n, "group", "promise by group")


def _codes(named: ArrayLike, n: int, what: str, promise: str) -> tuple[list[str], NDArray[np.intp]]:
    """Return the distinct names that people have and the position of each person's."""
    values = np.asarray(named, dtype=object)
    if values.shape != (n,):
        raise DataError(f"{n} people need one {what} each, got shape {values.shape}")
    missing = np.flatnonzero(pd.isna(values))
    if missing.size:
        raise DataError(
            f"rows {shown(missing)} have no {what}; name one, or leave these people out of the "
            f"{promise}",
            rows=missing,
        )
    names, codes = np.unique([str(value) for value in values], return_inverse=True)
    return names.tolist(), codes


ROWS_PER_CLUSTER = 5
"""Rows counted of a cluster. Bets must survive a cluster of so many misses: more rows would make
them timid, fewer leave rows unused."""
COUNTING = f", counting at most {ROWS_PER_CLUSTER} rows of a cluster"


@dataclass(frozen=True)
class ClusterRows:
    """Rows drawn from clusters: at most so many of each, in the order of the clusters.

    Parameters
    ----------
    rows, starts
        Positions of the rows drawn, and where each cluster begins among them.
    given, whom
        Rows they were drawn from, and what these are called where they are not all.
    """

    rows: NDArray[np.intp]
    starts: NDArray[np.intp]
    given: int
    whom: str = ""

    @classmethod
    def drawn(
        cls,
        clusters: ArrayLike,
        n: int,
        ids: Sequence[Any] | NDArray[Any] | None = None,
        among: Mask | None = None,
        whom: str = "",
    ) -> ClusterRows:
        """Draw rows at random: by their ids, or where there are none by their positions."""
        _, codes = _codes(clusters, n, "cluster", "promise to clusters")
        words = np.arange(n) if ids is None else ids
        key = f"{seed_of(0, 'rows of a cluster'):016x}"
        hashes = pd.util.hash_array(
            np.array([str(word) for word in words], dtype=object), hash_key=key, categorize=False
        )
        order = np.lexsort((hashes, codes))
        order = order if among is None else order[among[order]]
        first = np.flatnonzero(np.diff(codes[order], prepend=-1))
        place = np.arange(len(order)) - np.repeat(first, np.diff(first, append=len(order)))
        kept = place < ROWS_PER_CLUSTER
        return cls(order[kept], np.flatnonzero(place[kept] == 0), len(order), whom)

    @property
    def assumption(self) -> Assumption:
        """What a promise to clusters rests on, its target included."""
        return Assumption(
            "clusters of calibration rows are independent draws, rows of one cluster need not be; "
            f"shares count at most {ROWS_PER_CLUSTER} rows of a cluster, drawn at random "
            f"({len(self.rows)} of {self.given} rows, {len(self.starts)} clusters)"
        )

    def totals(self, values: NDArray[Any]) -> Floats:
        """Return the sums of values over the rows drawn of each cluster: (…, rows) to (…, G)."""
        return np.add.reduceat(values.astype(np.float64), self.starts, axis=-1)

    def check_enough(
        self,
        miss_rate: float,
        failure_probability: float,
        counted: NDArray[Any] | None = None,
        whom: str = "",
    ) -> None:
        """Refuse clusters too few for any promise, even were nobody (of those counted) missed."""
        rows = np.ones(len(self.rows)) if counted is None else counted
        sizes = self.totals(rows)[None]
        best = ratio_p_values(np.zeros(sizes.shape), sizes, ROWS_PER_CLUSTER, miss_rate)[0]
        if best <= failure_probability:
            return
        of = f" of {whom or self.whom}" if whom or self.whom else ""
        raise CalibrationError(
            f"{np.count_nonzero(sizes)} clusters with {sizes.sum():.0f} rows{of} to count cannot "
            f"promise a miss rate of {miss_rate:.4g} at failure probability "
            f"{failure_probability:.4g}: rows of one cluster are not independent, and at least "
            f"{fewest_clusters(miss_rate, failure_probability)} clusters of {ROWS_PER_CLUSTER} "
            "rows are needed, or more clusters of fewer rows; enlarge the calibration split, ask "
            "for less, or name no clusters if rows are independent"
        )


ReachFunction = Callable[[Floats], Floats]
"""From people, shape (n, d), to the best score each can reach, shape (n,)."""


@dataclass(frozen=True)
class AdvisedReach:
    """The best score people can reach by actions that advice gives, and what these obey."""

    search: ReachFunction
    limits: Limits
    max_steps: int | None = None

    def __call__(self, X: Floats) -> Floats:
        """Return the best score each can reach, shape (n,)."""
        return self.search(X)

    @property
    def words(self) -> str:
        """What recourse is promised within, to follow "have recourse"."""
        ceiling, most, steps = self.limits.ceiling, self.limits.max_features, self.max_steps
        said = " at any price" if ceiling is None else f" costing at most {ceiling:g}"
        said += "" if most is None else f", changing at most {most} feature{'s'[: most > 1]}"
        return said + ("" if steps is None else f", in at most {steps} step{'s'[: steps > 1]}")


def reached_within(reach: ReachFunction) -> str:
    """Return what recourse is promised within, where that is known."""
    return reach.words if isinstance(reach, AdvisedReach) else ""


KEPT = 2
"""Sets of people whose reach is remembered: a calibration asks about two, several times each."""


def reach_of(
    model: Any,
    actions: ActionSet | None = None,
    method: str = "auto",
    largest_action: float | None = None,
    limits: Limits | None = None,
) -> AdvisedReach:
    """Return the function from people to the best score they can reach, at least their own.

    It reads people as the model does, in the units a classifier was fitted in.

    Parameters
    ----------
    model
        What holds the score.
    actions
        What is allowed; None: the model's own.
    method
        How the best action is searched for.
    largest_action
        No feature moves further than this, in standardised units; None: no such bound.
    limits
        What else advice obeys (a ceiling, a number of features); None: nothing.
    """
    method_of(method)
    given = Limits() if limits is None else limits
    model, units = standardised_model(model)
    score = score_of(model)
    allowed = actions_of_model(model, units.actions(actions))
    allowed = allowed.narrowed(largest_action, score.n_features)

    own_units = given if given.cost is None else replace(given, cost=units.cost(given.cost))
    known: deque[tuple[Floats, Floats]] = deque(maxlen=KEPT)

    # Nobody is worse off than where they stand, even outside the bounds of their actions.
    def search(X: Floats, own: ActionSet) -> Floats:
        rows = units.rows(X)
        found = best_reachable(score, rows, method, own, limits=own_units)
        return np.maximum(values(score, rows), found.score)

    def best(X: Floats) -> Floats:
        for people, found in known:
            if people.shape == X.shape:
                other = ((people != X) & ~(np.isnan(people) & np.isnan(X))).any(axis=1)
                if not other.all():
                    answer, who = found.copy(), np.flatnonzero(other)
                    if who.size:
                        answer[who] = search(X[who], allowed.of_rows(who))
                    return answer
        known.append((X.copy(), search(X, allowed)))
        return known[-1][1].copy()

    possible = allowed.possible
    return AdvisedReach(best, given, None if possible is None else possible.max_steps)


def numeric_rows(X: Any, score: Score) -> Floats:
    """Return the rows as float64, columns of mixed types included, after checking them."""
    return checked_people(np.asarray(X, dtype=np.float64), score)
