"""A batch of applicants: identified by its content, and read as a rule reads it.

Who cannot be read is set aside and listed; a batch with too many of them is refused. Rows stay
in parts, on disk; labels, if there are any, are not looked at.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.data.checks import repeated_id_problems, rows_problem
from countermove.data.cleaning import clean_rows, superfluous
from countermove.data.files import PANDAS_INDEX, BrokenLine
from countermove.data.partitions import Partitions, group_sizes, write_part
from countermove.data.quarantine import (
    COLUMN,
    EXPECTED,
    FOUND,
    LISTED,
    ROW,
    Cleaned,
    check_share,
    intake,
    joined,
    listed_cells,
    nothing_wrong,
    set_aside,
    with_broken,
)
from countermove.data.reading import written_out
from countermove.data.recipes import outcome_columns
from countermove.data.rows import coded_features
from countermove.data.schema import ROW_ID, Schema
from countermove.data.splits import repeated
from countermove.data.storage import (
    canonical_digest,
    put_in_place,
    replace_file,
    sha256_of,
    spreadsheet_safe,
)
from countermove.errors import DataError, PartError, shown
from countermove.execution import Mapper, PartTask, map_parts

if TYPE_CHECKING:
    import pyarrow as pa


QUARANTINE = "quarantine"
"""Column of the rows read: what is wrong with a row, null if it can be used."""
SHEET = "quarantine.csv"


def content_digest(batch: Partitions) -> str:
    """Return the SHA-256 of a batch: of its file, or of its files' digests, one a line."""
    digests = [sha256_of(path) for path in batch.files]
    if len(digests) == 1:
        return digests[0]
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


class AdmitTask(PartTask):
    """Read raw rows of applicants into the columns of a rule, in original units."""

    def __init__(self, schema: Schema) -> None:
        if schema.series is not None:
            raise DataError(
                f"table {schema.name!r} is a time series: batches of applicants hold one row per "
                "person"
            )
        # Columns for audits and splits that are no features, and the label, are neither needed
        # nor read.
        self.schema = schema
        self.outcome = outcome_columns(schema)
        features = {feature.name for feature in schema.features}
        others = dict.fromkeys((*schema.sensitive, *schema.split_columns))
        unread = [column for column in others if column not in features]
        self.reading = replace(
            schema, sensitive=(), group_by=None, time=None, ignore=(*schema.ignore, *unread)
        )

    def __call__(self, rows: pa.Table, first_row: int) -> pa.Table:
        """Return ``row_id``, one number per model column, and what is wrong with a row, if it is.

        Rows that cannot be used have no numbers; `usable` leaves them out.
        """
        import pyarrow as pa

        read, n_rows = self.read(rows.to_pandas(ignore_metadata=True), first_row), len(rows)
        ids, wrong = np.full(n_rows, None, dtype=object), _wrong_cells(read, first_row, n_rows)
        listed = read.quarantine.dropna(subset=ROW_ID)
        ids[listed[ROW].to_numpy(np.intp) - first_row] = listed[ROW_ID]
        ids[read.kept] = read.table[ROW_ID]
        columns = {ROW_ID: pa.array(ids, pa.string())}
        X = coded_features(read.table, self.schema)
        carried = list(self.schema.carried_windows)
        numbers = np.hstack([X, read.table[carried].to_numpy(np.float64)])
        placed = np.full((n_rows, numbers.shape[1]), np.nan)
        placed[read.kept] = numbers
        for name, values in zip((*self.schema.feature_names, *carried), placed.T, strict=True):
            columns[name] = pa.array(values.copy())
        return pa.table(columns | {QUARANTINE: pa.array(wrong, pa.string())})

    def read(self, raw: pd.DataFrame, first_row: int) -> Cleaned:
        """Return the typed table of the rows that can be used, and what is wrong with the rest."""
        raw = raw[[name for name in raw.columns if not PANDAS_INDEX.fullmatch(str(name))]]
        raw = raw.assign(**self.outcome)
        read = clean_rows(raw, self.reading, part_from=first_row)
        return _with_left_out(read, raw, self.schema)

    def fingerprint(self) -> str:
        """Return the digest of the whole schema, recipes included, and the release that reads."""
        return f"{canonical_digest(self.schema.to_mapping())} {version('countermove')}"


