"""What every recipe for the cells of a column has."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from countermove._types import Floats, Mask
from countermove.data.parsing import is_number

Cells: TypeAlias = tuple[Floats, Mask, Mask]
"""Numbers (NaN where none), which cells are missing, which are unreadable."""

_INVISIBLE = re.compile("[\u200b\u200c\u200d\u2060\ufeff\u00ad]")


def folded(text: str) -> str:
    """Return the form in which spellings are compared: NFKC, no capitals, single blanks."""
    plain = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
    return " ".join(plain.casefold().split())


@dataclass(frozen=True)
class CellReading:
    """What every recipe has.

    Parameters
    ----------
    source
        Column of the file that is read, if the feature has another name.
    missing_values
        Cells that stand for no value: -9, 999, 9999-12-31. Numbers are compared as numbers.
    """

    source: str | None = None
    missing_values: tuple[str, ...] = ()

    def to_entry(self) -> dict[str, Any]:
        """Return the recipe as a schema's ``read:`` would hold it."""
        entry: dict[str, Any] = {} if self.source is None else {"from": self.source}
        values = [_plain(value) for value in self.missing_values]
        return entry | ({"missing_values": values} if values else {})

    def meaning(self) -> dict[str, Any]:
        """Return what a rule's reading of the column depends on; how a file writes it does not."""
        return CellReading(self.source, self.missing_values).to_entry()

    def written(self, cell: object) -> str:
        """Return a cell of a workbook as this recipe reads it."""
        return str(cell)

    @property
    def nothing(self) -> frozenset[str]:
        """The folded texts that stand for no value, as the schema lists them."""
        return frozenset(map(folded, self.missing_values))


def _plain(value: str) -> str | int | float:
    """Return a text as the number it spells, for a schema that reads well."""
    if not is_number(value) or not np.isfinite(float(value)):
        return value
    return whole(float(value))


def whole(value: float) -> int | float:
    return int(value) if float(value).is_integer() else value
