"""String kernels: everybody's phrase at once, each distinct value spelled once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from countermove._types import Floats, Mask
from countermove.data.schema import Feature
from countermove.recourse._phrases import Phrases

if TYPE_CHECKING:
    import pyarrow as pa

DIGITS = 6
"""Digits shown of a number that is not whole; larger numbers are shown without a fraction."""
WHOLE = 1e-6
"""A value this near a whole number is one."""
_PLACE = re.compile(r"\{(\w+)\}")


def joined(*parts: pa.Array | str) -> pa.Array:
    """Return texts joined person by person; nothing where a part is missing."""
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(*parts, "")


def listed(parts: list[pa.Array], between: str) -> pa.Array:
    """Return the texts that each person has, with something between them."""
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(*parts, between, null_handling="skip")


def filled(template: str, fields: Mapping[str, pa.Array | str]) -> pa.Array:
    """Return a template with its places filled in, person by person."""
    pieces = _PLACE.split(template)
    parts = [fields[piece] if k % 2 else piece for k, piece in enumerate(pieces)]
    return joined(*(part for part in parts if not isinstance(part, str) or part))


def spread(phrases: pa.Array, who: Mask) -> pa.Array:
    """Return phrases at the places of the people they belong to, null elsewhere."""
    import pyarrow as pa

    return phrases.take(pa.array(np.cumsum(who) - 1, mask=~who))


def chosen(phrases: list[str], which: Floats | Mask) -> pa.Array:
    """Return one of a few texts per person."""
    import pyarrow as pa

    return pa.array(phrases, pa.string()).take(pa.array(np.asarray(which, np.int32)))


def capitalised(text: pa.Array) -> pa.Array:
    """Return sentences that begin with a capital."""
    import pyarrow.compute as pc

    first = pc.utf8_upper(pc.utf8_slice_codeunits(text, 0, 1))
    return joined(first, pc.utf8_slice_codeunits(text, 1))


def spelled(feature: Feature, values: Floats, phrases: Phrases, *, unit: bool) -> pa.Array:
    """Return values as people read them; each distinct one is spelled once."""
    import pyarrow as pa

    distinct, place = np.unique(whole(values), return_inverse=True)
    words = [value_words(feature, value, phrases, unit=unit) for value in distinct.tolist()]
    return pa.array(words, pa.string()).take(pa.array(place))


def whole(values: Floats) -> Floats:
    """Return values without the rounding error of the standardisation where they are whole."""
    rounded = np.round(values)
    with np.errstate(invalid="ignore"):  # where nothing ends a region
        return np.where(np.abs(values - rounded) < WHOLE, rounded, values) + 0.0


def outward(values: Floats, sign: float, digits: int | None = None) -> Floats:
    """Return values rounded upwards (downwards for -1) to the digits shown, or to fewer."""
    found = whole(values)
    size = np.where((found == 0.0) | ~np.isfinite(found), 1.0, np.abs(found))
    power = np.floor(np.log10(size)) - ((DIGITS if digits is None else digits) - 1)
    unit = 10.0 ** (np.minimum(power, 0.0) if digits is None else power)
    steps = sign * np.ceil(sign * found / unit - WHOLE)
    return np.where((found == np.round(found)) & (digits is None), found, steps * unit)


def value_words(feature: Feature, value: float, phrases: Phrases, *, unit: bool = False) -> str:
    """Return one value as people read it."""
    if feature.categories and abs(value - round(value)) < WHOLE:
        return phrases["category"].replace("{value}", feature.categories[round(value)])
    # Whole numbers plainly, others with six significant digits, large ones without a fraction.
    plain = abs(value - round(value)) < WHOLE or abs(value) >= 1e6
    text = str(round(value)) if plain else f"{value:.{DIGITS}g}"
    return phrases.number(text) + (phrases.unit(feature.unit, value) if unit else "")
