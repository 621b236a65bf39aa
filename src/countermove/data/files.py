"""Files as people have them: text in some encoding, compressed or not, parquet, workbooks.

Text is read as text, so that nothing is guessed before the schema is applied. Lines that
are no rows are set aside with their numbers; the rest of the file is read.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import itertools
import lzma
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from countermove.errors import DataError, nearest, shown

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

BLOCK = 1 << 23
"""Bytes that are read at once: no row is longer."""

LONGEST = 60
"""Characters of a broken line that are shown."""

EXCEL = "countermove[excel]"
"""The extra that brings the package that reads workbooks."""


@dataclass(frozen=True)
class BrokenLine:
    """A line of a file that is no row: where it stands, what was found and what was expected."""

    line: int
    """Counted from 1, the header included, blank lines left out; a row with line breaks is one."""
    found: str
    expected: str


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
            yield from _cut(_read_sheet(path, layout), rows)
        else:
            yield from _text_pieces(path, _of_suffix(layout, suffix), rows)
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


def text_lines(path: Path, encoding: str, most: int) -> list[str]:
    """Return the first lines of a text without their ends."""
    with opened(path) as stream, io.TextIOWrapper(stream, encoding) as text:
        return [line.removesuffix("\n") for line in itertools.islice(text, most)]


def _text_pieces(path: Path, layout: FileFormat, rows: int | None) -> Iterator[RawTable]:
    """Yield the rows of a text with delimiters."""
    import pyarrow as pa

    encoding = _encoding(path, layout.encoding)
    try:
        header, above = _header(path, encoding, layout)
        with opened(path) as stream:
            records = _Records(len(header), layout.delimiter)
            held: list[pa.Table] = []
            reported, good = 0, 0
            for table in records.tables(stream, encoding, above):
                held.append(table)
                good += len(table)
                while rows is not None and sum(map(len, held)) >= rows:
                    whole = pa.concat_tables(held)
                    yield RawTable(_frame(whole[:rows], header), tuple(records.broken[reported:]))
                    held, reported = [whole[rows:]], len(records.broken)
        _refuse_no_table(records.broken, good, path)
        if sum(map(len, held)) or not good or len(records.broken) > reported:
            rest = pa.concat_tables(held) if held else None
            yield RawTable(_frame(rest, header), tuple(records.broken[reported:]))
    except (UnicodeError, pa.ArrowInvalid) as error:
        if isinstance(error, pa.ArrowInvalid) and "UTF8" not in str(error):
            raise DataError(
                f"{path} cannot be read: {error}; is there a quote that is never closed?"
            ) from error
        raise DataError(
            f"{path} is not {encoding.upper()}; save it as CSV UTF-8, or say in the schema what "
            "it is, as in `file: {encoding: cp1252}` (`kedro countermove schema` finds out)"
        ) from error


def _encoding(path: Path, encoding: str) -> str:
    """Return the encoding of a text; its mark counts more than what the schema says."""
    with opened(path) as stream:
        start = stream.read(BLOCK)
    marked = next((e for mark, e in BYTE_ORDER_MARKS.items() if start.startswith(mark)), None)
    other = marked or encoding
    if not start.isascii() and not codecs.lookup(other).name.startswith("utf"):
        # UTF-8 under another name: every accent would silently become two odd characters.
        try:
            codecs.getincrementaldecoder("utf-8")().decode(start)
        except UnicodeDecodeError:
            return other
        raise DataError(
            f"{path} is UTF-8, but the schema says `file: {{encoding: {encoding}}}`; save it as "
            "the schema says, or change the schema"
        )
    return other


def _header(path: Path, encoding: str, layout: FileFormat) -> tuple[list[str], int]:
    """Return the names of the columns, and how many lines end with theirs."""
    with opened(path) as stream, io.TextIOWrapper(stream, encoding) as text:
        above = sum(1 for _ in itertools.islice(text, layout.header - 1))
        for line in text:
            above += 1
            if line.strip() or layout.header > 1:
                reader = csv.reader(itertools.chain([line], text), delimiter=layout.delimiter)
                found = next(reader)
                return header_names(found, layout, str(path)), above + reader.line_num - 1
    raise DataError(f"{path} is empty; expected a header and rows")


class _Records:
    """The rows under a header, and the lines that are none."""

    def __init__(self, width: int, delimiter: str) -> None:
        self.width = width
        self.delimiter = delimiter
        self.broken: list[BrokenLine] = []

    def tables(self, stream: IO[bytes], encoding: str, above: int) -> Iterator[pa.Table]:
        """Yield the good rows of each block, columns ``0, 1, …`` of text."""
        import pyarrow as pa
        from pyarrow import csv as arrow

        names = [str(n) for n in range(self.width)]
        reader = arrow.open_csv(
            stream,
            # Lines are numbered by one thread only.
            arrow.ReadOptions(
                use_threads=False, block_size=BLOCK, column_names=names, skip_rows=above,
                encoding=encoding,
            ),
            arrow.ParseOptions(
                delimiter=self.delimiter, newlines_in_values=True, ignore_empty_lines=True,
                invalid_row_handler=self._refuse,
            ),
            arrow.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )  # fmt: skip
        line, last = above, None
        for batch in reader:
            if last is not None:
                yield last
            last = self._closed(pa.Table.from_batches([batch]), line)
            line += len(batch)
            self.broken.sort(key=lambda each: each.line)
        if last is not None and len(last):
            # A quote that is open at the end of the file holds its line break.
            end = [column[-1].as_py() for column in last.columns]
            if any(cell.endswith(("\n", "\r")) for cell in end):
                self._add(line, "a quote that is not closed", self.delimiter.join(end))
                last = last[:-1]
            yield last

    def _refuse(self, row: Any) -> str:
        """Set a line aside that has too many or too few cells; blank lines are none."""
        if row.text.strip():
            self._add(row.number, f"{row.actual_columns} cells", row.text)
        return "skip"

    def _closed(self, table: pa.Table, line: int) -> pa.Table:
        """Return the rows without those whose cells swallowed other rows."""
        import pyarrow.compute as pc

        if self.width == 1:
            return table
        kept = np.ones(len(table), dtype=np.bool_)
        for column in table.columns:
            several = np.asarray(pc.match_substring_regex(column, "[\r\n]"))
            for row in np.flatnonzero(several).tolist():
                # A quote that was never closed: what follows it looks like rows.
                inside = column[row].as_py().splitlines()[1:]
                swallowed = [text for text in inside if self._is_row(text)]
                kept[row] &= not swallowed
                for n, text in enumerate(
                    [f"… {column[row].as_py()}", *swallowed] * bool(swallowed)
                ):
                    self._add(line + row + n + 1, "a quote that is not closed", text)
        return table if kept.all() else table.filter(kept)

    def _is_row(self, text: str) -> bool:
        return text.count(self.delimiter) >= self.width - 1

    def _add(self, line: int, what: str, text: str) -> None:
        first = text.splitlines()[0] if text.splitlines() else text
        text = first if len(first) <= LONGEST else first[: LONGEST - 3] + "..."
        expected = f"{self.width} cells separated by {self.delimiter!r}"
        self.broken.append(BrokenLine(line, f"{what}: {text}", expected))


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


def _refuse_no_table(broken: Sequence[BrokenLine], good: int, path: Path) -> None:
    """Refuse a file most of whose lines are no rows under its header."""
    if len(broken) > MOST_BROKEN * (good + len(broken)):
        first = broken[0]
        raise DataError(
            f"{path} is not a table: {len(broken)} of {good + len(broken)} lines have more cells "
            f"than the header has columns, or fewer, the first one line {first.line} "
            f"({first.found}); expected {first.expected}. Are delimiter and header line right?"
        )


def table_content(frame: pd.DataFrame, path: Path, layout: FileFormat = PLAIN) -> bytes:
    """Return rows as the content of a file of that name and layout; what stood above them stays."""
    suffix = table_suffix(path) or ""
    if suffix == ".parquet":
        return bytes(frame.to_parquet(None))
    target = io.BytesIO()
    if suffix in WORKBOOKS:
        _workbook_reader()
        sheet = layout.sheet or "Sheet1"
        frame.to_excel(target, sheet_name=sheet, startrow=layout.header - 1, index=False)
        return target.getvalue()
    layout = _of_suffix(layout, suffix)
    text = frame.to_csv(sep=layout.delimiter, index=False)
    above = text_lines(path, layout.encoding, layout.header - 1)
    return _packed("".join(f"{line}\n" for line in above) + text, path, layout)


def _packed(text: str, path: Path, layout: FileFormat) -> bytes:
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


def sheet_names(path: Path) -> list[str]:
    """Return the names of a workbook's sheets."""
    return list(_sheets(path, None, 1))


