"""Cells without a value: what stands in for them, learned from the training rows.

In a design matrix every model column of such a cell is NaN. The fill is a value per column,
NaN where none is needed. That of an indicator column is 1, or 0 if no training row lacked the
cell: an empty one then counts as the usual value, and nothing was learned about its absence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Index, Mask
from countermove.data.schema import Feature, MissingCells, Schema, value_text
from countermove.errors import DataError, shown

BITS = 16
"""A median is found from the top bits of the values down, so many at a time."""


@dataclass(frozen=True)
class FillColumns:
    """A feature whose cells may be missing, and where its model columns stand."""

    feature: Feature
    policy: MissingCells
    columns: tuple[int, ...]  # those of its values
    indicator: int

    def levels(self, X: Floats) -> Index:
        """Return how often each category occurs, of a feature that has some."""
        block = X[:, list(self.columns)]
        if len(self.columns) > 1:
            return np.asarray(np.nansum(block, axis=0), dtype=np.intp)
        if self.feature.kind not in ("ordered", "binary"):
            return np.zeros(0, dtype=np.intp)
        there = block[~np.isnan(block)].astype(np.intp)
        return np.bincount(there, minlength=max(len(self.feature.categories), 2))

    def stand_in(self, levels: Index, lacking: int, median: float) -> Floats:
        """Return the fill of the value columns."""
        if len(self.columns) > 1:
            fill = np.zeros(len(self.columns))
            # A level that no training row has is none to learn from: the usual one stands in.
            if not (self.feature.own_level and lacking):
                fill[self._category(levels)] = 1.0
            return fill
        if self.policy.value is not None and not self.feature.categories:
            return np.array([float(self.policy.value)])
        if len(levels):
            return np.array([float(self._category(levels))])
        return np.array([median])

    def _category(self, levels: Index) -> int:
        if self.policy.value is not None:
            return self.feature.categories.index(value_text(self.policy.value))
        if self.policy.policy == "median":
            return int(np.searchsorted(np.cumsum(levels), (levels.sum() - 1) // 2, side="right"))
        return int(np.argmax(levels))

    def lacking(self, X: Floats) -> Mask:
        """Return who lacks the cell, of people in original units, shape (n,)."""
        return np.asarray(X[:, self.indicator] > 0.5)


def fill_columns(schema: Schema) -> list[FillColumns]:
    """Return the features whose cells may be missing."""
    places: dict[str, list[int]] = {}
    for j, column in enumerate(schema.model_features()):
        places.setdefault(column.source, []).append(j)
    return [
        FillColumns(f, f.missing, tuple(places[f.name][:-1]), places[f.name][-1])
        for f in schema.features
        if f.missing is not None
    ]


def until_supplied(schema: Schema, fill: Floats | None) -> list[tuple[int, int, float]]:
    """Return what is assumed of cells that people can supply: indicator, column and its value.

    Whoever's indicator is 1 stays at the value; whoever supplies the cell moves on from it. Of
    categories one column says it all; own levels and what nobody can change need no saying.
    """
    found: list[tuple[int, int, float]] = []
    if fill is None:
        return found
    for each in fill_columns(schema):
        feature = each.feature
        if feature.suppliable and not feature.own_level and feature.change != "immutable":
            place = each.columns[int(np.argmax(fill[list(each.columns)]))]
            found.append((each.indicator, place, float(fill[place])))
    return found


def filled_in(X: Floats, fill: Floats | None) -> Floats:
    """Return a design matrix without gaps."""
    return X if fill is None else np.where(np.isnan(X), fill, X)


def never_missing(schema: Schema, fill: Floats | None) -> Mask:
    """Return which columns are indicators of cells that no training row lacked, shape (d,)."""
    never = np.zeros(len(schema.feature_names), dtype=np.bool_)
    if fill is not None:
        indicators = [each.indicator for each in fill_columns(schema)]
        never[indicators] = fill[indicators] == 0.0
    return never


def fitted_fill(schema: Schema, parts: Iterable[Floats]) -> Floats | None:
    """Return the fill of every model column, shape (d,); None if the schema needs none.

    Parameters
    ----------
    schema
        Says what stands in for a missing cell.
    parts
        The design matrix of the training rows in parts, gone through several times. A median is
        the lower one, a value that occurs; of two modes the first category is taken.
    """
    found = fill_columns(schema)
    if not found:
        return None
    lacking, n_rows = np.zeros(len(found), dtype=np.intp), 0
    levels = [np.zeros(0, dtype=np.intp)] * len(found)
    for X in parts:
        n_rows += len(X)
        lacking += np.isnan(X[:, [each.indicator for each in found]]).sum(axis=0)
        new = [each.levels(X) for each in found]
        levels = [b if not len(a) else a + b for a, b in zip(levels, new, strict=True)]
    empty = [e.feature.name for e, gone in zip(found, lacking, strict=True) if gone == n_rows]
    if n_rows and empty:
        listed = shown(map(repr, empty))
        raise DataError(f"column {listed} has no value in any training row; ignore it")
    numbers = ("numeric", "integer")
    asked = [
        e.columns[0] for e in found if e.policy.policy == "median" and e.feature.kind in numbers
    ]
    medians = dict(zip(asked, lower_medians(parts, asked), strict=True))
    fill = np.full(len(schema.feature_names), np.nan)
    for each, gone, counts in zip(found, lacking.tolist(), levels, strict=True):
        fill[each.indicator] = float(gone > 0)
        median = medians.get(each.columns[0], np.nan)
        fill[list(each.columns)] = each.stand_in(counts, gone, median)
    return fill


def lower_medians(parts: Iterable[Floats], columns: Sequence[int]) -> list[float]:
    """Return the lower median of columns that have values, NaN left out: in little memory."""
    # Floats order as their bits do, once those of negative ones are turned over. Each pass settles
    # the next bits of every median by counting the values that agree with it so far.
    prefix, rank = np.zeros(len(columns), dtype=np.uint64), np.full(len(columns), -1)
    for shift in range(64 - BITS, -1, -BITS):
        counts = np.zeros((len(columns), 1 << BITS), dtype=np.int64)
        for X in parts if len(columns) else ():
            for k, column in enumerate(columns):
                keys = _ordered_bits(X[:, column])
                if shift + BITS < 64:
                    keys = keys[keys >> np.uint64(shift + BITS) == prefix[k]]
                digits = (keys >> np.uint64(shift)) & np.uint64((1 << BITS) - 1)
                counts[k] += np.bincount(digits.astype(np.intp), minlength=1 << BITS)
        for k in range(len(columns)):
            if rank[k] < 0:
                rank[k] = (counts[k].sum() - 1) // 2
            digit = int(np.searchsorted(np.cumsum(counts[k]), rank[k], side="right"))
            rank[k] -= counts[k, :digit].sum()
            prefix[k] = (prefix[k] << np.uint64(BITS)) | np.uint64(digit)
    return [_from_bits(bits) for bits in prefix]


_SIGN = np.uint64(1 << 63)


def _ordered_bits(values: Floats) -> NDArray[np.uint64]:
    """Return numbers whose order is that of the values, NaN left out."""
    bits = np.ascontiguousarray(values[~np.isnan(values)] + 0.0).view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _from_bits(bits: np.uint64) -> float:
    original = bits ^ _SIGN if bits & _SIGN else ~bits
    return float(np.array(original, dtype=np.uint64).view(np.float64))
