"""A labelled batch as it came: its table, the marker beside it, and the date it is of."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from countermove.data.files import BrokenLine, FileFormat, read_table, table_stem, table_suffix
from countermove.data.sources import table_hash
from countermove.data.storage import sha256_of
from countermove.errors import BlockedError, DataError

BATCH = "batch"
"""Column that says which batch a row came with."""
MARKER = ".ready"
"""What is added to a file's name for the marker that says it is whole."""
Ready = Literal["none", "marker", "rows"]
DATE = re.compile(
    r"(?<!\d)((?:19|20|21)\d\d)"
    r"(?:-?(?P<month>\d\d)(?:-?(?P<day>\d\d))?|-?[Qq](?P<quarter>[1-4])|-?[Ww](?P<week>\d\d))(?!\d)"
)


@dataclass(frozen=True)
class ReadyMarker:
    """What the one who wrote a file says about it: that it is whole, and how that can be told."""

    rows: int | None = None
    sha256: str | None = None
    date: str | None = None


@dataclass(frozen=True)
class LabelledBatch:
    """A table as it came: its name, its cells, and lines of its file that are no rows."""

    name: str
    raw: pd.DataFrame
    broken: tuple[BrokenLine, ...] = ()
    marker: ReadyMarker | None = None
    mismatch: str | None = None  # how the file is not what its marker says
    problem: str | None = None  # why the file cannot be read
    content: str | None = None  # SHA-256 of a file that cannot be read
    changed_at: datetime | None = None  # when the file was last written to
    file: str | None = None

    @property
    def sha256(self) -> str:
        """Hash of the content."""
        return table_hash(self.raw) if self.content is None else self.content

    @property
    def rows(self) -> int:
        """How many rows the file has, those that are broken lines included."""
        return len(self.raw) + len(self.broken)

    @property
    def date(self) -> date | None:
        """The first day of the time the batch is of, from its marker or its name."""
        said = None if self.marker is None else self.marker.date
        return date_in(self.name if said is None else said)

    def waits(self, ready: Ready) -> str | None:
        """Say what an unused batch waits for; None: for nothing."""
        if ready != "none" and self.marker is None:
            return f"waits for its ready marker {self.file or self.name}{MARKER}"
        if ready == "rows" and self.marker is not None and self.marker.rows is None:
            return "waits for the number of its rows, which its ready marker does not declare"
        declared = None if self.marker is None else self.marker.rows
        if self.problem is None and declared is not None and declared != self.rows:
            return f"has {self.rows} rows, and its ready marker declares {declared}"
        return self.mismatch


def date_in(name: str) -> date | None:
    """Return the first day of the day, week, month or quarter that a name holds.

    >>> date_in("loans_2026-11.csv"), date_in("20261116"), date_in("2026-Q4"), date_in("monday")
    (datetime.date(2026, 11, 1), datetime.date(2026, 11, 16), datetime.date(2026, 10, 1), None)
    """
    for found in DATE.finditer(name):
        year, (month, day) = int(found[1]), (found["month"], found["day"])
        with suppress(ValueError):
            if found["week"]:
                return date.fromisocalendar(year, int(found["week"]), 1)
            if found["quarter"]:
                return date(year, 3 * int(found["quarter"]) - 2, 1)
            return date(year, int(month), int(day or 1))
    return None


def in_order(batches: Sequence[LabelledBatch]) -> list[LabelledBatch]:
    """Return batches by date where all of them have one, otherwise by name."""
    if any(batch.date is None for batch in batches):
        return sorted(batches, key=lambda batch: batch.name)
    return sorted(batches, key=lambda batch: (batch.date or date.min, batch.name))


def read_folder(folder: Path, layout: FileFormat) -> list[LabelledBatch]:
    """Read every batch of a folder, in order; one that cannot be read says so."""
    files = sorted(path for path in folder.glob("*") if table_suffix(path) is not None)
    names = [table_stem(path) for path in files]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise BlockedError(f"two files for batch {twice[0]!r} in {folder}; keep one")
    return in_order([_read(path, layout) for path in files])


def _read(path: Path, layout: FileFormat) -> LabelledBatch:
    name = table_stem(path)
    try:
        changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        marker, mismatch = _marker(path)
        digest = sha256_of(path)
    except OSError as error:
        raise BlockedError(f"batch {name!r} cannot be read: {error}") from error
    if marker is not None and marker.sha256 not in (None, digest):
        mismatch = f"has not the SHA-256 that its ready marker declares, {marker.sha256}"
    beside: dict[str, Any] = {
        "marker": marker,
        "mismatch": mismatch,
        "changed_at": changed,
        "file": path.name,
    }
    try:
        table = read_table(path, layout)
    except DataError as error:
        problem = f"cannot be read: {error}"
        return LabelledBatch(name, pd.DataFrame(), problem=problem, content=digest, **beside)
    cut = None
    if _cut_off(path, table.broken):
        cut = (
            f"ends in the middle of line {table.broken[-1].line}, as a file does that is still "
            "being uploaded; bring it whole"
        )
    return LabelledBatch(name, table.frame, table.broken, problem=cut, **beside)


def _cut_off(path: Path, broken: Sequence[BrokenLine]) -> bool:
    """Return whether a text's last line is broken and does not end."""
    if not broken or path.suffix.lower() not in (".csv", ".tsv"):
        return False
    last = path.read_bytes().rpartition(b"\n")[2].decode(errors="replace").strip()
    return bool(last) and last.startswith(broken[-1].found.partition(": ")[2].removesuffix("..."))


def _marker(path: Path) -> tuple[ReadyMarker | None, str | None]:
    """Return what the marker beside a file declares, and what is wrong with it."""
    beside = path.with_name(path.name + MARKER)
    if not beside.is_file():
        return None, None
    said = beside.read_text("utf-8", errors="replace").strip()
    try:
        return _declared(json.loads(said or "{}")), None
    except (ValueError, TypeError, RecursionError):
        return ReadyMarker(), (
            f"has a ready marker that cannot be read ({said[:80]!r}); expected nothing, a number "
            'of rows, or {"rows": 1500, "sha256": "…", "date": "2026-11"}'
        )


def _declared(record: Any) -> ReadyMarker:
    """Return what a marker declares; raise if it is not of its form."""
    if isinstance(record, int) and not isinstance(record, bool):
        return ReadyMarker(rows=record)
    marker = ReadyMarker(**record)
    given = {"rows": (marker.rows, int), "sha256": (marker.sha256, str), "date": (marker.date, str)}
    odd = [name for name, (value, kind) in given.items() if not isinstance(value, kind | None)]
    if odd or (marker.date is not None and date_in(marker.date) is None):
        raise ValueError(odd)
    return marker