def applicants_matrix(people: pd.DataFrame, schema: Schema) -> Floats:
    """Return a schema's table, raw or typed, as `AdmitTask` reads it, one row per person.

    Columns that only name people may be absent. Cells that people may lack are NaN.

    Raises
    ------
    DataError
        If a row cannot be used; ``rows`` holds all of them.
    """
    raw = people.set_axis([str(name) for name in people.columns], axis=1)
    features = [feature.name for feature in schema.features]
    if ROW_ID in raw and schema.id != ROW_ID and set(features) <= set(raw.columns):
        return coded_features(raw, schema)
    if schema.id is not None and schema.id not in raw:
        raw = raw.assign(**{schema.id: [f"r{row}" for row in range(len(raw))]})
    read = AdmitTask(schema).read(raw, 0)
    if len(read.quarantine):
        rows = sorted(set(read.quarantine[ROW].astype(int)))
        worst = read.quarantine.iloc[0]
        raise DataError(
            f"{len(rows)} of {len(raw)} rows cannot be read, the first for column "
            f"{worst[COLUMN]!r}: expected {worst[EXPECTED]}, in rows {shown(rows)}; correct them "
            "or take them out",
            rows=rows,
        )
    return coded_features(read.table, schema)


def usable(rows: pa.Table) -> pa.Table:
    """Return the rows of an `AdmitTask` that can be used."""
    return rows.filter(rows[QUARANTINE].is_null()).drop_columns(QUARANTINE)


def _wrong_cells(read: Cleaned, first_row: int, n_rows: int) -> list[str | None]:
    """Return the wrong cells of every row as JSON: column, found, expected; None if it has none."""
    wrong: list[str | None] = [None] * n_rows
    cells = (COLUMN, FOUND, EXPECTED)
    places = read.quarantine[ROW].to_numpy(np.intp) - first_row
    for place, part in read.quarantine.groupby(places):
        wrong[int(str(place))] = json.dumps(part[list(cells)].to_numpy().tolist())
    return wrong


def _with_left_out(read: Cleaned, raw: pd.DataFrame, schema: Schema) -> Cleaned:
    """Return what was read with the people whom the recipe leaves out, as it does in training."""
    if read.n_rows == len(raw):
        return read
    text = (
        f"table {schema.name!r}: the recipe {schema.cleaning!r} leaves out "
        f"{len(raw) - read.n_rows} of {len(raw)} rows, as it would in training; the rule says "
        "nothing about these people"
    )
    if schema.id is None or schema.id not in raw.columns or len(read.quarantine):
        raise DataError(f"{text}: take them out of the batch")
    ids = raw[schema.id].astype(str)
    gone = ~ids.isin(set(read.table[ROW_ID])).to_numpy(np.bool_)
    problems = rows_problem(
        text, gone, columns=(schema.id,), expected="somebody whom the rule was made for"
    )
    rows = np.arange(len(raw))
    listed = listed_cells(problems, raw, ids, rows)
    return Cleaned(read.table, rows[~gone], len(raw), listed)


@dataclass(frozen=True)
class Admitted:
    """The applicants of a batch that a rule can score, and those set aside."""

    people: Partitions
    n_rows: int
    quarantine: pd.DataFrame

    def facts(self, largest: float) -> dict[str, Any]:
        """Return how many applied and how many were set aside, for the manifest."""
        found = intake(self.quarantine, self.n_rows, largest)
        return {"applicants": found["rows"], "set_aside": found["set_aside"]} | (
            {"set_aside_because": found["reasons"]} if found["set_aside"] else {}
        )


def admit(batch: Partitions, schema: Schema, folder: Path, mapper: Mapper, name: str) -> Admitted:
    """Read a whole batch into parts that a rule can score; set aside who cannot be read."""
    try:
        task = AdmitTask(schema)
        pieces, broken = cut(batch, schema, folder / "cut")
        run = map_parts(task, pieces, folder / "read", mapper)
    except (PartError, DataError) as error:
        raise DataError(f"{_not_scored(name)}: {error}", rows=error.rows) from error
    if not run.rows:
        raise DataError(f"batch {name!r} holds no rows; expected at least one person")
    files = run.result().files
    wrong = joined([_listed(files), _repeated(files)])
    quarantine = with_broken(wrong.sort_values(ROW, kind="stable", ignore_index=True), broken)
    n_rows = run.rows + len(broken)
    check_share(_not_scored(name), quarantine, n_rows, schema.quarantine)
    if len(wrong):
        _leave_out(files, set(wrong[ROW]))
    if len(quarantine):
        replace_file(folder / SHEET, spreadsheet_safe(quarantine).to_csv(index=False).encode())
    put_in_place(folder / "read", folder / "admitted")
    people = Partitions(tuple(sorted((folder / "admitted").glob("*.parquet"))), batch.rows_per_part)
    return Admitted(people, n_rows, quarantine)


