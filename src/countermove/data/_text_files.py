"""Text with delimiters, block by block: the good rows as one Arrow table, the broken lines apart.

Arrow splits the cells. What it cannot know is done before: line breaks inside quotes are told
from quotes that are never closed, which would otherwise swallow every line up to the next quote.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 1 << 22
"""Bytes that are read at once; more only where one record is longer."""

LONGEST_CELL = 10_000
"""Lines a quoted cell may have; a quote that is open for longer was never closed."""


@dataclass(frozen=True)
class BrokenLine:
    """A line of a file that is no row: where it stands, what was found and what was expected."""

    line: int
    """Counted from 1 as editors do, the header included; in a workbook the row of the sheet."""
    found: str
    expected: str


def decoded_lines(stream: IO[bytes], encoding: str, start: bytes = b"") -> Iterator[list[str]]:
    """Yield the lines of a text without their ends, a block at a time; ``start`` was read before.

    A carriage return ends a line too, with or without the line feed.
    """
    decode = codecs.getincrementaldecoder(encoding)()
    rest, held = "", ""
    while True:
        content, start = start + stream.read(BLOCK), b""
        text = held + decode.decode(content, final=not content)
        # A \r at the end of a block may be the first half of a line end.
        held = "\r" if content and text.endswith("\r") else ""
        text = rest + text.removesuffix("\r") if held else rest + text
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.split("\n")
        rest = lines.pop() if content else ""
        if not content and lines[-1] == "":
            lines.pop()
        if lines:
            yield lines
        if not content:
            return


def cells_of(line: str, delimiter: str) -> list[list[str]] | None:
    """Return the records of some lines, None where a quote stays open or is misplaced."""
    try:
        return list(csv.reader(io.StringIO(line), delimiter=delimiter, strict=True))
    except csv.Error:
        return None


class Records:
    """The rows under a header, from the lines that follow it."""

    def __init__(self, width: int, delimiter: str, first_line: int) -> None:
        self.width = width
        self.delimiter = delimiter
        self.broken: list[BrokenLine] = []
        self._line = first_line
        self._open: list[str] = []

    def tables(self, blocks: Iterable[list[str]]) -> Iterator[pa.Table]:
        """Yield the good rows of each block, columns ``0, 1, …`` of text."""
        for lines in blocks:
            yield from self._tables(lines, last=False)
        yield from self._tables([], last=True)

    def _tables(self, lines: list[str], last: bool) -> Iterator[pa.Table]:
        lines = self._open + lines
        first = self._line - len(self._open)
        self._open = []
        if any('"' in line for line in lines):
            records, ahead = self._closed(lines, first, last)
        else:
            records, ahead = [(first + n, line) for n, line in enumerate(lines)], len(lines)
        self._open = lines[ahead:]
        self._line = first + len(lines)
        kept = [(number, text) for number, text in records if text.strip()]
        table = self._parsed(kept) if kept else None
        self.broken.sort(key=lambda each: each.line)
        if table is not None:
            yield table

    def _closed(
        self, lines: list[str], first: int, last: bool
    ) -> tuple[list[tuple[int, str]], int]:
        """Return the records with their line numbers, and how many lines they use up."""
        odd = deque(n for n, line in enumerate(lines) if line.count('"') % 2)
        records: list[tuple[int, str]] = []
        done = 0
        while odd:
            start = odd.popleft()
            records += [(first + n, lines[n]) for n in range(done, start)]
            done = start + 1
            end = self._end(lines, start, odd)
            if end is not None:
                records.append((first + start, "\n".join(lines[start : end + 1])))
                done = end + 1
                if end > start:
                    odd.popleft()
            elif not odd and not last and len(lines) - start <= LONGEST_CELL:
                # The next block may close the quote.
                return records, start
            else:
                self._refuse(first + start, "a quote that is not closed", lines[start])
        records += [(first + n, lines[n]) for n in range(done, len(lines))]
        return records, len(lines)

    def _end(self, lines: list[str], start: int, odd: deque[int]) -> int | None:
        """Return the line on which the record that begins at a line ends, None if it never does."""
        if cells_of(lines[start], self.delimiter) is not None:
            return start
        if odd and odd[0] - start <= LONGEST_CELL:
            found = cells_of("\n".join(lines[start : odd[0] + 1]), self.delimiter)
            if found is not None and len(found) == 1 and len(found[0]) == self.width:
                return odd[0]
        return None

    def _refuse(self, line: int, what: str, text: str) -> None:
        shown = text if len(text) <= 60 else text[:57] + "..."
        expected = f"{self.width} cells separated by {self.delimiter!r}"
        self.broken.append(BrokenLine(line, f"{what}: {shown}", expected))

    def _parsed(self, records: list[tuple[int, str]]) -> pa.Table:
        import pyarrow as pa
        from pyarrow import csv as arrow

        wrong: list[int] = []

        def refuse(row: arrow.InvalidRow) -> str:
            line, text = records[row.number - 1]
            self._refuse(line, f"{row.actual_columns} cells", text.split("\n")[0])
            wrong.append(line)
            return "skip"

        names = [str(n) for n in range(self.width)]
        content = "\n".join(text for _, text in records).encode()
        table = arrow.read_csv(
            pa.BufferReader(content),
            # Row numbers are known to one thread only, and to one block.
            arrow.ReadOptions(use_threads=False, block_size=len(content) + 1, column_names=names),
            arrow.ParseOptions(
                delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=refuse
            ),
            arrow.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )
        if len(table) + len(wrong) == len(records):
            return table
        self.broken = [each for each in self.broken if each.line not in wrong]
        return self._one_by_one(records, names)

    def _one_by_one(self, records: list[tuple[int, str]], names: list[str]) -> pa.Table:
        """Split each record by itself, where a stray quote would join several."""
        import pyarrow as pa

        rows: list[list[str]] = []
        for line, text in records:
            found = next(csv.reader(io.StringIO(text), delimiter=self.delimiter))
            if len(found) == self.width:
                rows.append(found)
            else:
                self._refuse(line, f"{len(found)} cells", text.split("\n")[0])
        columns = zip(*rows, strict=True) if rows else [()] * self.width
        cells = [pa.array(column, pa.string()) for column in columns]
        return pa.table(dict(zip(names, cells, strict=True)))
