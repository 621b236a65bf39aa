"""Reading the arguments of an action set: bounds, positions, step sizes, linear constraints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from countermove._types import Floats
from countermove.errors import ParameterError, shown


def bound(value: ArrayLike | None, name: str) -> Floats | None:
    """Return a bound as an array of shape (d,) or (n, d)."""
    if value is None:
        return None
    array = np.array(value, dtype=np.float64)
    if array.ndim not in (1, 2):
        raise ParameterError(f"{name} has shape (d,) or (n, d), got {array.shape}")
    if np.isnan(array).any():
        raise ParameterError(f"{name} holds NaN; use an infinite value where there is no bound")
    return array


def check_shapes(**arrays: Floats | None) -> None:
    """Refuse bounds and constraints that speak of different people or features."""
    given = [(name, array) for name, array in arrays.items() if array is not None]
    for (first, one), (second, other) in combinations(given, 2):
        if one.shape[-1] != other.shape[-1]:
            raise ParameterError(
                f"{first} has shape {one.shape} and {second} has shape {other.shape}: the last "
                "number is the number of features, and has to be the same"
            )
        people = {len(array) for array in (one, other) if array.ndim == 2} - {1}
        if len(people) > 1 and "A" not in (first, second):
            raise ParameterError(
                f"{first} has shape {one.shape} and {second} has shape {other.shape}: both are "
                "per person, so the number of people has to be the same; give one bound for "
                "everybody as shape (d,)"
            )


def positions(values: Iterable[int], name: str) -> tuple[int, ...]:
    """Return distinct feature positions, sorted."""
    sorted_values = tuple(sorted({int(value) for value in values}))
    if sorted_values and sorted_values[0] < 0:
        raise ParameterError(f"{name} holds positions counted from 0, got {sorted_values[0]}")
    return sorted_values


def step_sizes(
    steps: Mapping[int, float] | None, integer: tuple[int, ...]
) -> tuple[tuple[int, float], ...]:
    """Return the pairs of position and step size that differ from one."""
    sizes = {int(j): float(size) for j, size in (steps or {}).items()}
    strange = sorted(set(sizes) - set(integer))
    if strange:
        raise ParameterError(f"steps names feature {shown(strange)}, absent from integer")
    wrong = [f"{j}: {size}" for j, size in sizes.items() if not 0.0 < size < math.inf]
    if wrong:
        raise ParameterError(f"steps must be positive and finite, got {shown(wrong)}")
    return tuple(sorted((j, size) for j, size in sizes.items() if size != 1.0))


def constraints(A: ArrayLike | None, b: ArrayLike | None) -> tuple[Floats | None, Floats | None]:
    """Return the matrix and offset of linear constraints; an offset left out is zero."""
    if A is None:
        if b is not None:
            raise ParameterError("b was given without A; constraints read A δ + b ≥ 0")
        return None, None
    matrix = np.array(A, dtype=np.float64)
    if matrix.ndim != 2:
        raise ParameterError(f"A has shape (constraints, features), got {matrix.shape}")
    offset = np.zeros(len(matrix)) if b is None else np.array(b, dtype=np.float64)
    if offset.ndim not in (1, 2) or offset.shape[-1] != len(matrix):
        raise ParameterError(
            f"b has shape ({len(matrix)},) or (n, {len(matrix)}) to fit A, got {offset.shape}"
        )
    if not (np.isfinite(matrix).all() and np.isfinite(offset).all()):
        raise ParameterError("A and b must be finite")
    return matrix, offset


def json_numbers(values: Any) -> Any:
    """Spell infinities, which JSON lacks, as text that reads back as numbers."""
    if isinstance(values, list):
        return [json_numbers(value) for value in values]
    return values if math.isfinite(values) else str(values)
