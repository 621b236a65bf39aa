"""Numbers as people write them: marks, units, signs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from countermove._types import Floats, Mask
from countermove.data.parsing import MISSING_WORDS, is_number, numbers, texts
from countermove.data.reading._cells import CellReading, Cells, folded, whole

if TYPE_CHECKING:
    import pyarrow as pa

Negative: TypeAlias = Literal["minus", "parentheses", "trailing"]
NEGATIVES: tuple[Negative, ...] = ("minus", "parentheses", "trailing")


@dataclass(frozen=True)
class NumberReading(CellReading):
    """Numbers as people write them.

    Parameters
    ----------
    decimal, thousands
        The marks; any blank is ``" "``, any apostrophe ``"'"``. Without ``thousands`` digits are
        not grouped.
    units
        Texts that may stand before or behind the number (currencies, ``%``, ``months``), in any
        capitals, each with the factor that its number is multiplied by.
    bare
        Whether a number may also stand without any of them.
    negative
        How numbers below zero are written beside ``-5``: ``(5)`` or ``5-``.
    """

    decimal: str = "."
    thousands: str = ""
    units: tuple[tuple[str, float], ...] = ()
    bare: bool = True
    negative: Negative = "minus"

    def to_entry(self) -> dict[str, Any]:
        """Return the recipe as a schema's ``read:`` would hold it."""
        factors = {text: whole(factor) for text, factor in self.units}
        entry = {
            "decimal": self.decimal if self.decimal != "." else None,
            "thousands": self.thousands or None,
            "units": list(factors) if set(factors.values()) <= {1} else factors,
            "bare": None if self.bare else False,
            "negative": self.negative if self.negative != "minus" else None,
        }
        return super().to_entry() | {k: v for k, v in entry.items() if v not in (None, [])}

    def meaning(self) -> dict[str, Any]:
        """Return what a rule's reading of the column depends on."""
        factors = {text: factor for text, factor in self.units if factor != 1.0}
        return super().meaning() | ({"units": factors} if factors else {})

    def written(self, cell: object) -> str:
        """Return a cell of a workbook as this recipe reads it."""
        exact = isinstance(cell, int | float) and not isinstance(cell, bool)
        return repr(cell).replace(".", self.decimal) if exact else str(cell)

    def read(self, values: pd.Series) -> Cells:
        """Return a column as numbers, which cells are missing, and which are unreadable."""
        if pd.api.types.is_bool_dtype(values.dtype) or pd.api.types.is_numeric_dtype(values.dtype):
            read, missing, strange = numbers(values)
        elif values.dtype == object:
            read, missing, strange = self._of_objects(values)
        else:
            read, missing, strange = self._of_texts(values)
        listed = [float(v) for v in self.missing_values if is_number(v)]
        missing = missing | np.isin(read, listed)
        read = np.where(missing, np.nan, read)
        return read, missing, strange & ~missing

    def _of_objects(self, values: pd.Series) -> Cells:
        """Read a column in which a workbook mixes numbers and texts."""
        exact = np.array([isinstance(c, int | float) and not isinstance(c, bool) for c in values])
        read, missing, strange = self._of_texts(values.where(~exact, None))
        direct = pd.to_numeric(values.where(exact, None)).to_numpy(np.float64, na_value=np.nan)
        read = np.where(exact, direct, read)
        missing = np.where(exact, np.isnan(direct), missing)
        return read, missing, np.where(exact, not self.bare, strange)

    def _of_texts(self, values: pd.Series) -> Cells:
        parts = _NumberParts.of(texts(values), self.nothing | MISSING_WORDS)
        missing = parts.missing
        parts.take_signs(self.negative)
        factor, found = parts.take_units(self.units)
        parts.take_sign()
        read = parts.numbers(self.decimal, self.thousands) * factor
        strange = np.isnan(read) if self.bare else np.isnan(read) | ~found
        return np.where(strange | missing, np.nan, read), missing, strange & ~missing


