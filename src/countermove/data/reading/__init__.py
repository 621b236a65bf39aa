"""How the cells of a column are read where they are no plain numbers and words.

One column, one recipe: decimal mark and units of a number, format of a date and what becomes of
it, spellings of a word. A cell that does not fit the recipe is unreadable, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import pandas as pd

from countermove.data.reading._cells import CellReading, Cells, folded
from countermove.data.reading._dates import (
    BECOMES,
    ISO,
    SINCE,
    Becomes,
    DateCells,
    DateReading,
    in_english,
    until_dates,
)
from countermove.data.reading._numbers import NEGATIVES, NumberReading
from countermove.data.reading._words import UNSEEN, WordReading

__all__ = [
    "BECOMES",
    "ISO",
    "NEGATIVES",
    "SINCE",
    "UNSEEN",
    "Becomes",
    "Cells",
    "DateCells",
    "DateReading",
    "NumberReading",
    "Reading",
    "WordReading",
    "folded",
    "in_english",
    "until_dates",
    "written_out",
]

Reading: TypeAlias = NumberReading | DateReading | WordReading


def written_out(frame: pd.DataFrame, readings: Mapping[str, CellReading]) -> pd.DataFrame:
    """Return a table whose columns of several types are texts, for files that hold one type."""
    columns = {}
    for name in map(str, frame.columns):
        cells, recipe = frame[name], readings.get(name, CellReading())
        if cells.dtype == object:
            texts_of = [None if pd.isna(cell) else recipe.written(cell) for cell in cells]
            columns[name] = pd.Series(texts_of, index=frame.index, dtype="str")
    return frame.assign(**columns)