def sheet_rows(path: Path, sheet: str | None, most: int | None = None) -> list[list[Any]]:
    """Return the cells of a sheet row by row, those behind the last value left out."""
    names = sheet_names(path)
    if sheet is None and len(names) > 1:
        raise DataError(
            f"{path} has {len(names)} sheets, {shown(map(repr, names))}; say which one in the "
            f"schema, as in `file: {{sheet: {names[0]}}}`"
        )
    if sheet is not None and sheet not in names:
        raise DataError(f"{path} has no sheet {sheet!r}; {nearest(sheet, names)}")
    chosen = names[0] if sheet is None else sheet
    cells = _sheets(path, chosen, most)[chosen].to_numpy(dtype=object).tolist()
    rows = [[None if cell == "" else cell for cell in row] for row in cells]
    for row in rows:
        while row and (row[-1] is None or (isinstance(row[-1], str) and not row[-1].strip())):
            row.pop()
    return rows


def _sheets(path: Path, sheet: str | None, most: int | None) -> dict[str, pd.DataFrame]:
    """Return one sheet or all of them by name, every cell as the workbook holds it."""
    _workbook_reader()
    chosen = None if sheet is None else [sheet]
    try:
        found: dict[str, pd.DataFrame] = pd.read_excel(
            path, sheet_name=chosen, header=None, dtype=object, na_filter=False, nrows=most
        )
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise DataError(f"{path} is not a workbook that can be read: {error}") from error
    return found


