"""Reasons in words: what counts against a person, and why the advice leaves some of it alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from countermove._types import Floats, Index, Mask
from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.people import ActionSet
from countermove.recourse._phrases import Phrases
from countermove.recourse._spelling import chosen, filled, listed, spread
from countermove.recourse._steps import display_name, present_values
from countermove.recourse.reasons import Reasons
from countermove.recourse.recommend import PROVEN_NONE, Advice

if TYPE_CHECKING:
    import pyarrow as pa

ROOM = 1e-9
"""Less room than this, in standardised units, is none."""
WHYS = (
    "reason", "cannot_change", "cannot_rise", "cannot_fall", "not_enough", "others_cheaper",
    "not_needed",
)  # fmt: skip
"""Keys of the template: plain for what the advice changes, else why it does not."""


def reason_array(
    reasons: Reasons,
    advice: Advice,
    X: Floats,
    schema: Schema,
    standardiser: Standardiser,
    allowed: ActionSet,
    mean: Floats,
    phrases: Phrases,
) -> pa.Array:
    """Return the reasons of each person as a sentence, null for those who have none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    n, before = len(X), standardiser.inverse(X)
    low, high = allowed.box(X)
    movable = allowed.movable_among(X.shape[1])
    unknown = allowed.unknown(X)
    indicators = {j for j, column in enumerate(schema.model_features()) if column.indicator}
    place = np.full(reasons.order.shape, -1, np.int64)
    said, count = [pa.array([], pa.string())], 0
    for k, name in enumerate(reasons.columns):
        holds = reasons.order == k
        who = np.flatnonzero(holds.any(axis=1))
        if not who.size:
            continue
        own = [j for j in reasons.places[k] if j not in indicators]
        toward = np.sign(mean[own[0]] - X[who, own[0]]) if len(own) == 1 else np.zeros(len(who))
        room = np.where(toward > 0.0, high[who, own[0]], -low[who, own[0]])
        why = _why(advice, who, own, bool(movable[own].any()), toward, room)
        phrase = _phrase(schema, before[who], name, why, phrases)
        if unknown is not None and unknown[who, own[0]].any():
            absent = phrases["reason_missing"].replace("{name}", _shown_name(schema, name, phrases))
            phrase = pc.if_else(pa.array(unknown[who, own[0]]), absent, phrase)
        said.append(phrase)
        numbers = np.full(n, -1)
        numbers[who] = count + np.arange(len(who))
        place = np.where(holds, numbers[:, None], place)
        count += len(who)
    phrase = pa.concat_arrays(said)
    some: Mask = np.asarray((place >= 0).any(axis=1))  # Arrow's join leaves out a row of nulls
    ranks = [phrase.take(pa.array(rank, mask=rank < 0)) for rank in place[some].T]
    return spread(filled(phrases["reasons"], {"reasons": listed(ranks, phrases["between"])}), some)


def _phrase(schema: Schema, before: Floats, name: str, why: Floats, phrases: Phrases) -> pa.Array:
    """Return what counts against people: name, value and why it stays, if it does."""
    import pyarrow.compute as pc

    value = present_values(schema, before, name, phrases)
    fields = {"name": _shown_name(schema, name, phrases), "value": value}
    plain = filled(phrases["reason"], fields)
    stays = chosen([phrases[key] for key in WHYS], why)
    left = filled(phrases["reason_not_moved"], {**fields, "why": stays})
    return pc.if_else(why == 0.0, plain, left)


def _shown_name(schema: Schema, name: str, phrases: Phrases) -> str:
    own = [feature for feature in schema.features if feature.name == name]
    return (display_name(own[0], phrases) if own else "") or name


def _why(
    advice: Advice, who: Index, own: list[int], movable: bool, toward: Floats, room: Floats
) -> Floats:
    """Return why a reason is not in the advice, a position in ``WHYS``; 0 where it is."""
    status, action = advice.status[who], advice.action[who][:, own]
    given: Mask = np.asarray(np.isfinite(action).all(axis=1))
    moved = given & (action != 0.0).any(axis=1)
    stuck = (toward != 0.0) & (room <= ROOM)
    conditions = [
        moved,
        np.full(len(who), not movable),
        stuck & (toward > 0.0),
        stuck,
        status == PROVEN_NONE,
        given & advice.proven_cheapest[who],
        given,
    ]
    return np.select(conditions, [0, 1, 2, 3, 4, 5, 6], 0).astype(np.float64)
