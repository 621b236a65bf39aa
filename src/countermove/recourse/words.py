"""Advice as people read it: original units, one sentence each, one row each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove.data.schema import ROW_ID, Feature, ModelFeature, Schema
from countermove.data.standardise import Standardiser
from countermove.errors import DataError
from countermove.recourse.advice import FOUND, NOT_FOUND, NOT_NEEDED, PROVEN_NONE, Advice

Floats = NDArray[np.float64]

CHANGE = "change:"
"""Prefix of the columns that hold a feature's change in original units."""
NOTHING = 1e-9
"""A change below this, in standardised units, is rounding."""
PLAIN = {
    NOT_NEEDED: "Approved: nothing to do.",
    PROVEN_NONE: "No allowed change leads to approval.",
    NOT_FOUND: "No change that leads to approval was found, which does not prove there is none.",
}


def sentences(advice: Advice, X: Floats, schema: Schema, standardiser: Standardiser) -> list[str]:
    """Return one sentence per person, in original units.

    Parameters
    ----------
    advice
        What `recommend` returned for these people.
    X
        The people, shape (n, d), standardised units.
    schema
        What the columns mean.
    standardiser
        The units of ``X``.
    """
    columns = schema.model_features()
    before = standardiser.inverse(X)
    action = standardiser.action_to_original(np.nan_to_num(advice.action))
    total = advice.action if advice.effect is None else advice.effect
    follows = standardiser.action_to_original(np.nan_to_num(total)) - action
    words = [PLAIN.get(status, "") for status in advice.status.tolist()]
    for i in np.flatnonzero(advice.status == FOUND).tolist():
        steps = _steps(columns, schema, before[i], action[i], standardiser.scale)
        text = "; ".join(steps) if steps else "stay as you are"
        moved = np.flatnonzero(np.abs(follows[i]) > NOTHING * standardiser.scale)
        if moved.size:
            end = before[i] + action[i] + follows[i]
            brought = [
                f"{columns[j].name} {before[i, j]:.4g} → {end[j]:.4g}" for j in moved.tolist()
            ]
            text += f" (with what follows: {', '.join(brought)})"
        words[i] = f"{text[0].upper()}{text[1:]}."
    return words


def advice_table(
    advice: Advice,
    X: Floats,
    schema: Schema,
    standardiser: Standardiser,
    ids: Sequence[str] | NDArray[np.str_] | None = None,
) -> pd.DataFrame:
    """Return one row per person, ready for parquet or CSV.

    Columns: ``row_id``, ``decision`` (+1 or -1, as they stand), ``probability``,
    ``status``, ``probability_after``, ``cost``, one ``change:<column>`` in original
    units for every column the schema lets people change (missing where no action
    is known), and ``words``.

    Parameters
    ----------
    advice, X, schema, standardiser
        As in `sentences`.
    ids
        Row ids, shape (n,); ``r0, r1, …`` by default.
    """
    names = [f"r{i}" for i in range(len(X))] if ids is None else [str(name) for name in ids]
    if len(names) != len(advice.status):
        raise DataError(f"{len(names)} ids for the advice of {len(advice.status)} people")
    action = standardiser.action_to_original(advice.action)
    changes = {
        f"{CHANGE}{column.name}": _whole(action[:, j], column)
        for j, column in enumerate(schema.model_features())
        if column.change != "immutable"
    }
    return pd.DataFrame(
        {
            ROW_ID: names,
            "decision": np.where(advice.status == NOT_NEEDED, 1, -1),
            "probability": advice.probability_before,
            "status": advice.status.astype(object),
            "probability_after": advice.probability_after,
            "cost": advice.cost,
            **changes,
            "words": sentences(advice, X, schema, standardiser),
        }
    )


def _whole(values: Floats, column: ModelFeature) -> Floats:
    """Return whole changes without the dust of the standardisation."""
    if column.kind == "numeric":
        return values
    rounded: Floats = np.where(np.abs(values - np.round(values)) < 1e-6, np.round(values), values)
    return rounded + 0.0


def _steps(
    columns: Sequence[ModelFeature],
    schema: Schema,
    before: Floats,
    action: Floats,
    scale: Floats,
) -> list[str]:
    """Return what one person does, feature by feature."""
    steps = []
    for j in np.flatnonzero(np.abs(action) > NOTHING * scale).tolist():
        column = columns[j]
        if column.group is not None:
            if action[j] > 0.0:
                left = next(
                    k for k, c in enumerate(columns) if c.group == column.group and action[k] < 0
                )
                steps.append(
                    f"switch {column.group} from {_category(columns[left])} to {_category(column)}"
                )
            continue
        feature = schema.feature(column.source)
        verb = "raise" if action[j] > 0.0 else "lower"
        start, end = _value(feature, before[j]), _value(feature, before[j] + action[j])
        unit = f" {feature.unit}" if feature.unit and not feature.categories else ""
        steps.append(f"{verb} {column.name} from {start} to {end}{unit}")
    return steps


def _category(column: ModelFeature) -> str:
    return f"“{column.name.removeprefix(f'{column.group}=')}”"


def _value(feature: Feature, value: float) -> str:
    if feature.categories and abs(value - round(value)) < 1e-6:
        return f"“{feature.categories[round(value)]}”"
    return _number(value)


def _number(value: float) -> str:
    """Spell a number: whole ones plainly, others with six significant digits.

    >>> _number(41.99999999999), _number(1234567.0), _number(0.123456789)
    ('42', '1234567', '0.123457')
    """
    return str(round(value)) if abs(value - round(value)) < 1e-6 else f"{value:.6g}"
