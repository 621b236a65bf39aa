"""Files as people have them: text in some encoding, compressed or not, parquet, workbooks.

Text is read as text, so that nothing is guessed before the schema is applied. Lines that
are no rows are set aside with their numbers; the rest of the file is read.
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pandas as pd

from countermove.data._text_files import BLOCK, BrokenLine, Records, decoded_lines
from countermove.errors import DataError, shown

if TYPE_CHECKING:
    import pyarrow as pa

PACKED = (".gz", ".xz", ".bz2", ".zip")
TEXT = (".csv", ".tsv")
WORKBOOKS = (".xlsx", ".xlsm")
SUFFIXES = (
    ".csv",
    ".parquet",
    *(kind + packed for kind in TEXT for packed in ("", *PACKED) if kind + packed != ".csv"),
    *WORKBOOKS,
)
"""Formats a user may bring, the usual ones first."""

PANDAS_INDEX = re.compile(r"__index_level_\d+__")

BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Marks that leave no doubt about an encoding; the longer ones before those they begin with."""

MOST_BROKEN = 0.5
"""From this share of broken lines on, a file is no table of that header and delimiter."""


@dataclass(frozen=True)
class FileFormat:
    """How a text file or a workbook is laid out; parquet files say so themselves.

    Parameters
    ----------
    encoding
        Of the text. A byte-order mark counts more.
    delimiter
        Between the cells; of ``.tsv`` files a tab.
    header
        Line (of a workbook: row) that holds the names of the columns, counted from 1; what stands
        above it is not read.
    sheet
        Of a workbook; None where it has one sheet only.
    rename
        Whether columns without a name, or with one that is there twice, get a number:
        ``column_4``, ``income_2``. Otherwise they are refused.
    """

    encoding: str = "utf-8"
    delimiter: str = ","
    header: int = 1
    sheet: str | None = None
    rename: bool = False

    def to_mapping(self) -> dict[str, Any]:
        """Return what differs from the default, as a schema's ``file:`` would hold it."""
        default = {field.name: field.default for field in fields(self)}
        return {key: value for key, value in asdict(self).items() if value != default[key]}


PLAIN = FileFormat()


@dataclass(frozen=True)
class RawTable:
    """The rows of a file, cells as they came, and the lines that are no rows."""

    frame: pd.DataFrame
    broken: tuple[BrokenLine, ...] = ()

    def whole(self, origin: str) -> pd.DataFrame:
        """Return the rows, or refuse the file for its broken lines."""
        if not self.broken:
            return self.frame
        lines = shown(f"{each.line} ({each.found})" for each in self.broken)
        raise DataError(
            f"{origin} is not a table: {len(self.broken)} line(s) do not have "
            f"{self.broken[0].expected}: {lines}"
        )


def table_suffix(path: Path) -> str | None:
    """Return the ending that says how a file is read, such as ``.csv.gz``; None: no table."""
    name = path.name.lower()
    return max((each for each in SUFFIXES if name.endswith(each)), key=len, default=None)


def table_stem(path: Path) -> str:
    """Return a file's name without the ending that says how it is read."""
    return path.name[: -len(table_suffix(path) or "") or None]


def read_table(path: Path, layout: FileFormat = PLAIN) -> RawTable:
    """Read a file: its rows, and the lines that are no rows.

    Raises
    ------
    DataError
        If the file is missing, empty, of another format or encoding, or has columns without a
        name or with one that is there twice.
    """
    parts = list(read_pieces(path, layout))
    if len(parts) == 1:
        return parts[0]
    frame = pd.concat([part.frame for part in parts], ignore_index=True)
    return RawTable(frame, tuple(line for part in parts for line in part.broken))


def read_pieces(
    path: Path, layout: FileFormat = PLAIN, rows: int | None = None
) -> Iterator[RawTable]:
    """Yield a file some rows at a time (None: as many as there are); at least one piece."""
    suffix = table_suffix(path)
    if suffix is None:
        expected = f"{', '.join(SUFFIXES[:2])}, .csv.gz, .tsv or .xlsx"
        raise DataError(f"{path}: unknown format {path.suffix!r}; expected {expected}")
    try:
        if suffix == ".parquet":
            yield from _parquet_pieces(path, rows)
        elif suffix in WORKBOOKS:
            from countermove.data._workbooks import read_sheet

            yield from _cut(read_sheet(path, layout), rows)
        else:
            with opened(path) as stream:
                yield from text_pieces(stream, _of_suffix(layout, suffix), str(path), rows)
    except FileNotFoundError as error:
        raise DataError(f"missing file: {path}") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def _cut(table: RawTable, rows: int | None) -> Iterator[RawTable]:
    """Yield a table some rows at a time; the first piece has the broken lines."""
    step = rows or max(len(table.frame), 1)
    for start in range(0, max(len(table.frame), 1), step):
        frame = table.frame.iloc[start : start + step].reset_index(drop=True)
        yield RawTable(frame, table.broken if start == 0 else ())


