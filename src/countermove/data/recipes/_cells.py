"""Cells a recipe computes with: whole numbers and codes, each broken one reported by its row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from countermove._types import Floats, Mask
from countermove.data.checks import TableProblem, missing_problems, raise_all, rows_problem
from countermove.data.parsing import numbers, texts
from countermove.errors import nearest, shown


def whole_numbers(
    raw: pd.DataFrame, columns: Sequence[str], name: str, among: Mask | None = None
) -> dict[str, Floats]:
    """Parse the columns a recipe computes with; anything but whole numbers is refused.

    ``among`` marks the rows that count, where a recipe leaves others out.
    """
    problems: list[TableProblem] = []
    counted = np.ones(len(raw), dtype=np.bool_) if among is None else among
    cells: dict[str, Floats] = {}
    for column in columns:
        values, missing, unparseable = numbers(raw[column])
        problems += missing_problems(column, missing & counted)
        problems += rows_problem(f"column {column!r}: not a number", unparseable & counted)
        fraction = ~missing & ~unparseable & ~(np.isfinite(values) & (np.floor(values) == values))
        text = f"column {column!r}: not a whole number"
        problems += rows_problem(text, fraction & counted, values)
        cells[column] = values
    raise_all(problems, name)
    return cells


def decoded(
    values: pd.Series,
    codes: Mapping[str, str],
    problems: list[TableProblem],
    among: Mask | None = None,
) -> pd.Series:
    """Spell out the codes of one column; an unknown code in a row that counts is a problem."""
    spelled = texts(values, numeric=all(code.isdigit() for code in codes))
    words = spelled.map(codes)
    unknown = words.isna().to_numpy(np.bool_)
    if among is not None:
        unknown = unknown & among
    if unknown.any():
        strange = sorted(set(spelled[unknown].fillna("").tolist()))
        text = (
            f"column {values.name!r}: unknown category {shown(map(repr, strange))}, "
            f"{nearest(strange[0], codes)}"
        )
        problems += rows_problem(text, unknown)
    return words
