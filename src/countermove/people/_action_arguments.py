"""The arguments of an action set, checked: bounds, positions, step sizes, constraints, schemas."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from countermove._types import Floats
from countermove.data.missing import fill_columns
from countermove.errors import InfeasibleActionsError, ParameterError, nearest, shown

if TYPE_CHECKING:
    from countermove.data.schema import Schema
    from countermove.data.standardise import Standardiser


def bound(value: ArrayLike | None, name: str) -> Floats | None:
    """Return a bound as an array of shape (d,) or (n, d)."""
    if value is None:
        return None
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"{name} holds numbers, shape (d,) or (n, d); got {value!r}"
        ) from error
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


def positions(values: Iterable[int | str], name: str) -> tuple[Any, ...]:
    """Return distinct feature positions, sorted; names come behind them, to be looked up."""
    listed = None if isinstance(values, str) or not isinstance(values, Iterable) else list(values)
    if listed is None or not all(map(_may_name_a_feature, listed)):
        raise ParameterError(
            f"{name} lists features by position, counted from 0, or by name, for example [0, 2] "
            f"or ['age']; got {values!r}"
        )
    named = dict.fromkeys(each for each in listed if isinstance(each, str))
    return (*sorted({int(each) for each in listed if not isinstance(each, str)}), *named)


def _may_name_a_feature(value: Any) -> bool:
    position = isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 0
    return bool(position) or isinstance(value, str)


def places_of(named: Iterable[Any], columns: Sequence[str], name: str) -> tuple[int, ...]:
    """Return positions with every name looked up among the columns of a table."""
    listed = list(named)
    for each in listed:
        if isinstance(each, str) and each not in columns:
            hint = nearest(each, columns) if columns else "the rows have no column names"
            raise ParameterError(f"{name} names the column {each!r}, which is none: {hint}")
    return positions(
        [columns.index(each) if isinstance(each, str) else each for each in listed], name
    )


def step_sizes(
    steps: Mapping[int | str, float] | None, integer: tuple[Any, ...]
) -> tuple[tuple[Any, float], ...]:
    """Return the pairs of position (or name) and step size that differ from one."""
    sizes: dict[Any, float] = {}
    for j, size in (steps or {}).items():
        # What `describe` leaves of a position in JSON is text.
        sizes[int(j) if isinstance(j, str) and j.isdigit() else j] = float(size)
    strange = [j for j in sizes if j not in integer]
    if strange:
        raise ParameterError(f"steps names feature {shown(strange)}, absent from integer")
    wrong = [f"{j}: {size}" for j, size in sizes.items() if not 0.0 < size < math.inf]
    if wrong:
        raise ParameterError(f"steps must be positive and finite, got {shown(wrong)}")
    return tuple((j, size) for j, size in sorted(sizes.items(), key=str) if size != 1.0)


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


def filled(value: Floats | None, fill: float, n_rows: int, n_features: int, name: str) -> Floats:
    """Return a bound of shape (1, d) or (n, d), ``fill`` where none was given."""
    if value is None:
        return np.full((1, n_features), fill)
    if value.ndim == 2 and value.shape[0] not in (1, n_rows):
        raise ParameterError(
            f"{name} holds bounds of {value.shape[0]} people but {n_rows} were given; "
            "take the same rows of both (ActionSet.of_rows), or give it shape (d,)"
        )
    return np.ascontiguousarray(np.atleast_2d(value))


def check_order(low: Floats | None, high: Floats | None, *names: str) -> None:
    """Refuse a lower bound above its upper bound."""
    if low is None or high is None:
        return
    wrong = np.atleast_2d(low > high)
    if wrong.any():
        persons = np.flatnonzero(wrong.any(axis=1)) if len(wrong) > 1 else np.arange(0)
        who = f"people {shown(persons)}" if len(persons) else "everybody"
        features = shown(np.flatnonzero(wrong.any(axis=0)))
        raise InfeasibleActionsError(
            f"{names[0]} exceeds {names[1]} in feature {features} for {who}: no action is left",
            rows=persons,
        )


def schema_arguments(schema: Schema, standardiser: Standardiser) -> dict[str, Any]:
    """Return the arguments of the action set of a schema's model columns, in original units."""
    # A feature with a step (1 for whole numbers and categories) moves by whole steps from where
    # the person stands. Bounds hold for features that may change only: a value outside them on an
    # immutable column is the data's business, not the person's.
    columns = schema.model_features()
    names = [column.name for column in columns]
    if list(standardiser.names) != names:
        raise ParameterError(
            "the standardiser was fitted on other columns than the schema describes: "
            f"expected {names}, got {list(standardiser.names)}"
        )
    free = [column.change != "immutable" for column in columns]
    groups: dict[str, list[int]] = {}
    for j, column in enumerate(columns):
        if column.group is not None and (free[j] or column.group in groups):
            groups.setdefault(column.group, []).append(j)
    steps = {j: c.step for j, c in enumerate(columns) if c.step is not None and free[j]}
    bounds = [
        (c.min, c.max) if f else (-np.inf, np.inf) for c, f in zip(columns, free, strict=True)
    ]
    return {
        "min_value": np.array([low for low, _ in bounds]),
        "max_value": np.array([high for _, high in bounds]),
        "only_increase": [j for j, column in enumerate(columns) if column.change == "up"],
        "only_decrease": [j for j, column in enumerate(columns) if column.change == "down"],
        "immutable": [j for j in range(len(columns)) if not free[j]],
        "integer": steps,
        "groups": list(groups.values()),
        "steps": steps,
        "missing": [
            (each.indicator, 0.5, (*each.columns, each.indicator))
            for each in fill_columns(schema)
            if not each.feature.suppliable
        ],
        "supply": {
            each.indicator: each.policy.price
            for each in fill_columns(schema)
            if each.feature.suppliable
        },
    }


def supply_prices(
    supply: Mapping[int, float] | None, only_decrease: tuple[int, ...]
) -> dict[int, float]:
    """Return what supplying a cell costs, by the position of its indicator, checked."""
    prices = {int(j): float(price) for j, price in (supply or {}).items()}
    strange = sorted(set(prices) - set(only_decrease))
    if strange:
        raise ParameterError(
            f"supply names feature {shown(strange)}, absent from only_decrease: whoever supplies "
            "a cell takes its indicator from 1 to 0, and nobody the other way"
        )
    wrong = [f"{j}: {price}" for j, price in prices.items() if not 0.0 < price < math.inf]
    if wrong:
        raise ParameterError(f"what supplying costs is positive and finite, got {shown(wrong)}")
    return prices


Unknown = tuple[int, float, tuple[int, ...]]
"""An indicator column, the value above which it is on, and the columns that are then unknown."""


def unknown_cells(missing: Iterable[tuple[int, float, Iterable[int]]]) -> tuple[Unknown, ...]:
    """Return the indicators of missing cells, checked."""
    found = []
    for indicator, above, columns in missing:
        (place,) = positions([indicator], "missing")
        found.append((place, float(above), positions(columns, "missing")))
    return tuple(found)
