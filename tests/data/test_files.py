"""Files as people have them, and lines that are no rows."""

from __future__ import annotations

import bz2
import datetime
import gzip
import lzma
import zipfile
from pathlib import Path

import openpyxl
import pandas as pd
import pytest

from countermove.data import files
from countermove.data.drafting import find_layout
from countermove.data.files import (
    BrokenLine,
    FileFormat,
    RawTable,
    read_pieces,
    read_table,
    table_content,
    table_stem,
)
from countermove.errors import DataError

CONTENT = "name;amount\nMüller;1\nÅse;2\n"
SEMICOLONS = FileFormat(delimiter=";")


def written(folder: Path, content: bytes | str, name: str = "x.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def cells(table: RawTable) -> list[list[str]]:
    return [list(map(str, row)) for row in table.frame.to_numpy().tolist()]


@pytest.mark.parametrize(
    ("encoding", "layout"),
    [
        ("utf-8", SEMICOLONS),
        ("utf-8-sig", SEMICOLONS),
        ("utf-16", SEMICOLONS),
        ("utf-32", SEMICOLONS),
        ("utf-16-le", FileFormat("utf-16-le", ";")),
        ("latin-1", FileFormat("latin-1", ";")),
        ("cp1252", FileFormat("cp1252", ";")),
    ],
)
def test_any_encoding_gives_the_same_cells(
    tmp_path: Path, encoding: str, layout: FileFormat
) -> None:
    table = read_table(written(tmp_path, CONTENT.encode(encoding)), layout)
    assert cells(table) == [["Müller", "1"], ["Åse", "2"]]


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("x.csv.gz", gzip.compress),
        ("x.csv.xz", lzma.compress),
        ("x.csv.bz2", bz2.compress),
        ("x.CSV", bytes),
    ],
)
def test_packed_files_are_unpacked(tmp_path: Path, name: str, pack) -> None:
    path = written(tmp_path, pack(CONTENT.encode()), name)
    assert cells(read_table(path, SEMICOLONS)) == [["Müller", "1"], ["Åse", "2"]]
    assert table_stem(path) == "x"
    with pytest.raises(DataError, match=r"cannot be read|not UTF-8|is not a table|is empty"):
        read_table(written(tmp_path, b"\x00\x9f" * 50, name), SEMICOLONS)


def test_an_archive_holds_one_table(tmp_path: Path) -> None:
    path = tmp_path / "x.csv.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("folder/", "")
        archive.writestr("folder/table.csv", CONTENT)
    assert len(read_table(path, SEMICOLONS).frame) == 2
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("other.csv", CONTENT)
    with pytest.raises(DataError, match="holds 2 files; expected one table"):
        read_table(path)
    broken = written(tmp_path, b"no archive", "x.csv.zip")
    for read in (read_table, find_layout):
        with pytest.raises(DataError, match="cannot be read: File is not a zip file"):
            read(broken)


def test_tabs_separate_the_cells_of_tsv_files(tmp_path: Path) -> None:
    assert cells(read_table(written(tmp_path, "a\tb\n1\t2\n", "x.tsv"))) == [["1", "2"]]


