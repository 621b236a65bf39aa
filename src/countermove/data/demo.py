"""Example files for trying the commands: a table in parts, applicants, labelled months.

Every row is drawn from the table the package carries, under a new id. The files show where
things go and that the commands run; nothing can be learned from them. ``my.csv`` stands for the
user's own table and is written as such tables come: in the currency, dates and spellings of whoever
extracted it, with gaps and broken lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
"""Rows of a batch."""
OWN = 1600
"""Rows of the table that stands for the user's own."""
BROKEN = (101, 404, 707)
"""Lines of it that are no rows."""


def lay_out_demo(schema: Schema, raw_folder: Path) -> list[Path]:
    """Write the example files of a dataset below ``raw_folder``, or nothing; return them."""
    if schema.source not in ("embedded", "fabricated"):
        raise DataError(
            f"the table {schema.name!r} does not come with the package, so there is nothing to "
            "draw example rows from; name one that does, such as credit, german or tiny"
        )
    table = fabricate(schema.name) if schema.source == "fabricated" else read_embedded(schema.name)
    wanted = {
        raw_folder / place: rows if isinstance(rows, bytes) else rows.to_csv(index=False).encode()
        for place, rows in _examples(table, schema)
    }
    taken = [path for path in wanted if path.exists() and path.read_bytes() != wanted[path]]
    if taken:
        listed = ", ".join(str(path) for path in taken)
        raise DataError(f"{listed} holds something else; move it away and try again")
    for path, content in wanted.items():
        replace_file(path, content)
    return list(wanted)


def _examples(table: pd.DataFrame, schema: Schema) -> Iterator[tuple[Path, pd.DataFrame | bytes]]:
    """Yield every example table with its place below the folder of raw tables."""
    size = -(-len(table) // PARTS)
    for part in range(PARTS):
        rows = table.iloc[part * size : (part + 1) * size]
        yield Path(schema.name, f"part-{part}.csv"), rows
    yield Path("applicants", schema.name, f"{APPLICANTS}.csv"), _drawn(table, schema, APPLICANTS)
    for month in MONTHS:
        yield Path("batches", schema.name, f"{month}.csv"), _drawn(table, schema, month)
    people = fabricate("tiny", OWN + PEOPLE)
    yield Path("my.csv"), _extracted(people.head(OWN), "my")
    applicants = people.tail(PEOPLE).reset_index(drop=True)
    yield Path("applicants", "my", f"{APPLICANTS}.csv"), _extracted(applicants, APPLICANTS)


def _extracted(people: pd.DataFrame, name: str) -> bytes:
    """Return people as a file that somebody extracted: semicolons, cp1252, euros and days first."""
    rng, n = generator(0, f"extract {name}"), len(people)

    def spelled(words: pd.Series, *ways: Callable[[str], str]) -> list[str]:
        return [ways[int(rng.integers(len(ways)))](str(word)) for word in words]

    def euros(amount: float) -> str:
        return f"{1000 * amount:,.2f}".translate(str.maketrans(",.", ".,")) + " €"

    applied = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D")
    months = 12 * people["years_at_job"].to_numpy() + rng.integers(1, 12, n)
    hired = applied - pd.to_timedelta((months * 30.44).astype(int), unit="D")
    capitals = (str, str, str.title, lambda word: f" {word.upper()}")
    table = pd.DataFrame(
        {
            "": range(n),
            "applicant": people["person"],
            "applied on": applied.strftime("%d.%m.%Y"),
            "income": [euros(amount) for amount in people["income"]],
            "savings": [euros(amount) for amount in people["savings"]],
            "open loans": people["open_loans"].astype("str"),
            "hired on": hired.strftime("%d.%m.%Y"),
            "owns home": spelled(people["owns_home"].map({1: "yes", 0: "no"}), *capitals),
            "education": spelled(people["education"], *capitals),
            "sex": rng.choice(["f", "m"], n),
            "note": [f"rang {int(k)} times; très poli" for k in rng.integers(1, 10**6, n)],
            "repaid": spelled(people["repaid"], str, str.title, lambda word: word[0].upper()),
        }
    )
    table.loc[rng.random(n) < 0.03, "savings"] = ""
    table.loc[rng.random(n) < 0.02, "open loans"] = "-9"
    lines = ["Extract of 31.10.2026", *table.to_csv(index=False, sep=";").splitlines()]
    for line in (line for line in BROKEN if line < n):
        lines.insert(line, lines[line] + ";and more" if line % 2 else "cut off;in the mid")
    return ("\n".join(lines) + "\n").encode("cp1252")


def _drawn(table: pd.DataFrame, schema: Schema, batch: str) -> pd.DataFrame:
    """Return rows drawn at random, each as a new person."""
    chosen = generator(0, f"demo {batch}").choice(len(table), size=min(PEOPLE, len(table) // 2))
    rows = table.iloc[chosen].reset_index(drop=True)
    if schema.id is not None:
        # Digits alone: some recipes read ids as numbers.
        month = batch.replace("-", "")
        rows[schema.id] = [f"{month}{number:04d}" for number in range(len(rows))]
    return rows
