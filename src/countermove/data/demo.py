"""Example files for trying the commands: a table in parts, applicants, labelled months.

Every row is drawn from the table the package carries, under a new id. The files show where
things go and that the commands run; nothing can be learned from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from countermove.data.schema import Schema
from countermove.data.sources import read_embedded
from countermove.data.storage import replace_file
from countermove.data.synthetic import fabricate
from countermove.errors import DataError
from countermove.randomness import generator

__all__ = ["APPLICANTS", "MONTHS", "lay_out_demo"]

PARTS = 5
APPLICANTS, MONTHS = "2026-11", ("2026-09", "2026-10")
"""Names of the batch of applicants and of the labelled batches."""
PEOPLE = 400
"""Rows of a batch, and of the table that stands for the user's own."""


def lay_out_demo(schema: Schema, raw_folder: Path) -> list[Path]:
    """Write the example files of a dataset below ``raw_folder``, or nothing; return them."""
    if schema.source not in ("embedded", "fabricated"):
        raise DataError(
            f"the table {schema.name!r} does not come with the package, so there is nothing to "
            "draw example rows from; name one that does, such as credit, german or tiny"
        )
    table = fabricate(schema.name) if schema.source == "fabricated" else read_embedded(schema.name)
    wanted = {
        raw_folder / place: rows.to_csv(index=False).encode()
        for place, rows in _examples(table, schema)
    }
    taken = [path for path in wanted if path.exists() and path.read_bytes() != wanted[path]]
    if taken:
        listed = ", ".join(str(path) for path in taken)
        raise DataError(f"{listed} holds something else; move it away and try again")
    for path, content in wanted.items():
        replace_file(path, content)
    return list(wanted)


def _examples(table: pd.DataFrame, schema: Schema) -> Iterator[tuple[Path, pd.DataFrame]]:
    """Yield every example table with its place below the folder of raw tables."""
    size = -(-len(table) // PARTS)
    for part in range(PARTS):
        rows = table.iloc[part * size : (part + 1) * size]
        yield Path(schema.name, f"part-{part}.csv"), rows
    yield Path("applicants", schema.name, f"{APPLICANTS}.csv"), _drawn(table, schema, APPLICANTS)
    for month in MONTHS:
        yield Path("batches", schema.name, f"{month}.csv"), _drawn(table, schema, month)
    yield Path("my.csv"), fabricate("tiny", PEOPLE)


def _drawn(table: pd.DataFrame, schema: Schema, batch: str) -> pd.DataFrame:
    """Return rows drawn at random, each as a new person."""
    chosen = generator(0, f"demo {batch}").choice(len(table), size=min(PEOPLE, len(table) // 2))
    rows = table.iloc[chosen].reset_index(drop=True)
    if schema.id is not None:
        # Digits alone: some recipes read ids as numbers.
        month = batch.replace("-", "")
        rows[schema.id] = [f"{month}{number:04d}" for number in range(len(rows))]
    return rows