def admitted_before(folder: Path, rows_per_part: int) -> Admitted | None:
    """Return what `admit` left in a folder; None if it did not finish."""
    files = tuple(sorted((folder / "admitted").glob("*.parquet")))
    if not files:
        return None
    listed, sheet = nothing_wrong(), folder / SHEET
    if sheet.is_file():
        listed = pd.read_csv(
            sheet, dtype={ROW: "Int64"}, keep_default_na=False, na_values={ROW: ""}
        )
    n_rows = sum(sum(group_sizes(path)) for path in files) + set_aside(listed)
    return Admitted(Partitions(files, rows_per_part), n_rows, listed)


def _not_scored(name: str) -> str:
    return f"batch {name!r} is not scored, nobody in it"


def _listed(files: Sequence[Path]) -> pd.DataFrame:
    """Return the quarantine that the parts carry."""
    found, first = [], 0
    for ids, wrong in _columns(files, ROW_ID, QUARANTINE):
        for place in np.flatnonzero(pd.notna(wrong)).tolist():
            cells = json.loads(wrong[place])
            found += [[first + place, *cell, ids[place]] for cell in cells]
        first += len(ids)
    return pd.DataFrame(found, columns=list(LISTED)) if found else nothing_wrong()


def _repeated(files: Sequence[Path]) -> pd.DataFrame:
    """Return the quarantine of ids that occur twice; equal hashes raise the suspicion."""
    hashes = np.concatenate([pd.util.hash_array(i, categorize=False) for (i,) in _columns(files)])
    suspects = np.flatnonzero(repeated(hashes))
    if not suspects.size:
        return nothing_wrong()
    found, first = [], 0
    for path in files:
        part = pd.read_parquet(path)
        here = suspects[(suspects >= first) & (suspects < first + len(part))]
        found.append(part.iloc[here - first].set_axis(here))
        first += len(part)
    people = pd.concat(found)
    people = people[people[QUARANTINE].isna() & people[ROW_ID].notna()].drop(columns=QUARANTINE)
    problems = repeated_id_problems(people[ROW_ID], superfluous(people))
    return listed_cells(problems, people, people[ROW_ID], people.index.to_numpy(np.intp))


def _leave_out(files: Sequence[Path], gone: set[int]) -> None:
    """Rewrite the parts that hold rows set aside, without them; an empty part goes."""
    import pyarrow.parquet as pq

    first = 0
    for path in files:
        rows = pq.read_table(path)
        keep = [first + place not in gone for place in range(len(rows))]
        first += len(rows)
        if not any(keep):
            path.unlink()
        elif not all(keep):
            pq.write_table(rows.filter(keep), path)


def _columns(files: Sequence[Path], *names: str) -> Iterator[tuple[NDArray[np.object_], ...]]:
    import pyarrow.parquet as pq

    for path in files:
        rows = pq.read_table(path, columns=list(names or (ROW_ID,)))
        yield tuple(column.to_numpy() for column in rows.columns)


def cut(batch: Partitions, schema: Schema, folder: Path) -> tuple[Partitions, list[BrokenLine]]:
    """Return a batch as parquet files cut into parts, and the lines of it that are no rows."""
    sizes = [group_sizes(path) for path in batch.files if path.suffix == ".parquet"]
    coarse = any(rows > batch.rows_per_part for groups in sizes for rows in groups)
    if len(sizes) == len(batch.files) and not coarse:
        return batch, []
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    broken: list[BrokenLine] = []
    for number, (file, part) in enumerate(batch.raw()):
        broken += part.broken
        if len(part.frame):
            frame = written_out(part.frame, schema.recipes())
            write_part(frame, folder / f"{number:05d}-of-{file.name}.parquet")
    files = tuple(sorted(folder.glob("*.parquet")))
    if not files:
        raise DataError("it holds no rows, only a header; expected at least one person")
    return Partitions(files, batch.rows_per_part), broken
