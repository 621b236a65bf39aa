"""A table in parquet parts, mapped part by part: out of core, resumable, on any engine.

A worker reads its rows, works on them and writes the result itself; only names
and timings travel. The result folder appears whole. What an interrupted run had
finished is kept beside it and not done again, as long as nothing changed.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove.data.partitions import PART, Partitions, group_sizes, repeating_words
from countermove.data.storage import beside, put_in_place, replace_file, restore
from countermove.errors import CountermoveError, DataError, PartError, shown
from countermove.execution._mapping import Mapper
from countermove.execution._progress import part_bar

if TYPE_CHECKING:
    import pyarrow as pa


MANIFEST = "run.json"
"""What the parts in an unfinished folder were made of."""


class PartTask(ABC):
    """Work on the rows of a part; travels to workers by pickle."""

    columns: tuple[str, ...] | None = None
    """Columns it reads; None reads all."""

    @abstractmethod
    def __call__(self, rows: pa.Table, first_row: int) -> pa.Table:
        """Return the result for some rows, one row each.

        Parameters
        ----------
        rows
            As they stand in the file.
        first_row
            Position of the first of them in the whole table.
        """

    @abstractmethod
    def fingerprint(self) -> str:
        """Return what identifies this work: same text, same result."""


@dataclass(frozen=True)
class Piece:
    """Some row groups of one file."""

    number: int
    file: str
    groups: tuple[int, ...]
    first_row: int
    n_rows: int


@dataclass(frozen=True)
class PartTimes:
    """How long one part took, in seconds."""

    part: int
    rows: int
    reading: float
    working: float
    writing: float
    worker: str = ""


@dataclass(frozen=True)
class PartsRun:
    """What mapping a table left behind.

    Parameters
    ----------
    folder
        Holds ``part-00000.parquet`` … in the order of the rows.
    rows, parts
        How many.
    kept
        Parts that an interrupted run had finished already.
    seconds
        Of the whole run.
    times
        One row per part done now.
    """

    folder: Path
    rows: int
    parts: int
    kept: int
    seconds: float
    times: pd.DataFrame

    def result(self) -> Partitions:
        """Return the parts of the result."""
        return Partitions(tuple(sorted(self.folder.glob("*.parquet"))))

    def to_json(self) -> dict[str, Any]:
        """Return the facts of the run, JSON-ready."""
        return {
            "rows": self.rows,
            "parts": self.parts,
            "kept": self.kept,
            "seconds": self.seconds,
            "times": self.times.to_dict("records"),
        }


def map_parts(task: PartTask, parts: Partitions, folder: Path, mapper: Mapper) -> PartsRun:
    """Do a task on every part and put the results into a folder.

    Guarantee: ``folder`` holds all parts of one run, or what it held before. If a part
    fails, the others under way are finished and kept aside; the next call with the same
    task and the same files does only the rest.

    Parameters
    ----------
    task
        What to do with some rows.
    parts
        Parquet files; no more than ``rows_per_part`` rows are held by a worker at once.
    folder
        Where the result goes; replaced whole.
    mapper
        The workers.
    """
    started = time.perf_counter()
    restore(folder)
    pieces = list(pieces_of(parts))
    partial = _prepared(folder, _made_of(task, parts))
    todo = [piece for piece in pieces if not _is_whole(partial, piece)]
    shared = (task, parts.rows_per_part, str(partial.absolute()))
    times = []
    with part_bar(len(pieces), len(pieces) - len(todo)) as advance:
        for done in mapper.map(_do_piece, todo, shared):
            times.append(asdict(done.value) | {"worker": done.worker})
            advance()
    for torn in partial.glob(".part-*"):  # What a killed worker was writing.
        torn.unlink(missing_ok=True)
    (partial / MANIFEST).unlink()
    put_in_place(partial, folder)
    return PartsRun(
        folder=folder,
        rows=sum(piece.n_rows for piece in pieces),
        parts=len(pieces),
        kept=len(pieces) - len(todo),
        seconds=time.perf_counter() - started,
        times=pd.DataFrame(times, columns=list(PartTimes.__dataclass_fields__)),
    )


def _do_piece(shared: tuple[PartTask, int, str], piece: Piece) -> PartTimes:
    """Read, work and write one piece; the file gets its name when it is whole."""
    import pyarrow.parquet as pq

    task, rows_at_once, partial = shared
    path = Path(partial) / PART.format(piece.number)
    hidden = path.with_name(f".{path.name}.{os.getpid()}")
    spent = dict.fromkeys(("reading", "working", "writing"), 0.0)
    writer, row = None, piece.first_row
    try:
        with pq.ParquetFile(piece.file) as file:
            batches = file.iter_batches(
                rows_at_once,
                row_groups=list(piece.groups),
                columns=_columns(task, file),
                use_threads=False,  # A worker is one thread; the others have parts of their own.
            )
            while (rows := _timed(spent, "reading", next, batches, None)) is not None:
                result = _timed(spent, "working", _work, task, rows, row, piece)
                if writer is None:
                    writer = pq.ParquetWriter(
                        hidden, result.schema, use_dictionary=repeating_words(result)
                    )
                _timed(spent, "writing", writer.write_table, result)
                row += len(rows)
        if writer is not None:
            _timed(spent, "writing", writer.close)
        os.replace(hidden, path)
    finally:
        if writer is not None:
            writer.close()
        hidden.unlink(missing_ok=True)
    return PartTimes(
        piece.number, piece.n_rows, spent["reading"], spent["working"], spent["writing"]
    )


def _work(task: PartTask, batch: Any, row: int, piece: Piece) -> Any:
    import pyarrow as pa

    try:
        return task(pa.Table.from_batches([batch]), row)
    except CountermoveError as error:
        rows = [row + position for position in error.rows]
        named = f"rows {shown(rows)}" if rows else f"rows {row} to {row + len(batch) - 1}"
        counted = " (rows counted from the part's first)" if rows else ""
        raise PartError(
            f"part {piece.number} ({Path(piece.file).name}, {named} of the table): "
            f"{error}{counted}. Finished parts are kept; fix the rows and run again",
            rows=rows,
        ) from error


def _timed(spent: dict[str, float], what: str, function: Any, *arguments: Any) -> Any:
    started = time.perf_counter()
    try:
        return function(*arguments)
    finally:
        spent[what] += time.perf_counter() - started


def _columns(task: PartTask, file: Any) -> list[str] | None:
    if task.columns is None:
        return None
    missing = [name for name in task.columns if name not in file.schema_arrow.names]
    if missing:
        raise DataError(
            f"the parts have no column {shown(missing)}; expected {shown(task.columns, 30)}"
        )
    return list(task.columns)


def pieces_of(parts: Partitions) -> Iterator[Piece]:
    """Yield runs of whole row groups of about ``rows_per_part`` rows."""
    number, row = 0, 0
    for path in parts.files:
        groups: list[int] = []
        held = 0
        sizes = group_sizes(path)
        for group, size in enumerate(sizes):
            groups.append(group)
            held += size
            full = group + 1 == len(sizes) or held + sizes[group + 1] > parts.rows_per_part
            if full and held:
                yield Piece(number, str(path.absolute()), tuple(groups), row, held)
                number, row, groups, held = number + 1, row + held, [], 0


def _made_of(task: PartTask, parts: Partitions) -> dict[str, Any]:
    return {"task": task.fingerprint(), "parts": parts.facts()}


def _prepared(folder: Path, made_of: dict[str, Any]) -> Path:
    """Return the unfinished folder; empty unless it was begun for the same work."""
    partial = beside(folder, "partial")
    manifest = partial / MANIFEST
    text = json.dumps(made_of, sort_keys=True)
    if not manifest.is_file() or manifest.read_text() != text:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        replace_file(manifest, text.encode())
    return partial


def _is_whole(partial: Path, piece: Piece) -> bool:
    """Return whether a part is there, readable and complete."""
    path = partial / PART.format(piece.number)
    if not path.is_file():
        return False
    try:
        return sum(group_sizes(path)) == piece.n_rows
    except DataError:
        return False  # Torn by a power cut: the part is done again.


def matrix_of(rows: pa.Table, columns: Sequence[str]) -> NDArray[np.float64]:
    """Return columns as one C-ordered matrix; cells without a value are named."""
    X = np.empty((len(rows), len(columns)))
    for j, name in enumerate(columns):
        column = rows[name]
        if column.null_count:
            empty = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))
            raise DataError(f"column {name!r} has cells without a value", rows=empty)
        X[:, j] = column.to_numpy()
    return X
