r"""What a deployment showed: two tables, matched by key or two samples, reduced along the rule.

Every person becomes two numbers in units of distance along the rule: the gap to
approval before, :math:`-s(x)/N`, and the advance, :math:`w\cdot(x'-x)/N` over what can move.
Whatever would make an estimate silently wrong (keys, columns, values) is refused here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray

from countermove._types import Floats, Mask
from countermove.data.standardise import Standardiser
from countermove.errors import DataError, NotEnoughRowsError, ParameterError, shown
from countermove.people import ActionSet
from countermove.response.reduction import ActionPlan, slope_of
from countermove.scores import Score

Key: TypeAlias = str | tuple[ArrayLike, ArrayLike] | None
"""A column of both tables, a pair of key arrays, or None for two samples without keys."""
LEAST_PAIRS = 30
"""Matched people below which not even the share of movers is known to a sixth."""
LEAST_SAMPLE = 200
"""People per sample without keys: two histograms of scores have to be distinguished."""
ROUNDING = 1e-9
"""Changes below this share of ``1 + |x|`` are rounding, not moves."""
RECORDED = 0.01
"""Share of exactly unmoved people from which on records are taken as exact."""
GRIDS = tuple(step * 10.0**power for power in range(6, -7, -1) for step in (5.0, 2.0, 1.0))
"""Steps to which records may have been rounded, in the units of the table."""
CALM = 50
"""Approved people from whom on drift is read off them."""
DRIFTS = 4.0
"""Standard errors beyond which their features drift."""
VALUES = 20
"""Different values from which on a rounded column is a rounded quantity, not a code."""


@dataclass(frozen=True)
class TwoTables:
    """People before and after, in standardised units."""

    before: Floats  # (n, d)
    after: Floats  # (m, d)
    names: tuple[str, ...]
    matched: bool  # row i is the same person
    keys: NDArray[Any]  # in the order of ``before``; empty without keys


def pair_up(before: Any, after: Any, key: Key, units: Standardiser | None = None) -> TwoTables:
    """Match two tables by key, whatever their order, or keep them as two samples."""
    if not (key is None or isinstance(key, str) or (isinstance(key, tuple) and len(key) == 2)):
        raise ParameterError(f"key is a column, a pair (before, after) or None, got {key!r}")
    names = _names(before, after, key, units)
    tables = [
        _features(table, names, where) for table, where in ((before, "before"), (after, "after"))
    ]
    if units is not None:
        tables = [units.transform(table) for table in tables]
    if key is None:
        return TwoTables(tables[0], tables[1], names, False, np.empty(0, dtype=object))
    first, second = _keys(before, after, key)
    for keys, rows, where in ((first, tables[0], "before"), (second, tables[1], "after")):
        _check_keys(keys, len(rows), where)
    order = _matched(first, second)
    return TwoTables(tables[0], tables[1][order], names, True, first.to_numpy(dtype=object))


def _names(before: Any, after: Any, key: Key, units: Standardiser | None) -> tuple[str, ...]:
    frames = [isinstance(table, pd.DataFrame) for table in (before, after)]
    if all(frames):
        named = [str(name) for name in before.columns if name != key]
        return tuple(units.names) if units is not None else tuple(named)
    if any(frames):
        raise DataError("one table is a DataFrame and the other is not; bring two of a kind")
    width = np.asarray(before).shape[-1] if np.ndim(before) == 2 else 0
    if units is not None and width == units.n_features:
        return tuple(units.names)
    return tuple(f"x{j}" for j in range(width))


def _features(table: Any, names: tuple[str, ...], where: str) -> Floats:
    """Return the named columns as finite numbers."""
    if isinstance(table, pd.DataFrame):
        absent = [name for name in names if name not in table.columns]
        if absent:
            raise DataError(
                f"the table {where} lacks the columns {shown(map(repr, absent))}; it must hold "
                f"what the rule reads: {shown(names)}"
            )
        table = table[list(names)]
    try:
        rows = np.ascontiguousarray(table, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"the table {where} holds cells that are no numbers: {error}") from error
    if rows.ndim != 2 or rows.shape[1] != len(names):
        raise DataError(
            f"the table {where} has shape {rows.shape}; expected one row per person and "
            f"{len(names)} features"
        )
    broken = ~np.isfinite(rows)
    if broken.any():
        where_rows = np.flatnonzero(broken.any(axis=1))
        columns = [names[j] for j in np.flatnonzero(broken.any(axis=0))]
        raise DataError(
            f"the table {where} has missing or infinite values in {shown(map(repr, columns))}, "
            f"rows {shown(where_rows)} (counted from 0); fill them or leave these people out of "
            "both tables",
            rows=where_rows,
        )
    return rows


def _keys(before: Any, after: Any, key: Key) -> tuple[pd.Series, pd.Series]:
    if isinstance(key, str):
        for table, where in ((before, "before"), (after, "after")):
            if not isinstance(table, pd.DataFrame):
                raise ParameterError(
                    f"key={key!r} names a column, but the table {where} is an array; give the "
                    "keys as a pair (keys_before, keys_after)"
                )
            if key not in table.columns:
                raise DataError(f"the table {where} lacks the key column {key!r}")
        return before[key].reset_index(drop=True), after[key].reset_index(drop=True)
    assert isinstance(key, tuple)
    return pd.Series(np.asarray(key[0])), pd.Series(np.asarray(key[1]))


def _check_keys(keys: pd.Series, n_rows: int, where: str) -> None:
    if len(keys) != n_rows:
        raise DataError(f"the table {where} has {n_rows} rows but {len(keys)} keys")
    missing = np.flatnonzero(keys.isna())
    if missing.size:
        raise DataError(f"the table {where} has rows without a key: {shown(missing)}", rows=missing)
    twice = keys.duplicated(keep=False).to_numpy(dtype=bool)
    if twice.any():
        named = dict.fromkeys(map(repr, keys[twice].tolist()))
        raise DataError(
            f"the table {where} has keys that occur more than once: {shown(named)}; each person "
            "needs one row, so keep the latest or aggregate",
            rows=np.flatnonzero(twice),
        )


def _matched(first: pd.Series, second: pd.Series) -> NDArray[np.intp]:
    """Return where the people of ``first`` stand in ``second``."""
    order: NDArray[np.intp] = pd.Index(second).get_indexer(pd.Index(first))
    gone = first[order < 0].tolist()
    known = second.isin(first).to_numpy(dtype=bool)
    new = second[~known].tolist()
    if gone or new:
        parts = [
            f"{len(keys)} only {where}: {shown(map(repr, keys))}"
            for keys, where in ((gone, "before"), (new, "after"))
            if keys
        ]
        raise DataError(
            f"the tables do not match by key ({'; '.join(parts)}). Keep the people who are in "
            "both (whether those who left differ is for you to judge), or compare the tables as "
            "two samples with key=None",
            rows=np.flatnonzero(order < 0),
        )
    return order


@dataclass(frozen=True)
class Observation:
    """A rule, and people before and after it."""

    score: Score
    actions: ActionSet
    names: tuple[str, ...]
    X: Floats
    X_after: Floats
    matched: bool
    unit: float  # N: score per unit of distance over the usable directions
    slope: Floats  # w / N over the features that can move, zero elsewhere, (d,)
    gap: Floats  # distance below the boundary, negative for the approved
    gap_after: Floats
    advance: Floats  # distance gained along the rule (matched only, else empty)
    still: Mask  # who stands exactly where they stood, to the rounding of records (matched only)
    slack: float = 0.0  # how far rounding of the records may set a mover back along the rule
    unseen: float = 0.0  # gaps below which a crossing may be lost in that rounding

    @property
    def recorded_exactly(self) -> bool:
        """Whether records are free of measurement noise: some people did not change at all."""
        return bool(self.still.size) and float(self.still.mean()) >= RECORDED

    @property
    def spread(self) -> float:
        """Standard deviation of the gaps, the yardstick of distances here."""
        return float(self.gap.std()) or 1.0

    @cached_property
    def _drift(self) -> tuple[Floats, Floats, Floats] | None:
        """Rows (1, gap), pull of every person on the features' lines, and lines; None without."""
        calm = self.gap <= 0.0
        if self.recorded_exactly or int(calm.sum()) < CALM:
            return None
        rows = np.column_stack([np.ones(len(self.gap)), self.gap])
        inverse = np.linalg.inv(rows[calm].T @ rows[calm])
        pull = np.where(calm[:, None], rows @ inverse, 0.0)
        lines = pull.T @ (self.X_after - self.X)
        rest = (self.X_after - self.X - rows @ lines)[calm]
        errors = np.sqrt(np.outer(np.diag(inverse), (rest**2).mean(axis=0)))
        clear = bool((np.abs(lines) > DRIFTS * errors + 1e-12).any())
        return (rows, pull, lines) if clear else None

    @cached_property
    def moves(self) -> Floats:
        """Changes of features, cleared of what people without a reason to move show too, (n, d)."""
        moves: Floats = self.X_after - self.X
        return moves if self._drift is None else moves - self._drift[0] @ self._drift[2]

    def drift_influence(self, weights: Floats) -> Floats:
        """Return how every person, through the drift, moves the weighted sum of moves, (n, d)."""
        if self._drift is None:
            return np.zeros_like(self.X)
        rows, pull, _ = self._drift
        result: Floats = -(pull @ (weights @ rows))[:, None] * self.moves
        return result

    @property
    def movable(self) -> Mask:
        """Which features a response moves."""
        return ActionPlan(self.actions, self.X.shape[1]).moving

    @property
    def usable(self) -> Mask:
        """Which features a response moves under this rule."""
        used: Mask = ActionPlan(self.actions, self.X.shape[1]).usable(self.slope) != 0.0
        return used

    def changed_fixed(self) -> tuple[NDArray[np.intp], tuple[str, ...]]:
        """Return the rows, and names of the features, that changed although they cannot."""
        if not self.matched:
            return np.empty(0, dtype=np.intp), ()
        changed = _changes(self.X, self.X_after) & ~self.movable
        columns = [self.names[j] for j in np.flatnonzero(changed.any(axis=0))]
        return np.flatnonzero(changed.any(axis=1)), tuple(columns)


