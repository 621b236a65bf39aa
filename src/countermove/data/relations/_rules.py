"""What a relation says: rows of weighted sums, levels of categories, conditions.

Columns and numbers are those of the typed table, in original units. Every rule says
which rows satisfy it, and writes itself in the schema's grammar.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from countermove._types import Floats, Mask

Sense: TypeAlias = Literal["<=", ">=", "=="]
SENSES: tuple[Sense, ...] = ("<=", ">=", "==")
FLIPPED: dict[Sense, Sense] = {"<=": ">=", ">=": "<=", "==": "=="}

TOLERANCE = 1e-9
"""Sums of floats are compared up to this share of their terms."""

_PLAIN_NAME = re.compile(r"[^\W\d]\w*")
_PLAIN_VALUE = re.compile(r"\w(?:[^'\"`\n]*[^'\"`\s])?")
KEYWORDS = frozenset(("if", "then"))


def number_text(number: float) -> str:
    """Return a number as the grammar reads it back: 10, 0.5, 1e-07."""
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def name_text(name: str) -> str:
    """Return a column as the grammar reads it back, in backticks unless it is one plain word."""
    plain = _PLAIN_NAME.fullmatch(name) and name.lower() not in KEYWORDS
    return name if plain else f"`{name.replace('`', '``')}`"


def value_in_quotes(value: str) -> str:
    """Return a category as the grammar reads it back, in quotes where it has to be."""
    plain = _PLAIN_VALUE.fullmatch(value) and not KEYWORDS & set(value.lower().split())
    return value if plain else "'" + value.replace("'", "''") + "'"


def weighted(terms: Iterable[tuple[str, float]], names: Iterable[str]) -> str:
    """Return ``2 * a + b`` for positive weights."""
    parts = (
        name if weight == 1 else f"{number_text(weight)} * {name}"
        for (_, weight), name in zip(terms, names, strict=True)
    )
    return " + ".join(parts)


def compared(gap: Floats, sense: Sense, tolerance: Floats | float) -> Mask:
    """Return where ``gap`` (left minus right) stands to 0 as ``sense`` says."""
    below = gap <= tolerance if sense != ">=" else np.ones(gap.shape, dtype=np.bool_)
    above = gap >= -tolerance if sense != "<=" else np.ones(gap.shape, dtype=np.bool_)
    return np.asarray(below & above, dtype=np.bool_)


@dataclass(frozen=True)
class LinearRow:
    r"""A weighted sum of columns against a number: :math:`\sum_j w_j x_j \le k` (or ≥, =).

    Parameters
    ----------
    terms
        Column and weight, positive weights first; none is 0.
    sense
        ``<=``, ``>=`` or ``==``.
    bound
        :math:`k`, in the columns' unit.
    """

    terms: tuple[tuple[str, float], ...]
    sense: Sense
    bound: float

    @classmethod
    def of(cls, weights: dict[str, float], sense: Sense, bound: float) -> LinearRow:
        """Return the one spelling of a row: no zeros, positive weights first, one at least."""
        terms = [(name, weight) for name, weight in weights.items() if weight != 0]
        if terms and all(weight < 0 for _, weight in terms):
            terms, bound = [(name, -weight) for name, weight in terms], -bound
            sense = FLIPPED[sense]
        ordered = [t for t in terms if t[1] > 0] + [t for t in terms if t[1] < 0]
        return cls(tuple(ordered), sense, bound + 0.0)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it speaks of."""
        return tuple(name for name, _ in self.terms)

    @property
    def text(self) -> str:
        """The row in the schema's grammar."""
        names = [name_text(name) for name in self.columns]
        listed = list(zip(self.terms, names, strict=True))
        left = [(term, name) for term, name in listed if term[1] > 0]
        right = [((term[0], -term[1]), name) for term, name in listed if term[1] < 0]
        ends = [weighted(*zip(*side, strict=True)) if side else "" for side in (left, right)]
        if not right:
            return f"{ends[0]} {self.sense} {number_text(self.bound)}"
        sign = " + " if self.bound > 0 else " - "
        rest = sign + number_text(abs(self.bound)) if self.bound else ""
        return f"{ends[0]} {self.sense} {ends[1]}{rest}"

    def holds(self, frame: pd.DataFrame) -> Mask:
        """Return which rows of a typed table satisfy it."""
        parts = np.array([weight * frame[name].to_numpy(np.float64) for name, weight in self.terms])
        size = abs(self.bound) + np.abs(parts).sum(axis=0)
        return compared(parts.sum(axis=0) - self.bound, self.sense, TOLERANCE * size)


