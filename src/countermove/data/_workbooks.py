"""One sheet of a workbook as a raw table; cells keep the types the workbook gives them."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from countermove.data._text_files import BrokenLine
from countermove.data.files import FileFormat, RawTable, header_names
from countermove.errors import DataError, nearest, shown


def sheet_names(path: Path) -> list[str]:
    """Return the names of a workbook's sheets."""
    book = _book(path)
    try:
        return [str(name) for name in book.sheetnames]
    finally:
        book.close()


def sheet_rows(path: Path, sheet: str | None, most: int | None = None) -> list[list[Any]]:
    """Return the cells of a sheet row by row, those behind the last value left out."""
    book = _book(path)
    try:
        names = list(book.sheetnames)
        if sheet is None and len(names) > 1:
            raise DataError(
                f"{path} has {len(names)} sheets, {shown(map(repr, names))}; say which one in the "
                f"schema, as in `file: {{sheet: {names[0]}}}`"
            )
        if sheet is not None and sheet not in names:
            raise DataError(f"{path} has no sheet {sheet!r}; {nearest(sheet, names)}")
        found = book[names[0] if sheet is None else sheet]
        # What a workbook says of its own size is often wrong.
        found.reset_dimensions()
        rows = [_trimmed(row) for row in found.iter_rows(values_only=True, max_row=most)]
    finally:
        book.close()
    while rows and not rows[-1]:
        rows.pop()
    return rows


def read_sheet(path: Path, layout: FileFormat) -> RawTable:
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
    table = {name: _column(cells) for name, cells in zip(header, columns, strict=True)}
    return RawTable(pd.DataFrame(table), tuple(broken))


def _book(path: Path) -> Any:
    import openpyxl
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        return openpyxl.load_workbook(path, read_only=True, data_only=True)
    except (zipfile.BadZipFile, InvalidFileException, KeyError, ValueError) as error:
        raise DataError(f"{path} is not a workbook that can be read: {error}") from error


def _trimmed(row: Sequence[Any]) -> list[Any]:
    cells = list(row)
    while cells and (cells[-1] is None or (isinstance(cells[-1], str) and not cells[-1].strip())):
        cells.pop()
    return cells


def _column(cells: Sequence[Any]) -> pd.Series:
    """Return a column of one type where its cells have one, else as the cells are."""
    return pd.Series(list(cells), dtype=object).infer_objects()
