"""How a file is laid out: its encoding, delimiter, header line and sheet, with what was noticed."""

from __future__ import annotations

import codecs
import csv
import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from countermove.data._text_files import decoded_lines
from countermove.data.files import (
    BYTE_ORDER_MARKS,
    PLAIN,
    WORKBOOKS,
    FileFormat,
    opened,
    table_suffix,
)
from countermove.errors import DataError, shown

DELIMITERS = (",", ";", "\t", "|")
USUAL = ("cp1252", "cp1250", "mac_roman", "cp850")
OTHERS = ("cp1251", "cp1253", "cp1254", "koi8_r", "shift_jis", "gb18030", "big5", "euc_kr")
"""What a text that is no UTF-8 may be: western, which words tell apart, or of another script."""

FEW_ODD = 0.2
_WORD = re.compile(r"[^\s\x00-\x40\x5b-\x60\x7b-\x7f\u00a0\u20ac\u2010-\u203a\u00a3\u00a7\u00b0]+")

SAMPLED_LINES = 500
SAMPLED_BYTES = 1 << 18


@dataclass(frozen=True)
class FoundLayout:
    """A layout, and what a person has to confirm about it."""

    layout: FileFormat = PLAIN
    questions: tuple[str, ...] = ()


def find_layout(path: Path) -> FoundLayout:
    """Return how a file is laid out, as far as it shows."""
    suffix = table_suffix(path)
    if not path.is_file() or suffix is None or suffix == ".parquet":
        return FoundLayout()  # Whoever reads it says what is wrong.
    if suffix in WORKBOOKS:
        return _sheet_layout(path)
    try:
        encoding, questions = _encoding(path)
        with opened(path) as stream:
            blocks = decoded_lines(stream, encoding)
            lines = list(itertools.islice(itertools.chain.from_iterable(blocks), SAMPLED_LINES))
    except UnicodeDecodeError as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    marked = encoding in BYTE_ORDER_MARKS.values()
    tabs = suffix.startswith(".tsv")
    delimiter = "\t" if tabs else _delimiter(lines)
    rows = _rows(lines, delimiter)
    header, noticed = _header_line(rows)
    layout = FileFormat(
        encoding=PLAIN.encoding if marked else encoding,
        delimiter=PLAIN.delimiter if tabs else delimiter,
        header=header,
    )
    named, renamed = _renamed(rows, layout)
    return FoundLayout(named, (*questions, *noticed, *renamed))


def _encoding(path: Path) -> tuple[str, tuple[str, ...]]:
    """Return the encoding of a text: by its mark, as UTF-8, else the likeliest, with a question."""
    check = codecs.getincrementaldecoder("utf-8")()
    with opened(path) as stream:
        content = stream.read(SAMPLED_BYTES)
        for mark, encoding in BYTE_ORDER_MARKS.items():
            if content.startswith(mark):
                return encoding, ()
        odd = content
        try:
            while content:
                odd = content
                check.decode(content)
                content = stream.read(SAMPLED_BYTES)
            check.decode(b"", final=True)
        except UnicodeDecodeError:
            pass
        else:
            return PLAIN.encoding, ()
    if odd.count(0) > len(odd) / 5:
        little = odd[1::2].count(0) > odd[::2].count(0)
        return "utf-16-le" if little else "utf-16-be", ("read as UTF-16 without its mark: right?",)
    strange = b"\n".join(line for line in odd.splitlines() if not line.isascii())
    guess = _likeliest(strange)
    words = re.findall(r"[^\W\d_]+", strange.decode(guess, "replace"))
    listed = shown(dict.fromkeys(repr(word) for word in words if not word.isascii()), cap=3)
    return guess, (f"not UTF-8; read as {guess}, such as {listed}: spelled right?",)


def _likeliest(content: bytes) -> str:
    """Return the encoding that gives the fewest odd words, the usual ones first."""
    from charset_normalizer import from_bytes

    usual = {encoding: _oddness(content, encoding) for encoding in USUAL}
    best = min(usual, key=lambda encoding: usual[encoding])
    if usual[best] <= FEW_ODD:
        return best
    found = from_bytes(content, cp_isolation=list(OTHERS)).best()
    return best if found is None else str(found.encoding)


