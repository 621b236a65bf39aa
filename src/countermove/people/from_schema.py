"""From a schema's columns to the actions people have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from countermove.errors import ParameterError
from countermove.people.actions import ActionSet

if TYPE_CHECKING:
    from countermove.data.schema import Schema
    from countermove.data.standardise import Standardiser


def actions_of(schema: Schema, standardiser: Standardiser) -> ActionSet:
    """Return the action set of a schema's model columns, in standardised units.

    A feature with a step (that of whole numbers and categories is 1) moves by whole
    steps from where the person stands. Bounds hold for features that may change
    only: a value outside them on an immutable column is the data's business, not
    the person's.

    Parameters
    ----------
    schema
        What may change, in which direction, between which values, in what steps.
    standardiser
        The units the score works in.
    """
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
        if column.group is not None and free[j]:
            groups.setdefault(column.group, []).append(j)
    steps = {j: c.step for j, c in enumerate(columns) if c.step is not None and free[j]}
    original = ActionSet(
        min_value=np.array([c.min if f else -np.inf for c, f in zip(columns, free, strict=True)]),
        max_value=np.array([c.max if f else np.inf for c, f in zip(columns, free, strict=True)]),
        only_increase=[j for j, column in enumerate(columns) if column.change == "up"],
        only_decrease=[j for j, column in enumerate(columns) if column.change == "down"],
        immutable=[j for j in range(len(columns)) if not free[j]],
        integer=steps,
        groups=list(groups.values()),
        steps=steps,
    )
    return original.rescaled(standardiser.scale, standardiser.mean)