def _of_suffix(layout: FileFormat, suffix: str) -> FileFormat:
    tabs = suffix.startswith(".tsv") and layout.delimiter == PLAIN.delimiter
    return replace(layout, delimiter="\t") if tabs else layout


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for its bytes, unpacked where its name says so; or say why that cannot be."""
    import lzma
    import zlib

    damaged = (OSError, EOFError, RuntimeError, zipfile.BadZipFile, lzma.LZMAError, zlib.error)
    try:
        with _unpacked(path) as stream:
            yield stream
    except FileNotFoundError as error:
        raise DataError(f"missing file: {path}") from error
    except damaged as error:
        raise DataError(f"{path} cannot be read: {error}") from error


@contextmanager
def _unpacked(path: Path) -> Iterator[IO[bytes]]:
    import bz2
    import gzip
    import lzma

    unpack: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
    if path.suffix.lower() != ".zip":
        with unpack.get(path.suffix.lower(), open)(path, "rb") as stream:
            yield stream
        return
    with zipfile.ZipFile(path) as archive:
        inside = [name for name in archive.namelist() if not name.endswith("/")]
        if len(inside) != 1:
            raise DataError(f"{path} holds {len(inside)} files; expected one table")
        with archive.open(inside[0]) as stream:
            yield stream


def text_pieces(
    stream: IO[bytes], layout: FileFormat, origin: str, rows: int | None = None
) -> Iterator[RawTable]:
    """Yield the rows of a text with delimiters."""
    import pyarrow as pa

    start = stream.read(BLOCK)
    marked = next((e for m, e in BYTE_ORDER_MARKS.items() if start.startswith(m)), None)
    encoding = marked or layout.encoding
    _refuse_other_encoding(start, encoding, origin)
    blocks = decoded_lines(stream, encoding, start)
    try:
        header, first, blocks = _header(blocks, layout, origin)
        records = Records(len(header), layout.delimiter, first)
        held: list[pa.Table] = []
        reported, good = 0, 0
        for table in records.tables(blocks):
            held.append(table)
            good += len(table)
            while rows is not None and sum(map(len, held)) >= rows:
                whole = pa.concat_tables(held)
                yield RawTable(_frame(whole[:rows], header), tuple(records.broken[reported:]))
                held, reported = [whole[rows:]], len(records.broken)
        _refuse_no_table(records, good, origin)
        if sum(map(len, held)) or not good or len(records.broken) > reported:
            rest = pa.concat_tables(held) if held else None
            yield RawTable(_frame(rest, header), tuple(records.broken[reported:]))
    except UnicodeDecodeError as error:
        raise _undecodable(error, encoding, origin) from error


def _refuse_other_encoding(start: bytes, encoding: str, origin: str) -> None:
    """Refuse UTF-8 under another name: every accent would silently become two odd characters."""
    if start.isascii() or codecs.lookup(encoding).name.startswith("utf"):
        return
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return
    raise DataError(
        f"{origin} is UTF-8, but the schema says `file: {{encoding: {encoding}}}`; save it as the "
        "schema says, or change the schema"
    )


def _undecodable(error: UnicodeDecodeError, encoding: str, origin: str) -> DataError:
    name = "UTF-8" if encoding.startswith("utf-8") else encoding
    place = f" at byte {error.start}" if error.start < 4096 else ""
    return DataError(
        f"{origin} is not {name}{place}; save it as CSV UTF-8, or say in the schema what it is, as "
        "in `file: {encoding: cp1252}` (`kedro countermove schema` finds out)"
    )


def _header(
    blocks: Iterator[list[str]], layout: FileFormat, origin: str
) -> tuple[list[str], int, Iterator[list[str]]]:
    """Return the names of the columns, the line that follows them, and the lines from there on."""
    skipped = 0
    for lines in blocks:
        above = min(max(layout.header - 1 - skipped, 0), len(lines))
        skipped += above
        rest = iter(lines[above:])
        taken = 0
        for line in rest:
            taken += 1
            if line.strip() or layout.header > 1:
                lines_left = lines[above + taken :]
                found, more = _header_cells(line, lines_left, layout.delimiter)
                names = header_names(found, layout, origin)
                return names, skipped + taken + more + 1, _chained(lines_left[more:], blocks)
        skipped += taken
    raise DataError(f"{origin} is empty; expected a header and rows")


def _header_cells(line: str, following: list[str], delimiter: str) -> tuple[list[str], int]:
    """Return the cells of a header and how many further lines it takes."""
    lines = iter([line, *following])
    reader = csv.reader((f"{each}\n" for each in lines), delimiter=delimiter)
    return next(reader), reader.line_num - 1


def _chained(lines: list[str], blocks: Iterator[list[str]]) -> Iterator[list[str]]:
    yield lines
    yield from blocks


def header_names(found: Sequence[object], layout: FileFormat, origin: str) -> list[str]:
    """Return the names of the columns, or say what is wrong with them."""
    from countermove.data.checks import column_problems, raise_all

    names = ["" if name is None else str(name) for name in found]
    for separator in (",", ";", "\t", "|"):
        if len(names) == 1 and separator in names[0]:
            expected = "commas" if layout.delimiter == "," else repr(layout.delimiter)
            raise DataError(
                f"{origin} is separated by {separator!r}; expected {expected}: say so in the "
                f"schema, as in `file: {{delimiter: {separator!r}}}`"
            )
    if layout.rename:
        return _numbered(names)
    if not all(name.strip() for name in names):
        raise DataError(
            f"{origin}: a column has no name in the header; name it, or save the table without "
            "its row numbers, or say `file: {rename: true}` in the schema"
        )
    raise_all(column_problems(names, (), names), origin)
    return names


def _numbered(names: Sequence[str]) -> list[str]:
    """Return the names with a number where one is empty or was there before."""
    taken = Counter(name.strip() for name in names)
    seen: Counter[str] = Counter()
    result = []
    for place, written in enumerate(names, start=1):
        name = written.strip() or f"column_{place}"
        seen[name] += 1
        while seen[name] > 1 and taken[f"{name}_{seen[name]}"]:
            seen[name] += 1
        result.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return result


def _frame(table: pa.Table | None, header: Sequence[str]) -> pd.DataFrame:
    if table is None:
        return pd.DataFrame({name: pd.Series(dtype="str") for name in header})
    frame: pd.DataFrame = table.to_pandas()
    return frame.set_axis(list(header), axis=1)


def _refuse_no_table(records: Records, good: int, origin: str) -> None:
    """Refuse a file most of whose lines are no rows under its header."""
    broken = len(records.broken)
    if broken and broken > MOST_BROKEN * (good + broken):
        first = records.broken[0]
        raise DataError(
            f"{origin} is not a table: {broken} of {good + broken} lines have more cells than the "
            f"header has columns, or fewer, the first one line {first.line} ({first.found}); "
            f"expected {first.expected}. Are delimiter and header line right?"
        )


def table_content(frame: pd.DataFrame, path: Path, layout: FileFormat = PLAIN) -> bytes:
    """Return rows as the content of a file of that name and layout; what stood above them stays."""
    suffix = table_suffix(path) or ""
    if suffix == ".parquet":
        return bytes(frame.to_parquet(None))
    target = io.BytesIO()
    if suffix in WORKBOOKS:
        sheet = layout.sheet or "Sheet1"
        frame.to_excel(target, sheet_name=sheet, startrow=layout.header - 1, index=False)
        return target.getvalue()
    layout = _of_suffix(layout, suffix)
    text = frame.to_csv(sep=layout.delimiter, index=False)
    with opened(path) as stream:
        blocks = decoded_lines(stream, layout.encoding)
        above = list(itertools.islice(itertools.chain.from_iterable(blocks), layout.header - 1))
    return _packed("".join(f"{line}\n" for line in above) + text, path, layout)


def _packed(text: str, path: Path, layout: FileFormat) -> bytes:
    import bz2
    import gzip
    import lzma

    content = text.encode(layout.encoding)
    if path.suffix.lower() == ".zip":
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(path.name.removesuffix(path.suffix), content)
        return target.getvalue()
    pack: dict[str, Any] = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}
    packed: bytes = pack.get(path.suffix.lower(), bytes)(content)
    return packed


def _parquet_pieces(path: Path, rows: int | None) -> Iterator[RawTable]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from countermove.data.checks import column_problems, raise_all

    try:
        with pq.ParquetFile(path) as file:
            # An unnamed pandas index is no data.
            names = [name for name in file.schema_arrow.names if not PANDAS_INDEX.fullmatch(name)]
            raise_all(column_problems(names, (), names), str(path))
            if rows is None:
                yield RawTable(file.read(columns=names).to_pandas(ignore_metadata=True))
                return
            for batch in file.iter_batches(rows, columns=names):
                yield RawTable(batch.to_pandas(ignore_metadata=True))
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{path} is not a parquet file that can be read: {error}") from error