def _workbook_reader() -> None:
    """Refuse a workbook where the package that reads them is not installed."""
    from importlib.util import find_spec

    if find_spec("openpyxl") is None:
        raise DataError(
            f"workbooks are read by openpyxl, which is not installed: pip install {EXCEL}, or save "
            "the sheet as CSV"
        )


def _read_sheet(path: Path, layout: FileFormat) -> RawTable:
    """Read a sheet under its header; rows longer than the header are set aside."""
    rows = sheet_rows(path, layout.sheet)
    if len(rows) < layout.header:
        raise DataError(f"{path} is empty; expected a header and rows")
    header = header_names(rows[layout.header - 1], layout, str(path))
    kept: list[list[Any]] = []
    broken = []
    expected = f"{len(header)} cells"
    for number, row in enumerate(rows[layout.header :], start=layout.header + 1):
        if len(row) > len(header):
            broken.append(BrokenLine(number, f"{len(row)} cells: {shown(row, cap=3)}", expected))
        elif row:
            kept.append(row + [None] * (len(header) - len(row)))
    columns = zip(*kept, strict=True) if kept else [()] * len(header)
    # A column has one type where its cells have one, else they stay as they are.
    table = {
        name: pd.Series(list(cells), dtype=object).infer_objects()
        for name, cells in zip(header, columns, strict=True)
    }
    return RawTable(pd.DataFrame(table), tuple(broken))
