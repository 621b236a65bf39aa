"""Phrases: pieces of sentences from a file, and string kernels that fill them.

Everybody's phrase is put together at once, each distinct value spelled once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from countermove._types import Floats, Mask
from countermove.data.configuration import read_yaml
from countermove.data.schema import Feature
from countermove.data.storage import canonical_digest
from countermove.errors import ParameterError, nearest

if TYPE_CHECKING:
    import pyarrow as pa


FILE = Path(__file__).with_name("phrases.yml")
"""The words of advice that come with the package."""

TABLES = {"time": "step", "units": "", "unit_of_one": ""}
"""Keys that hold a mapping, and what it must have at least."""
_ANY_PLACE = re.compile(r"\{(\w*)\}")


@dataclass(frozen=True)
class Phrases:
    """Sentence pieces by key, names of steps and units."""

    pieces: Mapping[str, str]
    time: Mapping[str, tuple[str, str]]
    units: Mapping[str, str]
    unit_of_one: Mapping[str, str]
    digest: str = field(compare=False)  # of the file's content

    def __getitem__(self, key: str) -> str:
        return self.pieces[key]

    def unit(self, unit: str, value: float) -> str:
        """Return a unit with its blank, as it follows a value."""
        if not unit or "(" in unit:  # codes with an explanation: the name has to do
            return ""
        if value == 1.0 and unit in self.unit_of_one:
            return f" {self.unit_of_one[unit]}"
        return f" {self.units.get(unit, unit)}"

    def number(self, text: str, apart: bool = True) -> str:
        """Return a number written with a point in these signs, thousands ``apart``."""
        whole, point, rest = text.partition(".")
        if apart and whole.lstrip("-").isdigit():
            whole = f"{int(whole):,}".replace(",", self["thousands"])
        return whole + (self["decimal"] + rest if point else "")

    def steps_of_time(self, step: str, count: int) -> str:
        """Return how many steps of a path are still to come."""
        one, several = self.time.get(step, self.time["step"])
        return one if count == 1 else several.replace("{count}", str(count))


@cache
def phrases_of(file: str | None = None) -> Phrases:
    """Return the phrases of a file, which has every key of the package's own with its places."""
    path = FILE if file is None else Path(file)
    if not path.is_file():
        raise ParameterError(f"there is no file {path} of phrases; copy {FILE} and rewrite it")
    model: dict[str, Any] = read_yaml(FILE)
    content: Any = read_yaml(path)
    if not isinstance(content, Mapping):
        raise ParameterError(f"{path}: expected a mapping with the keys of {FILE.name}")
    for key in content:
        if key not in model:
            raise ParameterError(f"{path}: unknown key {key!r}; {nearest(str(key), model)}")
    absent = [key for key in model if content.get(key) is None]
    if absent:
        raise ParameterError(f"{path}: missing {', '.join(absent)}; copy them from {FILE}")
    pieces = {key: _piece(path, key, content[key], model[key]) for key in model.keys() - TABLES}
    tables = {key: _table(path, key, content[key]) for key in TABLES}
    time = {step: _pair(path, step, forms) for step, forms in tables["time"].items()}
    digest = canonical_digest(dict(content))
    return Phrases(pieces, time, tables["units"], tables["unit_of_one"], digest)


def _piece(path: Path, key: str, text: object, model: str) -> str:
    if not isinstance(text, str):
        raise ParameterError(f"{path}: {key} must be text, not {text!r}")
    wanted, found = sorted(_ANY_PLACE.findall(model)), sorted(_ANY_PLACE.findall(text))
    if wanted != found:
        raise ParameterError(
            f"{path}: {key} must have the places {wanted}, each once, and has {found}: {text!r}"
        )
    return text


def _table(path: Path, key: str, entry: object) -> dict[str, Any]:
    if not isinstance(entry, Mapping):
        raise ParameterError(f"{path}: {key} must be a mapping, not {entry!r}")
    needed = TABLES[key]
    if needed and needed not in entry:
        raise ParameterError(f"{path}: {key} lacks {needed!r}, which stands for any other")
    return {str(name): value for name, value in entry.items()}


def _pair(path: Path, step: str, forms: object) -> tuple[str, str]:
    if not isinstance(forms, list) or len(forms) != 2 or "{count}" not in str(forms[1]):
        raise ParameterError(
            f"{path}: time.{step} must list the words for one and, with {{count}}, for several"
        )
    return str(forms[0]), str(forms[1])


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


def outward(values: Floats, sign: float) -> Floats:
    """Return values rounded upwards (downwards for -1) to the digits shown."""
    found = whole(values)
    size = np.where((found == 0.0) | ~np.isfinite(found), 1.0, np.abs(found))
    unit = 10.0 ** np.minimum(np.floor(np.log10(size)) - (DIGITS - 1), 0.0)
    steps = sign * np.ceil(sign * found / unit - WHOLE)
    return np.where(found == np.round(found), found, steps * unit)


def value_words(feature: Feature, value: float, phrases: Phrases, *, unit: bool = False) -> str:
    """Return one value as people read it."""
    if feature.categories and abs(value - round(value)) < WHOLE:
        return phrases["category"].replace("{value}", feature.categories[round(value)])
    # Whole numbers plainly, others with six significant digits, large ones without a fraction.
    plain = abs(value - round(value)) < WHOLE or abs(value) >= 1e6
    text = str(round(value)) if plain else f"{value:.{DIGITS}g}"
    # What has no unit may be a year.
    return phrases.number(text, apart=bool(feature.unit)) + (
        phrases.unit(feature.unit, value) if unit else ""
    )
