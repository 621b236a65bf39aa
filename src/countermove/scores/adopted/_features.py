"""What a model's own columns are made of: a number after steps, a category's code, or a mix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from countermove._types import Floats
from countermove.scores._links import double_of, ordinal_of

Step = Callable[[Floats], Floats]


@dataclass(frozen=True)
class NumberFeature:
    """A column of people's after steps that never change the order of values, or turn it round."""

    column: int
    steps: tuple[Step, ...] = ()
    rising: bool = True
    factor: float = 1.0  # the same as factor · x + shift
    shift: float = 0.0

    def then(self, step: Step, factor: float, shift: float) -> NumberFeature:
        """Return the feature after ``factor · x + shift``, computed as ``step`` does."""
        return replace(
            self,
            steps=(*self.steps, step),
            rising=self.rising == (factor > 0.0),
            factor=self.factor * factor,
            shift=self.shift * factor + shift,
        )

    def of(self, x: Floats) -> Floats:
        """Return the feature of values of the column."""
        for step in self.steps:
            x = step(x)
        return x

    def affine(self, n_columns: int) -> tuple[Floats, float]:
        """Return slope and constant of the feature over the matrix' columns."""
        slope = np.zeros(n_columns)
        slope[self.column] = self.factor
        return slope, self.shift

    def largest(self, split: float) -> float:
        """Return the largest value of the column on the near side of a split of the feature.

        Near is at most the split where the feature rises with the column, beyond it where it
        falls.
        """
        if not self.steps:
            return split
        first, last = ordinal_of(-1e300), ordinal_of(1e300)
        if not self._near(double_of(first), split):
            return -np.inf
        if self._near(double_of(last), split):
            return np.inf
        while last - first > 1:
            middle = (first + last) // 2
            if self._near(double_of(middle), split):
                first = middle
            else:
                last = middle
        return double_of(first)

    def _near(self, x: float, split: float) -> bool:
        at_most = bool(self.of(np.array([x]))[0] <= split)
        return at_most == self.rising


@dataclass(frozen=True)
class CodeFeature:
    """A number for each category of a column, which people hold as one-hot columns."""

    columns: tuple[int, ...]
    values: Floats  # one per category
    otherwise: Floats  # (1,) of a category the encoder does not know

    def then(self, step: Step, factor: float, shift: float) -> CodeFeature:
        """Return the feature after a step."""
        return replace(self, values=step(self.values), otherwise=step(self.otherwise))

    def affine(self, n_columns: int) -> tuple[Floats, float]:
        """Return slope and constant of the feature over the matrix' columns."""
        rest = float(self.otherwise[0]) if np.isfinite(self.otherwise[0]) else 0.0
        slope = np.zeros(n_columns)
        slope[list(self.columns)] = self.values - rest
        return slope, rest


@dataclass(frozen=True)
class MixedFeature:
    """A sum over several columns, as principal components are."""

    slope: Floats  # (n_columns,)
    shift: float

    def affine(self, n_columns: int) -> tuple[Floats, float]:
        """Return slope and constant of the feature over the matrix' columns."""
        return self.slope, self.shift


Feature: TypeAlias = NumberFeature | CodeFeature | MixedFeature