@dataclass(frozen=True)
class LevelRow:
    """A column of categories against one of them: ``housing == owned``.

    Parameters
    ----------
    column
        An ordered, one-hot or binary column with categories.
    sense
        ``==``; for ordered categories also ``<=`` and ``>=``.
    value
        The category.
    levels
        All categories of the column, in the schema's order.
    """

    column: str
    sense: Sense
    value: str
    levels: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The column it speaks of."""
        return (self.column,)

    @property
    def code(self) -> int:
        """The category's place among all, from 0: its code where the column is one number."""
        return self.levels.index(self.value)

    @property
    def text(self) -> str:
        """The row in the schema's grammar."""
        return f"{name_text(self.column)} {self.sense} {value_in_quotes(self.value)}"

    def holds(self, frame: pd.DataFrame) -> Mask:
        """Return which rows of a typed table satisfy it; an unknown category does not."""
        values = frame[self.column]
        if pd.api.types.is_numeric_dtype(values.dtype):
            codes = values.to_numpy(np.float64)
        else:
            codes = pd.Index(self.levels).get_indexer(pd.Index(values)).astype(np.float64)
        return compared(codes - self.code, self.sense, 0.0) & (codes >= 0)


@dataclass(frozen=True)
class ConditionalRow:
    """A row that holds wherever a column has a value: ``if a == v then b <= c``.

    Parameters
    ----------
    premise
        One column ``==`` one value.
    then
        What follows.
    """

    premise: LinearRow | LevelRow
    then: LinearRow | LevelRow

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it speaks of, each once."""
        return tuple(dict.fromkeys((*self.premise.columns, *self.then.columns)))

    @property
    def text(self) -> str:
        """The relation in the schema's grammar."""
        return f"if {self.premise.text} then {self.then.text}"

    def holds(self, frame: pd.DataFrame) -> Mask:
        """Return which rows of a typed table satisfy it."""
        return ~self.premise.holds(frame) | self.then.holds(frame)


Rule: TypeAlias = LinearRow | LevelRow | ConditionalRow


@dataclass(frozen=True)
class Relation:
    """Something that is true of everybody who can exist, and why.

    Parameters
    ----------
    rule
        What is true.
    because
        The reason, for people.
    mixed_units
        That the columns have different units was meant.
    """

    rule: Rule
    because: str = field(default="", compare=False)
    mixed_units: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it speaks of, each once."""
        return self.rule.columns

    @property
    def text(self) -> str:
        """The sentence in the schema's grammar."""
        return self.rule.text

    def holds(self, frame: pd.DataFrame) -> Mask:
        """Return which rows of a typed table (original units) satisfy it, shape (n,).

        Rows that lack one of its cells are not judged: they count as satisfying it.
        """
        return self.rule.holds(frame) | _lacking(frame, self.columns)

    def to_entry(self) -> str | dict[str, Any]:
        """Return the entry as a schema file would hold it."""
        more: dict[str, Any] = {"because": self.because} if self.because else {}
        more |= {"mixed_units": True} if self.mixed_units else {}
        return {"relation": self.text, **more} if more else self.text


def _lacking(frame: pd.DataFrame, columns: Iterable[str]) -> Mask:
    return frame[list(columns)].isna().any(axis=1).to_numpy(np.bool_)
