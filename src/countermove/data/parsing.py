"""Cells to numbers and to text, without guessing.

A cell is a number, a text, or missing; what cannot be read is reported by the
caller with its row, never replaced.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from countermove._types import Floats, Mask

MISSING_WORDS = frozenset(
    {"", "na", "n/a", "n.a.", "#n/a", "nan", "null", "none", "missing", "?", "<na>"}
)
"""What a number column may hold for "no value", in any case."""

EXACT_INTEGERS = 2.0**53
"""Up to here every whole number is a float; beyond, an integer would change silently."""

CONTROL = r"[\x00-\x1f\x7f-\x9f\u2028\u2029]"
"""Control characters, which no id holds: a regular expression."""

BOOLEAN_WORDS = {"true": 1.0, "false": 0.0}


def numbers(values: pd.Series) -> tuple[Floats, Mask, Mask]:
    """Return a column as numbers (NaN where none), which cells are missing, which no numbers."""
    if pd.api.types.is_bool_dtype(values.dtype) or pd.api.types.is_numeric_dtype(values.dtype):
        read = values.to_numpy(np.float64, na_value=np.nan)
        return read, np.isnan(read), np.zeros(len(read), dtype=np.bool_)
    read = _parsed(values)
    unread = np.flatnonzero(np.isnan(read))
    missing = np.zeros(len(read), dtype=np.bool_)
    if unread.size:
        words = texts(values.iloc[unread]).fillna("")
        read[unread] = _parsed(words)
        missing[unread] = words.str.lower().isin(MISSING_WORDS).to_numpy(np.bool_)
    return read, missing, np.isnan(read) & ~missing


def is_number(text: str) -> bool:
    """Return whether a text reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parsed(values: pd.Series) -> Floats:
    # By way of text, so that a date is not read as its nanoseconds.
    read = pd.to_numeric(_printed(values.reset_index(drop=True)), errors="coerce")
    return np.array(read.to_numpy(np.float64, na_value=np.nan))


def truth_values(values: pd.Series) -> pd.Series:
    """Replace the words true and false by 1 and 0, for binary columns."""
    if pd.api.types.is_bool_dtype(values.dtype) or pd.api.types.is_numeric_dtype(values.dtype):
        return values
    words = texts(values)
    translated = words.str.lower().map(BOOLEAN_WORDS)
    return words.where(translated.isna(), translated.map({1.0: "1", 0.0: "0"}))


def texts(values: pd.Series, numeric: bool = False) -> pd.Series:
    """Read a column as text, blank cells as missing; with ``numeric``, ``1.0`` reads ``1``."""
    if pd.api.types.is_bool_dtype(values.dtype) and not numeric:
        return values.map({True: "True", False: "False"}).astype("str")
    if numeric or pd.api.types.is_numeric_dtype(values.dtype):
        return _number_texts(values)
    # Dates and other objects read as they print.
    words = _printed(values).str.strip()
    return words.where(values.notna() & (words != ""))


def _printed(values: pd.Series) -> pd.Series:
    """Return every cell as it prints, also bytes, which pandas would try to decode."""
    if values.dtype != object:
        return values.astype("str")
    cells = [cell if isinstance(cell, str) else str(cell) for cell in values]
    return pd.Series(cells, index=values.index, dtype="str")


def _number_texts(values: pd.Series) -> pd.Series:
    read = numbers(values)[0]
    whole = np.isfinite(read) & (np.floor(read) == read) & (np.abs(read) <= EXACT_INTEGERS)
    rounded = pd.Series(np.where(whole, read, 0).astype(np.int64), index=values.index)
    words = _printed(values).str.strip()
    words = words.where(~whole, rounded.astype("str"))
    return words.where(values.notna() & (words != ""))
