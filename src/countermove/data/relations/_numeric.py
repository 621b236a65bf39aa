r"""Relations as numbers: what a solver, a response or a search reads.

Over the model columns :math:`x` of one person (`Schema.model_features`), in original coded units
(ordered categories 0, 1, …; one 0/1 column per one-hot category) or in a standardiser's:

.. math::

    l \le A x \le u, \qquad x_p = v \;\Rightarrow\; l' \le a' x \le u'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from countermove._types import Floats, Index, Mask
from countermove.data.relations._rules import (
    TOLERANCE,
    ConditionalRow,
    LevelRow,
    LinearRow,
)

if TYPE_CHECKING:
    from countermove.data.schema import Schema
    from countermove.data.standardise import Standardiser


@dataclass(frozen=True, eq=False)
class LinearRows:
    r"""Rows :math:`l \le A x \le u` over d model columns.

    Parameters
    ----------
    A
        Weights, shape (m, d).
    lower, upper
        Bounds, shape (m,); infinite where a side is open, equal for an equality.
    texts
        The sentence each row comes from.
    """

    A: Floats
    lower: Floats
    upper: Floats
    texts: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.texts)

    def satisfied(self, X: Floats) -> Mask:
        """Return which of n people satisfy which row, up to rounding, shape (n, m)."""
        values = X @ self.A.T
        sizes = 1.0 + np.abs(X) @ np.abs(self.A.T)
        low = np.where(np.isfinite(self.lower), np.abs(self.lower), 0.0)
        high = np.where(np.isfinite(self.upper), np.abs(self.upper), 0.0)
        above = values >= self.lower - TOLERANCE * (sizes + low)
        return np.asarray(above & (values <= self.upper + TOLERANCE * (sizes + high)))

    def rescaled(self, mean: Floats, scale: Floats) -> LinearRows:
        """Return the same rows over columns ``(x - mean) / scale``: A s, bounds less A m."""
        shift = self.A @ mean
        return LinearRows(self.A * scale, self.lower - shift, self.upper - shift, self.texts)


@dataclass(frozen=True, eq=False)
class NumericRelations:
    r"""All relations of a schema over its model columns.

    Parameters
    ----------
    columns
        The d model columns, ``schema.feature_names``.
    rows
        What holds of everybody: relations without a condition.
    conditional
        Row i holds of whoever has ``x[premise_columns[i]] == premise_values[i]``; the premise of
        a one-hot category is its own 0/1 column at 1.
    premise_columns, premise_values
        Shape (k,), k rows of ``conditional``.
    mean, scale
        Units of everything else: an original value is ``x * scale + mean``, shape (d,).
    """

    columns: tuple[str, ...]
    rows: LinearRows
    conditional: LinearRows
    premise_columns: Index
    premise_values: Floats
    mean: Floats
    scale: Floats

    def __bool__(self) -> bool:
        return bool(len(self.rows) or len(self.conditional))

    def in_force(self, X: Floats) -> Mask:
        """Return which conditional rows bind which of n people where they stand, shape (n, k)."""
        values = X[:, self.premise_columns]
        size = np.abs(values) + np.abs(self.premise_values)
        near = np.abs(values - self.premise_values) <= TOLERANCE * (1 + size)
        return np.asarray(near)

    def holds(self, X: Floats) -> Mask:
        """Return which of n people satisfy everything, shape (n,)."""
        held = self.rows.satisfied(X).all(axis=1)
        held &= (~self.in_force(X) | self.conditional.satisfied(X)).all(axis=1)
        return np.asarray(held)

    def standardised(self, standardiser: Standardiser) -> NumericRelations:
        """Return the same relations over standardised columns."""
        return self.rescaled(standardiser.mean, standardiser.scale)

    def rescaled(self, mean: Floats, scale: Floats) -> NumericRelations:
        """Return the same relations over columns ``(x - mean) / scale``."""
        at = self.premise_columns
        return NumericRelations(
            self.columns,
            self.rows.rescaled(mean, scale),
            self.conditional.rescaled(mean, scale),
            at,
            (self.premise_values - mean[at]) / scale[at],
            self.mean + self.scale * mean,
            self.scale * scale,
        )


def numeric_relations(schema: Schema) -> NumericRelations:
    """Return a schema's relations over its model columns, original units.

    `NumericRelations.standardised` converts them; `path_states` has the paths, which differ from
    person to person, and `observed_ranges` the ranges, which come from training rows.
    """
    places = {name: place for place, name in enumerate(schema.feature_names)}
    always = [r.rule for r in schema.relations if not isinstance(r.rule, ConditionalRow)]
    conditions = [r.rule for r in schema.relations if isinstance(r.rule, ConditionalRow)]
    premises = [_premise(rule.premise, places) for rule in conditions]
    thens = _stacked([rule.then for rule in conditions], places)
    texts = tuple(rule.text for rule in conditions)
    return NumericRelations(
        schema.feature_names,
        _stacked(always, places),
        LinearRows(thens.A, thens.lower, thens.upper, texts),
        np.array([place for place, _ in premises], dtype=np.intp),
        np.array([value for _, value in premises], dtype=np.float64),
        np.zeros(len(places)),
        np.ones(len(places)),
    )


def _stacked(rules: Sequence[LinearRow | LevelRow], places: dict[str, int]) -> LinearRows:
    """Return rules as rows of one matrix."""
    A = np.zeros((len(rules), len(places)))
    lower, upper = np.full(len(rules), -np.inf), np.full(len(rules), np.inf)
    for i, rule in enumerate(rules):
        if isinstance(rule, LevelRow):
            place, bound = _premise(rule, places)
            A[i, place] = 1.0
        else:
            bound = rule.bound
            for name, weight in rule.terms:
                A[i, places[name]] = weight
        if rule.sense != "<=":
            lower[i] = bound
        if rule.sense != ">=":
            upper[i] = bound
    return LinearRows(A, lower, upper, tuple(rule.text for rule in rules))


def _premise(rule: LinearRow | LevelRow, places: dict[str, int]) -> tuple[int, float]:
    """Return the model column and the coded value of a single-column rule."""
    if isinstance(rule, LinearRow):
        return places[rule.columns[0]], rule.bound
    if rule.column in places:
        return places[rule.column], float(rule.code)
    return places[f"{rule.column}={rule.value}"], 1.0
