"""Files of labelled rows: whole or still on their way, and of which day."""

from __future__ import annotations

from datetime import date
from hashlib import sha256

import pandas as pd
import pytest

from countermove.data.files import PLAIN
from countermove.errors import BlockedError
from countermove.production.retraining.labelled_batch import (
    LabelledBatch,
    date_in,
    in_order,
    read_folder,
)

CSV = "a,b\n1,2\n3,4\n"


def read(folder, name="2026-11", content=CSV, marker=None):
    (folder / f"{name}.csv").write_text(content)
    if marker is not None:
        (folder / f"{name}.csv.ready").write_text(marker)
    (batch,) = read_folder(folder, PLAIN)
    return batch


@pytest.mark.parametrize(
    ("name", "day"),
    [
        ("2026-11-16", date(2026, 11, 16)), ("loans_20261116_v2", date(2026, 11, 16)),
        ("2026-11", date(2026, 11, 1)), ("202611", date(2026, 11, 1)),
        ("2026-W46", date(2026, 11, 9)), ("2026q4", date(2026, 10, 1)),
        ("2026-13", None), ("0012", None), ("monday", None), ("2026", None), ("12026-11", None),
        ("2026-02-30", None), ("2026-W60", None),
    ],
)  # fmt: skip
def test_the_date_in_a_name(name, day):
    assert date_in(name) == day


def test_batches_stand_by_date_if_all_have_one_else_by_name():
    def names(*given):
        return [batch.name for batch in in_order([LabelledBatch(n, pd.DataFrame()) for n in given])]

    assert names("b_2026-01", "a_2026-02") == ["b_2026-01", "a_2026-02"]
    assert names("b_2026-01", "a_2026-02", "extra") == ["a_2026-02", "b_2026-01", "extra"]


def test_without_a_setting_a_file_is_whole_once_it_is_there(tmp_path):
    batch = read(tmp_path)
    assert batch.waits("none") is None
    assert batch.waits("marker") == "waits for its ready marker 2026-11.csv.ready"


@pytest.mark.parametrize("marker", ["", "2", '{"rows": 2}'])
def test_a_marker_says_that_the_file_is_whole(tmp_path, marker):
    batch = read(tmp_path, marker=marker)
    assert batch.waits("none") is None
    assert batch.waits("marker") is None
    waits = batch.waits("rows")
    assert waits is None if marker else "does not declare" in waits


@pytest.mark.parametrize("ready", ["none", "marker", "rows"])
def test_rows_that_a_marker_declares_are_waited_for(tmp_path, ready):
    batch = read(tmp_path, marker='{"rows": 3}')
    assert batch.waits(ready) == "has 2 rows, and its ready marker declares 3"


def test_a_declared_hash_is_that_of_the_file(tmp_path):
    right = sha256(CSV.encode()).hexdigest()
    assert read(tmp_path, marker=f'{{"sha256": "{right}"}}').waits("marker") is None
    wrong = read(tmp_path, marker='{"sha256": "00"}')
    assert "has not the SHA-256" in wrong.waits("none")


def test_a_declared_date_counts_more_than_the_name(tmp_path):
    assert read(tmp_path, marker='{"date": "2026-09-30"}').date == date(2026, 9, 30)


@pytest.mark.parametrize(
    "marker", ["[", "[1]", "true", '{"lines": 2}', '{"rows": "2"}', '{"date": "soon"}', "[" * 9999]
)
def test_a_marker_that_cannot_be_read_is_waited_for(tmp_path, marker):
    assert "has a ready marker that cannot be read" in read(tmp_path, marker=marker).waits("none")


def test_a_file_that_ends_in_the_middle_of_a_line_is_not_whole(tmp_path):
    assert "ends in the middle of line 4" in read(tmp_path, content=CSV + "5").problem
    assert read(tmp_path, content=CSV + "5\n").problem is None  # A wrong row, set aside.
    assert read(tmp_path, content=CSV + "5,6").problem is None  # Some programs write no last end.


@pytest.mark.parametrize(("name", "content"), [("a.csv", b""), ("a.parquet", b"PAR1 half")])
def test_a_file_that_is_no_table_says_so_and_waits_for_its_marker_first(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    (batch,) = read_folder(tmp_path, PLAIN)
    assert "cannot be read" in batch.problem
    assert batch.sha256 == sha256(content).hexdigest()
    assert batch.waits("none") is None
    assert "waits for its ready marker" in batch.waits("marker")


def test_two_files_of_one_batch_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text(CSV)
    (tmp_path / "a.tsv").write_text(CSV)
    with pytest.raises(BlockedError, match="two files for batch 'a'"):
        read_folder(tmp_path, PLAIN)