def observe(
    score: Score,
    people: TwoTables,
    actions: ActionSet | None = None,
    units: Standardiser | None = None,
) -> Observation:
    """Reduce people before and after to what an estimate reads, or raise an error."""
    _check_rule(score)
    _check_size(people)
    X, X_after = people.before, people.after
    if X.shape[1] != score.n_features:
        raise DataError(
            f"the rule reads {score.n_features} features but the tables hold {X.shape[1]}: "
            f"{shown(people.names)}"
        )
    # What was seen may break relations that a response would obey: prices are read off columns.
    allowed = ActionSet() if actions is None else actions.obeyed_in_responses(False)
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
    slack = unseen = 0.0
    if people.matched:
        grid, rounded = _grids(X, X_after, units)
        changed = _changes(X, X_after) & ~((np.abs(X_after - X) <= grid * (1.0 + 1e-9)) & rounded)
        still = np.asarray(~changed.any(axis=1), dtype=bool)
        slack = float(np.abs(plan.usable(slope)) @ grid)
        unseen = float(np.abs(plan.usable(slope)) @ np.where(rounded, grid, 0.0))
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
        slack=slack,
        unseen=unseen,
    )


def _check_rule(score: Score) -> None:
    if not isinstance(score, Score):
        raise ParameterError(
            "the rule people responded to is unknown: expected a Score, got "
            f"{type(score).__name__}. Give the published score (`clf.score_` of a fitted "
            "StrategicClassifier, `model.rule` of a stored model): without it no gap is known"
        )
    if score.slope() is None:
        raise ParameterError(
            "the rule has no slope in what people can move (a network, for example), so that "
            "there is no one distance to its boundary; estimate people from a linear rule"
        )


