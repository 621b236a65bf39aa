"""Files that are too large to hold are read in pieces, with the errors of whole files."""

from __future__ import annotations

import pandas as pd
import pytest

from countermove.data.partitions import Partitions, group_sizes
from countermove.errors import DataError


def pieces(tmp_path, content: bytes, rows: int = 2) -> list[pd.DataFrame]:
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    return list(Partitions((path,), rows))


def test_text_is_read_some_rows_at_a_time(tmp_path):
    found = pieces(tmp_path, b'\xef\xbb\xbfa,b\n1,"x, y"\n\n2,\n003,"z\nz"\n')
    assert [piece.to_dict("list") for piece in found] == [
        {"a": ["1", "2"], "b": ["x, y", ""]},
        {"a": ["003"], "b": ["z\nz"]},
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"a,a\n1,2\n", "duplicate columns"),
        (b"a;b\n1;2\n", "separated by ';'"),
        (b"a,b\n1,2,3\n4,5,6\n", "more cells than the header"),
        (b"a,b\n1,2\n1,2\n1,2\n1,2,3\n", "is not a table"),
        (b"a,b\n" + (b"1," + b"2" * 300_000 + b"\n") * 3 + b"\xe9,2\n", "not UTF-8"),
    ],
)
def test_text_that_is_no_table_is_refused_wherever_it_breaks(tmp_path, content, said):
    with pytest.raises(DataError, match=said):
        pieces(tmp_path, content)


def test_row_groups_are_counted_without_reading_them(tmp_path):
    path = tmp_path / "table.parquet"
    pd.DataFrame({"a": range(10)}).to_parquet(path, row_group_size=4)
    assert group_sizes(path) == [4, 4, 2]
    path.write_bytes(b"no parquet")
    with pytest.raises(DataError, match="not a parquet file"):
        group_sizes(path)
