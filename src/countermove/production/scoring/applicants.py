"""A batch of applicants: identified by its content, and read as a rule reads it.

Nothing of a batch is used unless every row of it can be. Rows stay in parts, on
disk; labels, if there are any, are not looked at.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove.data.cleaning import clean
from countermove.data.files import PANDAS_INDEX
from countermove.data.partitions import Partitions, group_sizes, write_part
from countermove.data.recipes import outcome_columns
from countermove.data.rows import coded_features
from countermove.data.schema import ROW_ID, Schema
from countermove.data.splits import repeated
from countermove.data.storage import sha256_of
from countermove.errors import DataError, PartError, shown
from countermove.execution import Mapper, PartTask, map_parts

if TYPE_CHECKING:
    import pyarrow as pa


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
        """Return ``row_id`` and one number per model column; refuse rows that cannot be read."""
        import pyarrow as pa

        raw = rows.to_pandas(ignore_metadata=True)
        raw = raw[[name for name in raw.columns if not PANDAS_INDEX.fullmatch(str(name))]]
        typed = clean(raw.assign(**self.outcome), self.reading, part_from=first_row)
        if len(typed) != len(raw):
            raise _left_out(raw, typed, self.schema)
        X = coded_features(typed, self.schema)
        numbers = dict(zip(self.schema.feature_names, map(pa.array, X.T.copy()), strict=True))
        windows = {name: pa.array(typed[name]) for name in self.schema.carried_windows}
        ids = pa.array(typed[ROW_ID]).cast(pa.string())
        return pa.table({ROW_ID: ids} | numbers | windows)

    def fingerprint(self) -> str:
        """Return the digest of the schema and the release that reads."""
        return f"{self.schema.digest()} {version('countermove')}"


def _left_out(raw: pd.DataFrame, typed: pd.DataFrame, schema: Schema) -> DataError:
    text = (
        f"table {schema.name!r}: the recipe {schema.cleaning!r} leaves out {len(raw) - len(typed)} "
        f"of {len(raw)} rows, as it would in training; the rule says nothing about these people"
    )
    if schema.id not in raw.columns:
        return DataError(f"{text}: take them out of the batch")
    gone = ~raw[schema.id].astype(str).isin(set(typed[ROW_ID])).to_numpy(np.bool_)
    ids = shown(repr(name) for name in raw[schema.id][gone])
    return DataError(f"{text}: take {ids} out of the batch", rows=np.flatnonzero(gone))


def admit(batch: Partitions, schema: Schema, folder: Path, mapper: Mapper, name: str) -> Partitions:
    """Read a whole batch, or none of it, into parts that a rule can score."""
    try:
        task = AdmitTask(schema)
        run = map_parts(task, cut(batch, folder / "cut"), folder / "admitted", mapper)
    except (PartError, DataError) as error:
        text = f"batch {name!r} is not scored, nobody in it: {error}"
        raise DataError(text, rows=error.rows) from error
    if not run.rows:
        raise DataError(f"batch {name!r} holds no rows; expected at least one person")
    admitted = replace(run.result(), rows_per_part=batch.rows_per_part)
    check_ids(admitted, name)
    return admitted


def cut(batch: Partitions, folder: Path) -> Partitions:
    """Return a batch as parquet files whose row groups are no larger than a part."""
    sizes = [group_sizes(path) for path in batch.files if path.suffix == ".parquet"]
    coarse = any(rows > batch.rows_per_part for groups in sizes for rows in groups)
    if len(sizes) == len(batch.files) and not coarse:
        return batch
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number, (file, part) in enumerate(batch.named()):
        if len(part):
            write_part(part, folder / f"{number:05d}-of-{file.name}.parquet")
    files = tuple(sorted(folder.glob("*.parquet")))
    if not files:
        raise DataError("it holds no rows, only a header; expected at least one person")
    return Partitions(files, batch.rows_per_part)


def check_ids(admitted: Partitions, name: str) -> None:
    """Refuse an id that occurs twice in a batch; equal hashes raise the suspicion, ids decide."""
    hashes = [pd.util.hash_array(ids, categorize=False) for ids in _ids(admitted)]
    suspects = np.flatnonzero(repeated(np.concatenate(hashes)))
    if not suspects.size:
        return
    found, first = [], 0
    for ids in _ids(admitted):
        here = suspects[(suspects >= first) & (suspects < first + len(ids))]
        found += ids[here - first].tolist()
        first += len(ids)
    twice = pd.Series(found).duplicated(keep=False).to_numpy(np.bool_)
    if twice.any():
        rows = suspects[twice]
        listed = shown(dict.fromkeys(map(repr, np.array(found, dtype=object)[twice])))
        raise DataError(
            f"batch {name!r} is not scored, nobody in it: duplicated ids {listed} in rows "
            f"{shown(rows)} of the batch, counted from 0; each person needs their own",
            rows=rows,
        )


def _ids(admitted: Partitions) -> Iterator[NDArray[np.object_]]:
    import pyarrow.parquet as pq

    for path in admitted.files:
        yield pq.read_table(path, columns=[ROW_ID])[ROW_ID].to_numpy(zero_copy_only=False)