def _grids(X: Floats, X_after: Floats, units: Standardiser | None) -> tuple[Floats, Mask]:
    """Return the steps of rounded records, standardised, and where only those after are rounded."""
    scale = np.ones(X.shape[1]) if units is None else units.scale
    before, after = (table if units is None else units.inverse(table) for table in (X, X_after))
    grid, rounded = np.zeros(X.shape[1]), np.zeros(X.shape[1], dtype=bool)
    for j in range(X.shape[1]):
        values = np.unique(after[:, j])
        largest = (values[-1] - values[0]) / VALUES if len(values) > VALUES else 0.0
        step = next((h for h in GRIDS if h <= largest and _on(values, h)), 0.0)
        if step > 0.0:
            grid[j], rounded[j] = step / scale[j], not _on(before[:, j], step)
    return grid, rounded


def _on(values: Floats, step: float) -> bool:
    """Return whether all values are multiples of a step."""
    parts = values / step
    return bool((np.abs(parts - np.round(parts)) < 1e-6).all())


def _scores(score: Score, X: Floats) -> Floats:
    with torch.no_grad():
        values: Floats = score(torch.from_numpy(X)).numpy()
    return values


def _changes(X: Floats, X_after: Floats) -> Mask:
    changed: Mask = np.abs(X_after - X) > ROUNDING * (1.0 + np.abs(X))
    return changed


def _check_size(people: TwoTables) -> None:
    least = LEAST_PAIRS if people.matched else LEAST_SAMPLE
    fewest = min(len(people.before), len(people.after))
    if fewest < least:
        what = "matched people" if people.matched else "people in each of two samples"
        raise NotEnoughRowsError(
            f"an estimate needs at least {least} {what}, got {len(people.before)} before and "
            f"{len(people.after)} after; wait for more rows"
        )
