"""Three samples: people before they responded, where we say they go, and where they are.

Whoever is in both tables counts in one of them only, drawn at random: the samples are then
independent, and rows of "predicted" and "observed" are exchangeable where the prediction is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Index
from countermove.errors import DataError, NotEnoughRowsError, ParameterError, shown
from countermove.production.retraining.reach import Boundary, boundary_of
from countermove.randomness import generator
from countermove.response import Population, Response
from countermove.response.response_set import RobustResponse
from countermove.scores import Score
from countermove.scores.base import values

LEAST = 50
"""Rows of a table below which drift cannot be distinguished from chance."""
TIES = 4
"""People per distinct value from which on a column counts as recorded in steps."""
ROUNDING = 1e-9
"""Of the spread of scores: what is this near the boundary was meant to stand on it."""


@dataclass(frozen=True, eq=False)
class PeopleTable:
    """A table of people in standardised units.

    Parameters
    ----------
    X
        Features, shape (n, d); a missing value is NaN.
    y
        Labels ±1, NaN where not known yet, shape (n,); None without labels.
    ids
        Who they are, shape (n,); None where that is not known.
    names
        Of the features; None: those of the model, in its order.
    """

    X: Floats
    y: Floats | None = None
    ids: NDArray[Any] | None = None
    names: tuple[str, ...] | None = None

    def take(self, rows: Index) -> PeopleTable:
        """Return some of the people."""
        return PeopleTable(
            self.X[rows],
            None if self.y is None else self.y[rows],
            None if self.ids is None else self.ids[rows],
            self.names,
        )


@dataclass(frozen=True, eq=False)
class ScoredSample:
    """One sample as the tests read it: features, deployed scores and labels where there are."""

    X: Floats
    score: Floats
    y: Floats | None

    @property
    def columns(self) -> Floats:
        """Features, and the score last, shape (n, d + 1)."""
        return np.column_stack([self.X, self.score])


@dataclass(frozen=True, eq=False)
class DriftSamples:
    """The samples; rows i of ``reference`` and ``induced`` are the same person.

    ``kept`` and ``new`` say which rows of the two tables they are, ``response`` is that of the
    people kept.
    """

    reference: ScoredSample
    induced: ScoredSample
    observed: ScoredSample
    kept: Index
    new: Index
    response: Response


def read(table: Any, where: str, score: Score, names: tuple[str, ...]) -> PeopleTable:
    """Return a table (`Rows`, `PeopleTable` or the like) after checking its shape and names."""
    X = np.asarray(table.X, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != score.n_features:
        raise DataError(
            f"the {where} table has shape {X.shape}; the deployed score reads "
            f"{score.n_features} features per person"
        )
    given = getattr(table, "names", None)
    if given is not None and tuple(given) != names:
        raise DataError(
            f"the {where} table holds {shown(given)}; the deployed model reads {shown(names)}, "
            "in this order"
        )
    y = getattr(table, "y", None)
    ids = getattr(table, "ids", None)
    seen = PeopleTable(
        X,
        None if y is None or not len(y) else np.asarray(y, dtype=np.float64),
        None if ids is None or not len(ids) else np.asarray(ids),
        names,
    )
    _check(seen, where)
    return seen


def complete(seen: PeopleTable, where: str) -> Index:
    """Return the rows without a missing value; they are those compared."""
    rows = np.flatnonzero(np.isfinite(seen.X).all(axis=1))
    if len(rows) < LEAST:
        raise NotEnoughRowsError(
            f"the {where} table has {len(rows)} complete rows of {len(seen.X)}; distinguishing "
            f"drift from chance needs at least {LEAST}"
        )
    return rows


def shared_ids(reference: PeopleTable, observed: PeopleTable) -> tuple[Index, Index]:
    """Return where the people of both tables stand in either, in the same order."""
    if reference.ids is None or observed.ids is None:
        nobody = np.empty(0, dtype=np.intp)
        return nobody, nobody
    _, first, second = np.intersect1d(
        reference.ids.astype(str), observed.ids.astype(str), return_indices=True
    )
    return first, second


def drift_samples(
    reference: PeopleTable,
    observed: PeopleTable,
    score: Score,
    response: Response,
    most: int,
    seed: int,
) -> DriftSamples:
    """Part and thin out the tables, and push the reference through the response."""
    rng = generator(seed, "drift samples")
    kept, new = complete(reference, "reference"), complete(observed, "observed")
    first, second = shared_ids(reference, observed)
    drawn = rng.random(len(first)) < 0.5
    kept = np.setdiff1d(kept, first[drawn], assume_unique=True)
    new = np.setdiff1d(new, second[~drawn], assume_unique=True)
    kept, new = (_thinned(rows, most, rng) for rows in (kept, new))
    if min(len(kept), len(new)) < LEAST:
        raise NotEnoughRowsError(
            f"{len(kept)} reference and {len(new)} observed rows are left once people in both "
            f"tables count in one of them only; needed are {LEAST} each"
        )
    before, after, answer = reference.take(kept), observed.take(new), response.of_rows(kept)
    started = scored_sample(score, before.X, before.y)
    x_new = answers(answer, score, before.X, rng)
    return DriftSamples(
        started,
        scored_sample(score, x_new, before.y),
        scored_sample(score, after.X, after.y),
        kept,
        new,
        answer,
    )


def answers(response: Response, score: Score, X: Floats, rng: np.random.Generator) -> Floats:
    """Return where people go; of several kinds of people with known shares, each draws one."""
    if isinstance(response, Population):
        response = response.with_seed(int(rng.integers(2**31)))
    if not isinstance(response, RobustResponse):
        moved: Floats = response.respond(score, X).x_new
        return moved
    if response.weights is None:
        raise ParameterError(
            "drift is measured against one prediction, and a robust response makes several; give "
            f"one of its members ({', '.join(member.name for member in response.members)})"
        )
    kind = rng.choice(len(response.members), size=len(X), p=np.asarray(response.weights))
    x_new = X.copy()
    for number, member in enumerate(response.members):
        rows = np.flatnonzero(kind == number)
        if rows.size:
            x_new[rows] = member.of_rows(rows).respond(score, X[rows]).x_new
    return x_new


def scored_sample(score: Score, X: Floats, y: Floats | None) -> ScoredSample:
    """Return people with their deployed scores; those on the boundary score exactly zero."""
    found = values(score, X)
    found[np.abs(found) < ROUNDING * (float(found.std()) or 1.0)] = 0.0
    return ScoredSample(X, found, y)


def recordings(
    sample: ScoredSample, observed: ScoredSample, score: Score
) -> Iterator[ScoredSample]:
    """Yield how predicted people may be written down where records are whole numbers or rounded.

    A column of the new table with many ties is recorded in steps: nobody is predicted between two
    of them but by the prediction. Values go to the nearest step, to the one towards approval, or
    to the one away from it; people who meant to stand on the boundary stand around it.
    """
    given = score.slope()
    slope = None if given is None else given.detach().numpy()
    ways = (None,) if slope is None else (None, 1.0, -1.0)
    heap = boundary_of(observed.score / (float(observed.score.std()) or 1.0))
    for way in ways:
        X = sample.X.copy()
        for j in range(X.shape[1]):
            steps = np.unique(observed.X[:, j])
            if len(steps) > len(observed.X) / TIES or len(steps) < 2:
                continue
            upwards = None if way is None or slope is None else way * float(slope[j]) > 0.0
            X[:, j] = _on_steps(X[:, j], steps, upwards)
        made = scored_sample(score, X, sample.y)
        yield replace(made, score=_heaped(made.score, heap, observed.score))


def heaped(sample: ScoredSample) -> ScoredSample:
    """Return people with those who meant to stand on the boundary at a score of zero."""
    heap = boundary_of(sample.score / (float(sample.score.std()) or 1.0))
    return replace(sample, score=_heaped(sample.score, heap, sample.score))


def _heaped(score: Floats, heap: Boundary, observed: Floats) -> Floats:
    spread = float(observed.std()) or 1.0
    low, high = min(heap.low, 0.0) * spread, max(heap.high, 0.0) * spread
    return np.where((score >= low) & (score <= high), 0.0, score)


def _on_steps(values: Floats, steps: Floats, upwards: bool | None) -> Floats:
    """Return values on the steps of a column: the nearest, or always up or down."""
    above = np.clip(np.searchsorted(steps, values - ROUNDING), 0, len(steps) - 1)
    below = np.clip(np.searchsorted(steps, values + ROUNDING, side="right") - 1, 0, None)
    if upwards is None:
        nearer = np.abs(steps[above] - values) < np.abs(values - steps[below])
        found: Floats = np.where(nearer, steps[above], steps[below])
        return found
    chosen: Floats = steps[above] if upwards else steps[below]
    return chosen


def _thinned(rows: Index, most: int, rng: np.random.Generator) -> Index:
    if len(rows) <= most:
        return rows
    return np.sort(rng.choice(rows, most, replace=False))


def _check(seen: PeopleTable, where: str) -> None:
    broken = np.flatnonzero(np.isinf(seen.X).any(axis=1))
    if broken.size:
        raise DataError(f"the {where} table has infinite values, rows {shown(broken)}", rows=broken)
    for name, column in (("labels", seen.y), ("ids", seen.ids)):
        if column is not None and len(column) != len(seen.X):
            raise DataError(f"the {where} table has {len(seen.X)} rows but {len(column)} {name}")
    if seen.y is not None:
        strange = np.flatnonzero(np.isfinite(seen.y) & ~np.isin(seen.y, (-1.0, 1.0)))
        if strange.size:
            raise DataError(
                f"the {where} table has labels other than ±1, rows {shown(strange)}", rows=strange
            )
    if seen.ids is not None and len(np.unique(seen.ids.astype(str))) < len(seen.ids):
        raise DataError(f"the {where} table names a person twice; keep each person's latest row")
