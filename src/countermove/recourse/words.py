"""Advice as people read it: original units, one sentence each, one row each.

Everybody's phrase about a feature is put together by string kernels, each distinct value
spelled once, so the words of a million people cost little more than the advice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.data.schema import ROW_ID, Feature, ModelFeature, Schema
from countermove.data.standardise import Standardiser
from countermove.errors import DataError
from countermove.recourse.recommend import (
    BEYOND_REACH,
    FOUND,
    NOT_FOUND,
    NOT_NEEDED,
    PROVEN_NONE,
    STATUSES,
    Advice,
)

if TYPE_CHECKING:
    import pyarrow as pa


NOTHING = 1e-9
"""A change below this, in standardised units, is rounding."""
WHOLE = 1e-6
"""A value this near a whole number is one."""
STAY = "stay as you are"
EXPENSIVE = "Approval would cost more than it is worth. The cheapest change found: "
UNCERTAIN = " The rule is not sure of this: it rests on a weight that may as well be zero."
PLAIN = {
    NOT_NEEDED: "Approved: nothing to do.",
    PROVEN_NONE: "No allowed change leads to approval.",
    NOT_FOUND: "No change that leads to approval was found, which does not prove there is none.",
}


def sentence_array(
    advice: Advice, X: Floats, schema: Schema, standardiser: Standardiser
) -> pa.Array:
    """Return one sentence per person, in original units, as an Arrow array of text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    beyond = advice.status == BEYOND_REACH
    found = beyond | (advice.status == FOUND)
    before = standardiser.inverse(X[found])
    action = standardiser.action_to_original(advice.action[found])
    steps = _steps(schema, before, action, standardiser.scale)
    text = pc.binary_join_element_wise(*steps, "; ", null_handling="skip")
    if advice.effect is not None:
        whole = standardiser.action_to_original(advice.effect[found])
        text = _joined(text, _following(schema, before, action, whole, standardiser.scale))
    first = pc.utf8_upper(pc.utf8_slice_codeunits(text, 0, 1))
    start = pa.array(["", EXPENSIVE]).take(pa.array(beyond[found].astype(np.int8)))
    doubt = pa.array(["", UNCERTAIN]).take(pa.array(advice.uncertain_weight[found].astype(np.int8)))
    spelled = _joined(start, first, pc.utf8_slice_codeunits(text, 1), ".", doubt)
    known = [PLAIN.get(status, "") for status in STATUSES]
    place = np.select([advice.status == status for status in STATUSES], range(len(STATUSES)))
    place[found] = len(known) + np.arange(len(spelled))
    return pa.concat_arrays([pa.array(known, pa.string()), spelled]).take(pa.array(place))


def _steps(schema: Schema, before: Floats, action: Floats, scale: Floats) -> list[pa.Array]:
    """Return what people do about each model column, null for those who do nothing about it."""
    import pyarrow as pa

    columns = schema.model_features()
    moves = np.abs(action) > NOTHING * scale
    # Whoever does nothing has a phrase too: Arrow's join leaves out a row of nulls.
    still: Mask = np.asarray(~moves.any(axis=1))
    steps = [_spread(pa.array([STAY] * int(still.sum()), pa.string()), still)]
    for j, column in enumerate(columns):
        moved = moves[:, j].copy()
        if column.group is not None:
            moved &= action[:, j] > 0.0
        if not moved.any():
            continue
        if column.group is not None:
            phrases = _switched(columns, j, action[moved])
        else:
            feature = schema.feature(column.source)
            phrases = _moved(feature, column.name, before[moved, j], action[moved, j])
        steps.append(_spread(phrases, moved))
    return steps


def _moved(feature: Feature, name: str, before: Floats, action: Floats) -> pa.Array:
    """Return the phrases of people who raise or lower a feature."""
    import pyarrow as pa

    verbs = pa.array([f"lower {name} from ", f"raise {name} from "])
    verb = verbs.take(pa.array((action > 0.0).astype(np.int8)))
    unit = f" {feature.unit}" if feature.unit and not feature.categories else ""
    start, end = _spelled(feature, before), _spelled(feature, before + action)
    return _joined(verb, start, " to ", end, unit)


def _switched(columns: Sequence[ModelFeature], j: int, action: Floats) -> pa.Array:
    """Return the phrases of people who switch to category ``j`` of its group."""
    import pyarrow as pa

    group = columns[j].group
    others = [k for k, column in enumerate(columns) if column.group == group]
    left = (action[:, others] < 0.0).argmax(axis=1)
    phrases = [
        f"switch {group} from {_category(columns[k])} to {_category(columns[j])}" for k in others
    ]
    return pa.array(phrases).take(pa.array(left))


def _following(
    schema: Schema, before: Floats, action: Floats, whole: Floats, scale: Floats
) -> pa.Array:
    """Return what else comes about, by the consequences of an action; empty for most."""
    import pyarrow as pa

    columns = schema.model_features()
    phrases = [""] * len(before)
    follows = whole - action
    for i, moved in enumerate(np.abs(follows) > NOTHING * scale):
        if moved.any():
            end = before[i] + action[i] + follows[i]
            brought = ", ".join(
                f"{columns[j].name} {before[i, j]:.4g} → {end[j]:.4g}"
                for j in np.flatnonzero(moved).tolist()
            )
            phrases[i] = f" (with what follows: {brought})"
    return pa.array(phrases, pa.string())


def _spelled(feature: Feature, values: Floats) -> pa.Array:
    """Return values as people read them; each distinct one is spelled once."""
    import pyarrow as pa

    rounded = np.round(values)
    distinct, place = np.unique(
        np.where(np.abs(values - rounded) < WHOLE, rounded, values), return_inverse=True
    )
    return pa.array([_value(feature, value) for value in distinct.tolist()]).take(pa.array(place))


def _spread(phrases: pa.Array, who: Mask) -> pa.Array:
    """Return phrases at the places of the people they belong to, null elsewhere."""
    import pyarrow as pa

    return phrases.take(pa.array(np.cumsum(who) - 1, mask=~who))


def _joined(*parts: pa.Array | str) -> pa.Array:
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(*parts, "")


def _category(column: ModelFeature) -> str:
    return f"“{column.name.removeprefix(f'{column.group}=')}”"


def _value(feature: Feature, value: float) -> str:
    if feature.categories and abs(value - round(value)) < WHOLE:
        return f"“{feature.categories[round(value)]}”"
    return _number(value)


def _number(value: float) -> str:
    """Spell a number: whole ones plainly, others with six significant digits."""
    return str(round(value)) if abs(value - round(value)) < WHOLE else f"{value:.6g}"


CHANGE = "change:"
"""Prefix of the columns that hold a feature's change in original units."""


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
    words: list[str] = sentence_array(advice, X, schema, standardiser).to_pylist()
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
    ``status``, ``probability_after``, ``cost``, ``survival``, ``lasting`` and
    ``uncertain_weight`` (see `Advice`), one ``change:<column>`` in original units for every
    column the schema lets people change (missing where no action is known), and ``words``.

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
            "survival": advice.survival,
            "lasting": advice.lasting,
            "uncertain_weight": advice.uncertain_weight,
            **changes,
            "words": pd.Series(
                sentence_array(advice, X, schema, standardiser).to_pandas(), dtype="str"
            ),
        }
    )


def _whole(values: Floats, column: ModelFeature) -> Floats:
    """Return whole changes without the rounding error of the standardisation."""
    if column.kind == "numeric":
        return values
    rounded: Floats = np.where(np.abs(values - np.round(values)) < WHOLE, np.round(values), values)
    return rounded + 0.0
