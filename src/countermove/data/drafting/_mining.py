"""Relations that a table shows without exception, for a person to confirm or refuse.

A candidate holds in both halves of the rows, would have exceptions if its columns were
independent, is attained by some rows, and compares what belongs together. Of those that say
the same, the simplest stay: each has to exclude people whom the ones before it allow.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from countermove._types import Floats, Mask
from countermove.data.parsing import numbers, texts
from countermove.data.relations import ConditionalRow, LevelRow, LinearRow
from countermove.data.relations._rules import Sense
from countermove.data.schema import Feature

EXPECTED = 10.0
"""Exceptions that independent columns would show in half the rows; fewer prove nothing."""

ATTAINED = 0.01
"""Share of the rows (of those that meet the condition) in which equality must be attained."""

EXCLUDED = 0.002
"""Share of people drawn column by column that a relation must exclude beyond those before it."""

DRAWN = 100_000
"""People drawn column by column, to see what a relation excludes."""

FEW_VALUES = 8
"""A column with no more values than this may be a condition at each of them."""

RARE = 0.005
"""A value in a smaller share of the rows is no condition."""

MOST_PROPOSED = 20
"""Nobody reads more; the simplest come first."""

MOST_COLUMNS = 40
"""Pairs of more columns than this are too many to propose from."""

_COMMON = frozenset(("over", "last", "with", "months", "amount", "number", "the", "time", "times"))


@dataclass(frozen=True)
class MinedRelation:
    """A relation that no row breaks.

    ``support`` is the share of the rows that speak for it (those that meet its condition; all
    without one); of people drawn column by column it would exclude the share ``excluded``.
    """

    rule: LinearRow | ConditionalRow
    support: float
    excluded: float


@dataclass(frozen=True)
class _Candidate:
    rule: LinearRow | ConditionalRow
    rank: int  # simplest kinds first
    support: float


def mine_relations(table: pd.DataFrame, features: Sequence[Feature]) -> list[MinedRelation]:
    """Return relations that hold in every row of a table and not by chance, simplest first.

    Parameters
    ----------
    table
        Cells as read; rows with a gap among the features are left out.
    features
        The columns, with their kinds and units.

    Returns
    -------
    list of MinedRelation
        ``a <= b``, ``a + b <= k``, ``if a == v then b == u`` (or <=, >=) and
        ``if a == v then b <= c``; none where columns are independent.
    """
    if len(features) > MOST_COLUMNS:
        return []
    frame = _numbers(table, features)
    if len(frame) < 2 * EXPECTED:
        return []
    rng = np.random.default_rng(0)
    order = rng.permutation(len(frame))
    halves = tuple(frame.iloc[order[start::2]] for start in (0, 1))
    facts = _Facts(halves[0], features, rng)
    candidates = [
        candidate
        for candidate in itertools.chain(facts.orders(), facts.totals(), facts.implications())
        if candidate.rule.holds(halves[1]).all()
    ]
    people = pd.DataFrame({c: rng.choice(frame[c].to_numpy(), DRAWN) for c in frame})
    return list(itertools.islice(_basis(candidates, people), MOST_PROPOSED))


def _numbers(table: pd.DataFrame, features: Sequence[Feature]) -> pd.DataFrame:
    """Return the features as codes, rows with gaps left out."""
    columns: dict[str, Floats] = {}
    for feature in features:
        if feature.categories:
            words = pd.Index(texts(table[feature.name]))
            codes = pd.Index(feature.categories).get_indexer(words).astype(np.float64)
            columns[feature.name] = np.where(codes < 0, np.nan, codes)
        else:
            columns[feature.name] = numbers(table[feature.name])[0]
    frame = pd.DataFrame(columns)
    finite = np.isfinite(frame.to_numpy()).all(axis=1)
    kept: pd.DataFrame = frame[finite].reset_index(drop=True)
    return kept


class _Facts:
    """What the first half of the rows shows without exception."""

    def __init__(
        self, half: pd.DataFrame, features: Sequence[Feature], rng: np.random.Generator
    ) -> None:
        self._features = {feature.name: feature for feature in features}
        self._cells: Mapping[str, Floats] = {str(c): half[c].to_numpy() for c in half}
        self._shuffled = {c: rng.permutation(values) for c, values in self._cells.items()}
        self._n = len(half)
        self._amounts = [f.name for f in features if f.kind in ("numeric", "integer")]
        self._ordered = {
            (a, b)
            for a, b in itertools.permutations(self._amounts, 2)
            if (self._cells[a] <= self._cells[b]).all()
        }

    def orders(self) -> Iterator[_Candidate]:
        """Yield ``a <= b``."""
        for a, b in sorted(self._ordered):
            x, y = self._cells[a], self._cells[b]
            chance = float((x > self._shuffled[b]).mean()) * self._n
            if self._alike(a, b) and chance >= EXPECTED and (x == y).mean() >= ATTAINED:
                yield _Candidate(LinearRow.of({a: 1.0, b: -1.0}, "<=", 0.0), 0, 1.0)

    def totals(self) -> Iterator[_Candidate]:
        """Yield ``a + b <= k``."""
        for a, b in itertools.combinations(self._amounts, 2):
            x, y = self._cells[a], self._cells[b]
            total = x + y
            most = float(total.max())
            chance = float((x + self._shuffled[b] > most).mean()) * self._n
            attained = float((total == most).mean())
            if self._alike(a, b) and chance >= EXPECTED and attained >= ATTAINED:
                yield _Candidate(LinearRow.of({a: 1.0, b: 1.0}, "<=", most), 0, 1.0)

    def implications(self) -> Iterator[_Candidate]:
        """Yield what follows from a column's having a value."""
        pairs = [
            (b, c)
            for b, c in itertools.permutations(self._amounts, 2)
            if self._alike(b, c) and (b, c) not in self._ordered
        ]
        for a in self._cells:
            near = [b for b in self._cells if b != a and self._related(a, b)]
            for value in self._conditions(a):
                met = self._cells[a] == value
                there = {c: values[met] for c, values in self._cells.items()}
                for b in near:
                    yield from self._bounds(a, value, met, b)
                for b, c in pairs:
                    if a not in (b, c) and (there[b] <= there[c]).all():
                        yield from self._order_there(a, value, met, b, c)

    def _bounds(self, a: str, value: float, met: Mask, b: str) -> Iterator[_Candidate]:
        """Yield ``if a == value then b == u`` (or >=, <=)."""
        feature, everywhere = self._features[b], self._cells[b]
        cells = everywhere[met]
        low, high = float(cells.min()), float(cells.max())
        exceptions: dict[Sense, tuple[float, Mask]] = {
            ">=": (low, everywhere < low),
            "<=": (high, everywhere > high),
        }
        if low == high:
            exceptions = {"==": (low, everywhere != low)}
        elif feature.categories and feature.kind != "ordered":
            return
        for sense, (bound, broken) in exceptions.items():
            expected = float(broken.mean()) * int(met.sum())
            if expected >= EXPECTED and (cells == bound).mean() >= ATTAINED:
                yield self._conditional(a, value, met, self._row(b, sense, bound), 1)

    def _order_there(self, a: str, value: float, met: Mask, b: str, c: str) -> Iterator[_Candidate]:
        """Yield ``if a == value then b <= c``, which holds there."""
        x, y = self._cells[b], self._cells[c]
        expected = float((x > y).mean()) * int(met.sum())
        if expected >= EXPECTED and (x[met] == y[met]).mean() >= ATTAINED:
            yield self._conditional(a, value, met, LinearRow.of({b: 1.0, c: -1.0}, "<=", 0.0), 2)

    def _row(self, column: str, sense: Sense, code: float) -> LinearRow | LevelRow:
        """Return the comparison of a column with a number or the category of that code."""
        levels = self._features[column].categories
        if levels:
            return LevelRow(column, sense, levels[int(code)], levels)
        return LinearRow.of({column: 1.0}, sense, code)

    def _conditional(
        self, a: str, value: float, met: Mask, then: LinearRow | LevelRow, rank: int
    ) -> _Candidate:
        rule = ConditionalRow(self._row(a, "==", value), then)
        return _Candidate(rule, rank, float(met.mean()))

    def _conditions(self, a: str) -> list[float]:
        """Return the values of a column that may be a condition: few of them, or its ends and 0."""
        values, counts = np.unique(self._cells[a], return_counts=True)
        often = values[counts >= RARE * self._n]
        if len(values) > FEW_VALUES:
            often = often[np.isin(often, (values[0], 0.0, values[-1]))]
        return [float(value) for value in often]

    def _alike(self, a: str, b: str) -> bool:
        """Return whether two amounts may be compared: of one unit, else of similar names."""
        one, other = self._features[a].unit, self._features[b].unit
        return one == other if one and other else bool(_stems(a) & _stems(b))

    def _related(self, a: str, b: str) -> bool:
        """Return whether a value of one column may say something about the other."""
        amounts = {a, b} <= set(self._amounts)
        return bool(_stems(a) & _stems(b)) or (amounts and self._alike(a, b))


def _stems(name: str) -> set[str]:
    words = (word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name))
    return {word for word in words if len(word) > 2 and word not in _COMMON}


def _basis(candidates: Sequence[_Candidate], people: pd.DataFrame) -> Iterator[MinedRelation]:
    """Yield the candidates that exclude people whom those before them allow."""
    masks = [~candidate.rule.holds(people) for candidate in candidates]
    left = np.ones(len(people), dtype=np.bool_)
    waiting = list(range(len(candidates)))
    while waiting and left.any():
        cut = {i: float(masks[i][left].mean()) for i in waiting}
        waiting = [i for i in waiting if cut[i] >= EXCLUDED]
        if not waiting:
            return
        # The simplest kind first; of one kind, what excludes most.
        best = min(waiting, key=lambda i: (candidates[i].rank, -cut[i], candidates[i].rule.text))
        yield MinedRelation(candidates[best].rule, candidates[best].support, cut[best])
        left &= ~masks[best]
        waiting.remove(best)
