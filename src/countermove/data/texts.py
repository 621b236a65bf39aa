"""Texts with two labels: a CSV or parquet file with a column of each, no schema."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove._types import Mask
from countermove.data.fetch import TEXTS
from countermove.data.sources import dataset_name, expected_files, read_file, user_file
from countermove.errors import DataError, nearest, shown
from countermove.randomness import generator


@dataclass(frozen=True)
class Texts:
    """Sentences, whether each deserves the favourable decision, and their rows in the file."""

    sentence: NDArray[np.object_]
    favourable: Mask
    row: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.sentence)

    def some(self, rows: NDArray[np.int64]) -> Texts:
        """Return some of the texts."""
        return Texts(self.sentence[rows], self.favourable[rows], self.row[rows])

    def drawn(self, n: int | None, seed: int = 0) -> Texts:
        """Return ``n`` texts in random order, all of them for None; fewer are the first of more."""
        if n is not None and n > len(self):
            raise DataError(f"{n:,} texts were asked for, there are {len(self):,}")
        return self.some(generator(seed, "texts").permutation(len(self))[:n])


def read_texts(
    name: str,
    folder: Path,
    text: str = "text",
    label: str = "label",
    favourable: str = "fresh",
) -> Texts:
    """Read the texts and labels of ``<folder>/<name>.csv`` or ``.parquet``."""
    found = user_file(dataset_name(name, strict=True), folder)
    if found is None:
        advice = f"; get it with `kedro countermove fetch {name}`" if name in TEXTS else ""
        expected = expected_files(name, folder)
        raise DataError(f"missing file: the texts {name!r}: expected {expected}{advice}")
    table = read_file(found)
    for column in (text, label):
        if column not in table:
            raise DataError(f"{found} has no column {column!r}; {nearest(column, table.columns)}")
    return checked_texts(table[text], table[label], favourable, str(found))


def checked_texts(
    sentences: pd.Series, labels: pd.Series, favourable: str, origin: str = "the texts"
) -> Texts:
    """Return texts after checking that none is empty or there twice, and that labels are two."""
    words = sentences.fillna("").astype(str).str.split().str.join(" ")
    # A sentence that is there twice could be both trained on and tested.
    for wrong, what in (
        ((words == "").to_numpy(), "are empty"),
        (words.duplicated(keep=False).to_numpy(), "appear more than once; keep one of each"),
    ):
        if wrong.any():
            rows = np.flatnonzero(wrong)
            raise DataError(f"{origin}: the texts in rows {shown(rows)} {what}", rows=rows)
    given = labels.astype(str)
    kinds = sorted(given.unique())
    if len(kinds) != 2 or favourable not in kinds:
        raise DataError(
            f"{origin}: expected two labels, {favourable!r} and one other, found {shown(kinds)}"
        )
    wanted = np.array(given == favourable, np.bool_)
    return Texts(np.array(words, object), wanted, np.arange(len(words), dtype=np.int64))