def _oddness(content: bytes, encoding: str) -> float:
    """Return the share of words beyond ASCII that no western language would write so."""
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        return 1.0
    words = [word for word in _WORD.findall(text) if not word.isascii()]
    return sum(map(_odd, words)) / max(len(words), 1)


def _odd(word: str) -> bool:
    """Return whether a word has signs or capitals inside, or hardly a plain letter."""
    inside = any(not c.isalpha() and not c.isascii() for c in word[1:-1])
    swapped = any(a.islower() and b.isupper() and not b.isascii() for a, b in pairwise(word))
    plain = sum(c.isascii() for c in word)
    return inside or swapped or (len(word) > 3 and plain < len(word) / 3)


def _rows(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """Return the cells line by line; a quoted line break joins lines."""
    try:
        return list(csv.reader((f"{line}\n" for line in lines), delimiter=delimiter))
    except csv.Error:
        return [line.split(delimiter) for line in lines]


def _delimiter(lines: Sequence[str]) -> str:
    """Return the delimiter under which most lines have equally many cells, and more than one."""

    def merit(delimiter: str) -> tuple[float, int]:
        widths = Counter(len(row) for row in _rows(lines, delimiter) if any(map(str.strip, row)))
        if not widths:
            return 0.0, 0
        # A column of words with a comma now and then is no table of two columns.
        width, count = max(widths.items(), key=lambda each: (each[1], each[0]))
        return (0.0, 0) if width == 1 else (round(count / widths.total(), 1), width)

    return max(DELIMITERS, key=merit)


def _header_line(rows: Sequence[Sequence[str]]) -> tuple[int, tuple[str, ...]]:
    """Return the first line that is as wide as the table."""
    widths = Counter(len(row) for row in rows if any(map(str.strip, row)))
    if not widths:
        return 1, ()
    width = max(widths, key=lambda each: (widths[each], each))
    filled = [n for n, row in enumerate(rows) if any(map(str.strip, row))]
    first = next(n for n, row in enumerate(rows) if len(row) == width and any(row))
    if first == filled[0]:
        return 1, ()
    return first + 1, (f"{first} line(s) above the header are not read: right?",)


def _renamed(
    rows: Sequence[Sequence[object]], layout: FileFormat
) -> tuple[FileFormat, tuple[str, ...]]:
    """Return the layout with ``rename`` where columns lack a name of their own."""
    if len(rows) < layout.header:
        return layout, ()
    filled = [row for row in rows[layout.header - 1 :] if row]
    names = ["" if name is None else str(name).strip() for name in (filled[0] if filled else ())]
    twice = [name for name, count in Counter(names).items() if name and count > 1]
    nameless = sum(not name for name in names)
    if not twice and not nameless:
        return layout, ()
    said = []
    if twice:
        said.append(f"{shown(map(repr, twice))} there twice: the later ones get a number")
    if nameless:
        said.append(f"{nameless} column(s) without a name are called column_1, column_2, …")
    return replace(layout, rename=True), tuple(said)


def _sheet_layout(path: Path) -> FoundLayout:
    """Return the sheet with the most cells, and where its header is."""
    from countermove.data._workbooks import sheet_names, sheet_rows

    names = sheet_names(path)
    sampled = {name: sheet_rows(path, name, SAMPLED_LINES) for name in names}
    best = max(names, key=lambda name: sum(map(len, sampled[name])))
    rows = [["" if cell is None else str(cell) for cell in row] for row in sampled[best]]
    width = max(map(len, rows), default=0)
    # Rows of a sheet end with their last value: the header is the first that is nearly as wide.
    first = next((n for n, row in enumerate(rows) if len(row) > 0.8 * width), 0)
    layout = FileFormat(header=first + 1, sheet=best if len(names) > 1 else None)
    above = (f"{first} row(s) above the header are not read: right?",) if first else ()
    others = [repr(name) for name in names if name != best]
    left = (f"the sheets {shown(others)} are not read: right?",) if others else ()
    named, renamed = _renamed(rows, layout)
    return FoundLayout(named, (*left, *above, *renamed))
