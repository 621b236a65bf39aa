"""Ingest of a table in parts, against reading and writing the same parquet.

A million rows of 15 numbers, an id and a label, in ten files. The yardstick reads every file with
pandas and writes it again with pandas' defaults; the second one writes as lean as the ingest does.
The table with gaps lacks 5 % of the cells of five columns, filled by their median, and has 2 % of
rows with a value beyond its bounds, which are set aside.
Then the same rows as text, plainly and as people write them: currencies of two locales, percent,
dates that become ages, words in several spellings, and 1 % of the dollars missing. Last, the draft
of 5,000 such rows.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.memory import high_water_mark
from countermove.data import streaming
from countermove.data.drafting import draft_file
from countermove.data.partitions import raw_partitions, read_parts, write_parts
from countermove.data.schema import Schema

ROWS, FEATURES, FILES, REPEATS = 1_000_000, 15, 10, 3
SHARES = {"train": 0.5, "validation": 0.15, "calibration": 0.15, "test": 0.2}
SCHEMA = Schema.from_mapping(
    "big",
    {
        "id": "who",
        "label": {"column": "label", "favourable": 1},
        "features": {f"x{j}": {"kind": "numeric", "change": "both"} for j in range(FEATURES)},
    },
)
GAPS, WRONG = ("x1", "x2", "x3", "x4", "x5"), "x6"
WITH_POLICIES = Schema.from_mapping(
    "gaps",
    SCHEMA.to_mapping()
    | {
        "features": {
            name: {"kind": "numeric", "change": "both"}
            | ({"missing": "median"} if name in GAPS else {"max": 100} if name == WRONG else {})
            for name in (f"x{j}" for j in range(FEATURES))
        }
    },
)

WRITTEN = [*"$$$$$€€€€%%", "born", "born", "region", "region"]
"""How each column of the messy table is written."""

READ = {
    "$": {"kind": "numeric", "missing": "median", "read": {"thousands": ",", "units": ["$"]}},
    "€": {"kind": "numeric", "read": {"decimal": ",", "thousands": ".", "units": ["€"]}},
    "%": {"kind": "numeric", "read": {"units": ["%"]}},
    "born": {
        "kind": "integer",
        "read": {"date": "%d.%m.%Y", "as": "age", "until": "2024-12-31"},
    },
    "region": {
        "kind": "onehot",
        "categories": ["north", "south", "east", "west"],
        "read": {"fold": True},
    },
}
MESSY = Schema.from_mapping(
    "messy",
    {
        "file": {"delimiter": ";"},
        "id": "who",
        "label": {
            "column": "label",
            "favourable": "yes",
            "unfavourable": "no",
            "read": {"fold": True},
        },
        "features": {f"x{j}": READ[way] for j, way in enumerate(WRITTEN)},
    },
)
PLAIN = Schema.from_mapping("plain", SCHEMA.to_mapping())
SCHEMAS = {schema.name: schema for schema in (SCHEMA, WITH_POLICIES, MESSY)}


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder / "big")
        plain = fastest(lambda: copied(folder, lean=False))
        lean = fastest(lambda: copied(folder, lean=True))
        ours = fastest(lambda: ingest(folder))
        make(folder / "gaps", gaps=True)
        gaps = fastest(lambda: ingest(folder, WITH_POLICIES))
        held = peak_megabytes(folder, "gaps")
        peak = peak_megabytes(folder)
        make(folder / "four" / "big", files=4 * FILES)
        larger = peak_megabytes(folder / "four")
        make_text(folder)
        plainly = fastest(lambda: ingest(folder, PLAIN))
        written = fastest(lambda: ingest(folder, MESSY))
        grows = peak_megabytes(folder, "messy")
        drafted = fastest(lambda: draft(folder))
    print(f"{ROWS:,} rows × {FEATURES} numbers, an id and a label, in {FILES} files.\n")
    print("| what | CPU seconds | times reading and writing |")
    print("|---|---|---|")
    print(f"| read and write with pandas | {plain:.2f} | 1.0 |")
    print(f"| read and write as lean as the ingest | {lean:.2f} | {lean / plain:.2f} |")
    print(
        f"| check, type, split and standardise | {ours:.2f} | {ours / plain:.2f} "
        f"({ours / lean:.1f} of the lean one) |"
    )
    print(
        f"| the same with 5 % gaps in {len(GAPS)} columns and 2 % wrong rows | {gaps:.2f} | "
        f"{gaps / plain:.2f} ({gaps / ours:.2f} of the clean table) |"
    )
    per_row = (larger - peak) * 1e6 / (3 * ROWS)
    print(
        f"\nLargest memory above the interpreter's: {peak:.0f} MB; of a table four times as long "
        f"{larger:.0f} MB, {per_row:.0f} bytes per further row, where a row itself has "
        f"{8 * (FEATURES + 1)}; with gaps and wrong rows {held:.0f} MB."
    )

    print("\n| as text, one file | CPU seconds | times plain numbers |")
    print("|---|---|---|")
    print(f"| plain numbers | {plainly:.2f} | 1.0 |")
    print(f"| as people write them | {written:.2f} | {written / plainly:.2f} |")
    print(f"\nLargest memory above the interpreter's: {grows:.0f} MB.")
    print(f"Draft of the schema of 5,000 such rows: {drafted:.1f} CPU seconds.")


def make_text(folder: Path) -> None:
    """Write a table as text: plainly, as people write it, and some rows of that."""
    rng = np.random.default_rng(0)
    X = rng.lognormal(9, 1, size=(ROWS, FEATURES)).round(2)
    people = pd.DataFrame({"who": [f"p{row}" for row in range(ROWS)]})
    good = X[:, 0] + rng.normal(0, 5000, ROWS) > 9000
    plain = pd.DataFrame(X, columns=[f"x{j}" for j in range(FEATURES)])
    plain.assign(label=good.astype(int), who=people["who"]).to_csv(
        folder / "plain.csv", index=False
    )
    euros = str.maketrans(",.", ".,")
    days = pd.date_range("1950-01-01", "2005-12-31").strftime("%d.%m.%Y").to_numpy()
    spelled = ["North", "north ", "SOUTH", "south", "East", "west"]
    columns = {
        "$": lambda j: [f"${value:,.2f}" for value in X[:, j]],
        "€": lambda j: [f"{value:,.2f} €".translate(euros) for value in X[:, j]],
        "%": lambda j: [f"{value / 1000:.1f} %" for value in X[:, j]],
        "born": lambda j: rng.choice(days, ROWS),
        "region": lambda j: rng.choice(spelled, ROWS),
    }
    table = pd.DataFrame({f"x{j}": columns[WRITTEN[j]](j) for j in range(FEATURES)})
    table = table.mask((rng.random(table.shape) < 0.01) & (np.array(WRITTEN) == "$"), "")
    table["label"] = np.where(good, rng.choice(["Yes", "yes"], ROWS), "No")
    table["who"] = people["who"]
    table.to_csv(folder / "messy.csv", index=False, sep=";")
    table.head(5000).to_csv(folder / "some.csv", index=False, sep=";")


def draft(folder: Path) -> None:
    """Draft the schema of some rows."""
    draft_file(folder / "some.csv", "some", label="label")


def make(folder: Path, files: int = FILES, gaps: bool = False) -> None:
    """Write the raw table, a hundred thousand rows a file."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    for k in range(files):
        X = rng.normal(size=(ROWS // FILES, FEATURES))
        part = pd.DataFrame(X, columns=[f"x{j}" for j in range(FEATURES)])
        part["label"] = (X[:, 0] + rng.normal(size=len(X)) > 0).astype(int)
        if gaps:
            for name in GAPS:
                part[name] = part[name].where(rng.random(len(part)) > 0.05)
            part[WRONG] = part[WRONG].where(rng.random(len(part)) > 0.02, 1000.0)
        part["who"] = [f"p{k * len(X) + row}" for row in range(len(X))]
        part.to_parquet(folder / f"{k:02d}.parquet", index=False)


def copied(folder: Path, lean: bool) -> None:
    """Read and write every file once."""
    out = folder / "copy"
    if lean:
        write_parts((("all", part) for part in raw_partitions("big", folder, 100_000)), out)
        return
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    for file in sorted((folder / "big").iterdir()):
        pd.read_parquet(file).to_parquet(out / file.name, index=False)


def ingest(folder: Path, schema: Schema = SCHEMA) -> None:
    """Do what the pipeline ``ingest_parts`` does."""
    raw = raw_partitions(schema.name, folder, 100_000, schema.file)
    place = streaming.place_rows(raw, schema, SHARES, seed=0).place
    write_parts(streaming.split_parts(raw, schema, place, SHARES), folder / "primary")
    splits = read_parts(folder / "primary")
    unit = streaming.fit_standardiser(splits["train"], schema, divide_by_root_d=False)
    write_parts(streaming.standardised_parts(splits, schema, unit), folder / "rows")


def fastest(work: Callable[[], None]) -> float:
    """Return the least CPU time of a few runs."""
    found = []
    for _ in range(REPEATS):
        started = time.process_time()
        work()
        found.append(time.process_time() - started)
    return min(found)


def peak_megabytes(folder: Path, table: str = "big") -> float:
    """Return how much a process grows while it ingests."""
    code = f"from benchmarks.bench_ingest import grown; grown({str(folder)!r}, {table!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def grown(folder: str, table: str) -> None:
    """Print by how many megabytes the peak of this process rose over its start."""
    import pyarrow.csv
    import pyarrow.parquet  # noqa: F401  (loaded before the measurement begins)

    before = high_water_mark()
    ingest(Path(folder), SCHEMAS[table])
    print((high_water_mark() - before) / 1e6)


if __name__ == "__main__":
    main()
