"""Tables too large to hold: directories of parquet files, read and written a part at a time.

One directory per split, ``<folder>/<split>/part-00000.parquet``. A folder is
replaced whole: an interrupted write leaves the previous one readable.
"""

from __future__ import annotations

import math
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from countermove.data.files import (
    PLAIN,
    SUFFIXES,
    FileFormat,
    RawTable,
    read_pieces,
    table_suffix,
)
from countermove.data.sources import EMBEDDED, embedded_file, read_file
from countermove.data.storage import beside, put_in_place, restore
from countermove.errors import DataError, ParameterError

if TYPE_CHECKING:
    import pyarrow as pa

PART = "part-{:05d}.parquet"


@dataclass(frozen=True)
class Partitions:
    """The parts of one table, in order.

    Parameters
    ----------
    files
        Parquet or CSV files; together they are the table.
    rows_per_part
        No more rows than this are held at once; a larger file is read in pieces.
    layout
        Of the files that are text or workbooks, as the schema's ``file:`` says.
    """

    files: tuple[Path, ...]
    rows_per_part: int = 100_000
    layout: FileFormat = PLAIN

    def __post_init__(self) -> None:
        if self.rows_per_part < 1:
            raise ParameterError(f"rows_per_part must be at least 1, got {self.rows_per_part}")
        if not self.files:
            raise DataError("a table in parts needs at least one file")

    def __iter__(self) -> Iterator[pd.DataFrame]:
        """Yield the parts one after the other; only one is held."""
        for _, part in self.named():
            yield part

    def named(self) -> Iterator[tuple[Path, pd.DataFrame]]:
        """Yield every part with the file it comes from; lines that are no rows are refused."""
        for file, part in self.raw():
            yield file, part.whole(str(file))

    def raw(self) -> Iterator[tuple[Path, RawTable]]:
        """Yield every part with the file it comes from and the lines that are no rows."""
        for file in self.files:
            for part in read_pieces(file, self.layout, self.rows_per_part):
                yield file, part

    def columns(self, names: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Yield some columns of every part; of parquet files, only they are read."""
        import pyarrow.parquet as pq

        for file in self.files:
            if table_suffix(file) != ".parquet":
                alone = replace(self, files=(file,))
                yield from (part[list(names)] for part in alone)
                continue
            with pq.ParquetFile(file) as rows:
                for batch in rows.iter_batches(self.rows_per_part, columns=list(names)):
                    yield batch.to_pandas(ignore_metadata=True)

    def facts(self) -> dict[str, Any]:
        """Return what identifies these parts: names, sizes and times of the files."""
        stats = [(str(path.absolute()), path.stat()) for path in self.files]
        files = [[name, stat.st_size, stat.st_mtime_ns] for name, stat in stats]
        return {"files": files, "rows_per_part": self.rows_per_part}

    def read(self) -> pd.DataFrame:
        """Return the whole table; for tables that fit."""
        return pd.concat(list(self), ignore_index=True)

    def draw(self, n: int, random: np.random.Generator) -> pd.DataFrame:
        """Return about ``n`` rows (or all), in order, as many of every part as its share."""
        if n < 1:
            raise ParameterError(f"at least one row must be drawn, got {n}")
        total = max(sum(_rows_in(file, self.layout) for file in self.files), 1)
        kept = []
        for part in self:
            wanted = min(len(part), math.ceil(n * len(part) / total))
            kept.append(part.iloc[np.sort(random.permutation(len(part))[:wanted])])
        return pd.concat(kept, ignore_index=True)


def raw_partitions(
    name: str, folder: Path, rows_per_part: int, layout: FileFormat = PLAIN
) -> Partitions:
    """Return the parts of a raw table: the user's, or the one that the package carries.

    Parameters
    ----------
    name
        Name of the dataset.
    folder
        Where users put ``<name>/`` (a directory of files) or one ``<name>.parquet``
        or ``<name>.csv``.
    rows_per_part, layout
        See `Partitions`.

    Raises
    ------
    DataError
        If there is no table, or more than one.
    """
    directory = Path(folder) / name
    alone = [directory.with_name(name + suffix) for suffix in SUFFIXES]
    found = [path for path in (directory, *alone) if path.exists()]
    if not found and name in EMBEDDED:
        found = [embedded_file(name)]
    if not found:
        listed = " or ".join(str(path) for path in alone[:2])
        raise DataError(f"missing table: {name!r} is expected as files in {directory}, or {listed}")
    if len(found) > 1:
        raise DataError(f"two tables for {name!r}: {found[0]} and {found[1]}; keep one")
    if found[0] != directory:
        return Partitions((found[0],), rows_per_part, layout)
    files = sorted(path for path in directory.iterdir() if table_suffix(path) is not None)
    if not files:
        raise DataError(f"{directory} holds no {' or '.join(SUFFIXES[:2])} file")
    return Partitions(tuple(files), rows_per_part, layout)


def read_parts(folder: Path) -> dict[str, Partitions]:
    """Return the splits of a folder that `write_parts` wrote."""
    restore(folder)
    if not folder.is_dir():
        raise DataError(f"missing folder: {folder}; run the ingest of partitions first")
    splits = sorted(path for path in folder.iterdir() if path.is_dir())
    return {path.name: Partitions(tuple(sorted(path.glob("*.parquet")))) for path in splits}


def write_parts(parts: Iterable[tuple[str, pd.DataFrame]], folder: Path) -> None:
    """Write (split, rows) as they come, then put the folder in place of the previous one."""
    partial = beside(folder, "partial")
    restore(folder)
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    written: Counter[str] = Counter()
    for split, part in parts:
        if len(part):
            (partial / split).mkdir(exist_ok=True)
            write_part(part, partial / split / PART.format(written[split]))
            written[split] += 1
    put_in_place(partial, folder)


def write_part(part: pd.DataFrame, path: Path) -> None:
    """Write one part."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pandas(part, preserve_index=False)
    pq.write_table(table, path, use_dictionary=repeating_words(table))


def repeating_words(table: pa.Table) -> list[str]:
    """Return the columns for which a dictionary pays: text that repeats; numbers it only slows."""
    import pyarrow as pa

    words = [field.name for field in table.schema if not pa.types.is_primitive(field.type)]
    return [name for name in words if name != "row_id"]


def _rows_in(path: Path, layout: FileFormat) -> int:
    """Return the number of rows of a file; of a parquet file without reading them."""
    return sum(group_sizes(path)) if path.suffix == ".parquet" else len(read_file(path, layout))


def group_sizes(path: Path) -> list[int]:
    """Return how many rows each row group of a parquet file has, as its footer says."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.suffix != ".parquet":
        raise DataError(f"{path} is not a parquet file; 'ingest_parts' makes parts of a table")
    try:
        about = pq.read_metadata(path)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} is not a parquet file that can be read: {error}") from error
    return [about.row_group(group).num_rows for group in range(about.num_row_groups)]