class _NumberParts:
    """Cells from which sign and units are taken one after the other."""

    def __init__(self, cells: pa.Array, missing: Mask) -> None:
        self.cells, self.missing = cells, missing
        self._below = np.zeros(len(cells), dtype=np.bool_)
        self._signed = np.zeros(len(cells), dtype=np.bool_)

    @classmethod
    def of(cls, words: pd.Series, nothing: frozenset[str]) -> _NumberParts:
        """Return cells in one form; those that are ``nothing`` are missing."""
        import pyarrow as pa
        import pyarrow.compute as pc

        missing = words.isna().to_numpy(np.bool_)
        cells = pa.array(words.fillna(""), type=pa.string())
        if isinstance(cells, pa.ChunkedArray):
            cells = cells.combine_chunks()
        if not pc.all(pc.string_is_ascii(cells)).as_py():
            cells = pc.utf8_normalize(cells, "NFKC")
            for text, plain in (("\u2212", "-"), ("\u2013", "-"), ("\u2019", "'"), ("\u00b4", "'")):
                cells = pc.replace_substring(cells, text, plain)
        cells = pc.utf8_lower(pc.utf8_trim_whitespace(cells))
        blank = pc.is_in(cells, value_set=pa.array(sorted(nothing)))
        return cls(cells, missing | np.asarray(blank, dtype=np.bool_))

    def take_signs(self, negative: Negative) -> None:
        """Take what marks a number below zero, and a leading sign."""
        import pyarrow.compute as pc

        if negative == "parentheses":
            both = pc.and_(pc.starts_with(self.cells, "("), pc.ends_with(self.cells, ")"))
            self._take(both, 1, -1, below=True)
        elif negative == "trailing":
            self._take(pc.ends_with(self.cells, "-"), 0, -1, below=True)
        self.take_sign()

    def take_sign(self) -> None:
        """Take a leading sign, unless the cell had one before."""
        import pyarrow as pa
        import pyarrow.compute as pc

        for mark, below in (("-", True), ("+", False)):
            first = pc.and_not(pc.starts_with(self.cells, mark), pa.array(self._signed))
            self._take(first, 1, None, below)

    def take_units(self, units: Iterable[tuple[str, float]]) -> tuple[Floats, Mask]:
        """Take at most one text before and one behind; return factors, and who had one."""
        import pyarrow as pa
        import pyarrow.compute as pc

        factor = np.ones(len(self.cells))
        ends = {end: np.zeros(len(factor), np.bool_) for end in ("before", "behind")}
        known = {folded(text): value for text, value in units}
        for text in sorted(known, key=len, reverse=True):
            for end, taken in ends.items():
                there = pc.starts_with if end == "before" else pc.ends_with
                found = pc.and_not(there(self.cells, text), pa.array(taken))
                mask = np.asarray(found, dtype=np.bool_)
                cut = (len(text), None) if end == "before" else (0, -len(text))
                self._take(found, *cut)
                factor[mask] *= known[text]
                taken |= mask
        return factor, ends["before"] | ends["behind"]

    def numbers(self, decimal: str, thousands: str) -> Floats:
        """Return what is left as numbers, NaN where it is none."""
        import pyarrow as pa
        import pyarrow.compute as pc

        mark, group = re.escape(decimal), re.escape(thousands)
        # 0.123 is no thousand; 12,34,567 is grouped as in India.
        grouped = rf"[1-9]\d{{0,2}}({group}\d{{2,3}})*{group}\d{{3}}"
        whole = rf"({grouped}|\d+)" if thousands else r"\d+"
        form = rf"^({whole}({mark}\d*)?|{mark}\d+)(e[+-]?\d+)?$"
        cells = self.cells
        fits = pc.match_substring_regex(cells, form)
        cells = pc.if_else(fits, cells, pa.scalar(None, pa.string()))
        cells = pc.replace_substring(cells, thousands, "") if thousands else cells
        cells = cells if decimal == "." else pc.replace_substring(cells, decimal, ".")
        read = np.array(pc.cast(cells, pa.float64()).to_numpy(zero_copy_only=False))
        return np.where(self._below, -read, read)

    def _take(self, mask: Any, start: int, stop: int | None, below: bool | None = None) -> None:
        """Cut the marked cells, trim them, and note their sign."""
        import pyarrow.compute as pc

        found = np.asarray(mask, dtype=np.bool_)
        if not found.any():
            return
        cut = pc.utf8_trim_whitespace(pc.utf8_slice_codeunits(self.cells, start, stop))
        self.cells = pc.if_else(mask, cut, self.cells)
        if below is not None:
            self._signed |= found
            self._below ^= found & below