@pytest.mark.parametrize(
    ("lines", "good", "broken"),
    [
        # Too few and too many cells.
        (["1,2", "3", "4,5,6", "7,8"], [["1", "2"], ["7", "8"]], [3, 4]),
        # A quote that is never closed costs the lines that it swallows, each by its number.
        (["1,2"] * 3 + ['3,"x', "4,5", "7,8"], [["1", "2"]] * 3, [5, 6, 7]),
        (["1,2"] * 3 + ['3,"x', "4,5", '6,"y"'], [["1", "2"]] * 3, [5, 6, 7]),
        # Line breaks, delimiters and quotes inside quotes.
        (['1,"x\ny"', '2,"a ""b"", c"'], [["1", "x\ny"], ["2", 'a "b", c']], []),
        (['1,"x\ny"', "2", "3,4"], [["1", "x\ny"], ["3", "4"]], [3]),
        # Inches are no quotes.
        (['5" pipe,1', '6" pipe,2'], [['5" pipe', "1"], ['6" pipe', "2"]], []),
        (["1,2"] * 3 + ['a"b,"c', "1,2"], [["1", "2"]] * 3, [5, 6]),
        # Blank lines are no rows.
        (["1,2", "", "  ", "3,4", ""], [["1", "2"], ["3", "4"]], []),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_broken_lines_are_set_aside_with_their_numbers(
    tmp_path: Path, lines: list[str], good: list[list[str]], broken: list[int], end: str
) -> None:
    path = written(tmp_path, end.join(["a,b", *lines]))
    table = read_table(path)
    lined = [[cell.replace(end, "\n") for cell in row] for row in cells(table)]
    assert lined == good
    assert [each.line for each in table.broken] == broken


def test_a_broken_line_says_what_was_found_and_expected(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b\n1,2\n3,4,5\n6,7\n")
    table = read_table(path)
    assert table.broken == (BrokenLine(3, "3 cells: 3,4,5", "2 cells separated by ','"),)
    with pytest.raises(DataError, match=r"1 line\(s\) do not have 2 cells .*: 3 \(3 cells"):
        table.whole(str(path))


def test_blocks_and_pieces_do_not_change_what_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [f'{n},"a\nb"' if n % 7 == 0 else f"{n},x" for n in range(300)]
    lines[50:50] = ["too,many,cells", "few"]
    path = written(tmp_path, "\r\n".join(["a,b", *lines]) + "\r\n")
    whole = read_table(path)
    assert len(whole.frame) == 300
    assert [each.line for each in whole.broken] == [52, 53]
    for block in (64, 1000):
        monkeypatch.setattr(files, "BLOCK", block)
        pieces = list(read_pieces(path, rows=11))
        assert {len(piece.frame) for piece in pieces[:-1]} == {11}
        joined = pd.concat([piece.frame for piece in pieces], ignore_index=True)
        pd.testing.assert_frame_equal(joined, whole.frame)
        assert tuple(line for piece in pieces for line in piece.broken) == whole.broken


def test_a_header_may_follow_other_lines_and_lack_names(tmp_path: Path) -> None:
    path = written(tmp_path, "Report of May\n\n,a,a,\n0,1,2,3\n")
    table = read_table(path, FileFormat(header=3, rename=True))
    assert table.frame.to_dict("list") == {
        "column_1": ["0"], "a": ["1"], "a_2": ["2"], "column_4": ["3"]
    }  # fmt: skip
    path = written(tmp_path, "a,a_2,a\n1,2,3\n")
    assert list(read_table(path, FileFormat(rename=True)).frame) == ["a", "a_2", "a_3"]


def test_a_wrong_encoding_is_named_with_the_remedy(tmp_path: Path) -> None:
    path = written(tmp_path, CONTENT.encode("cp1252"))
    with pytest.raises(DataError, match=r"not UTF-8; .*file: \{encoding: cp1252\}"):
        read_table(path)


def workbook(path: Path, **sheets: list[list[object]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_a_sheet_is_a_table_whose_cells_keep_their_types(tmp_path: Path) -> None:
    day = datetime.datetime(2024, 2, 29)
    rows = [
        ["Report"],
        ["who", "amount", "day"],
        ["a", 1.5, day],
        [],
        ["b", "12 €"],
        ["c", 1, 2, 3],
    ]
    path = workbook(tmp_path / "x.xlsx", Notes=[["read me"]], Data=rows)
    table = read_table(path, FileFormat(sheet="Data", header=2))
    assert table.frame["who"].tolist() == ["a", "b"]
    assert table.frame["amount"].tolist() == [1.5, "12 €"]
    assert table.frame["day"].iloc[0] == pd.Timestamp(day)
    assert [each.line for each in table.broken] == [6]
    pieces = list(read_pieces(path, FileFormat(sheet="Data", header=2), rows=1))
    assert [len(piece.frame) for piece in pieces] == [1, 1]
    assert [len(piece.broken) for piece in pieces] == [1, 0]
    with pytest.raises(DataError, match=r"has 2 sheets, 'Notes', 'Data'; say which"):
        read_table(path)
    with pytest.raises(DataError, match=r"no sheet 'Dat'.*did you mean 'Data'"):
        read_table(path, FileFormat(sheet="Dat"))
    with pytest.raises(DataError, match="is not a workbook"):
        read_table(written(tmp_path, b"no workbook", "y.xlsx"))


def test_without_the_package_that_reads_workbooks_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = workbook(tmp_path / "x.xlsx", Data=[["a", "b"], [1, 2]])
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for read in (read_table, find_layout):
        with pytest.raises(DataError, match=r"pip install countermove\[excel\]"):
            read(path)


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("x.csv", FileFormat("cp1252", ";", header=2)),
        ("x.csv.gz", SEMICOLONS),
        ("x.csv.zip", SEMICOLONS),
        ("x.csv.xz", FileFormat("utf-16", ";")),
        ("x.tsv", FileFormat()),
        ("x.xlsx", FileFormat(header=2, sheet="Data")),
        ("x.parquet", FileFormat()),
    ],
)
def test_rows_are_written_back_as_they_were_laid_out(
    tmp_path: Path, name: str, layout: FileFormat
) -> None:
    frame = pd.DataFrame({"name": ["Müller", "Åse; x"], "amount": ["1", "2"]})
    path = tmp_path / name
    if name.endswith(".xlsx"):
        workbook(path, Data=[["above"], ["name", "amount"]])
    elif name == "x.csv":
        written(tmp_path, "above\nname;amount\n".encode("cp1252"))
    else:
        frame.to_csv(path) if "csv" in name or "tsv" in name else frame.to_parquet(path)
    path.write_bytes(table_content(frame, path, layout))
    pd.testing.assert_frame_equal(read_table(path, layout).frame, frame)


def test_utf_8_under_another_name_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, CONTENT)
    with pytest.raises(DataError, match=r"is UTF-8, but the schema says .*cp1252"):
        read_table(path, FileFormat("cp1252", ";"))
    assert len(read_table(written(tmp_path, "a;b\n1;2\n"), FileFormat("cp1252", ";")).frame) == 1
