"""Tables in parts: whole results only, finished parts kept, the rest done next time."""

import json

import numpy as np
import pandas as pd
import pytest

from countermove.data.partitions import Partitions
from countermove.errors import DataError, PartError
from countermove.execution import Execution, map_parts

from . import work


@pytest.fixture
def table(tmp_path):
    """25 rows in three files of 10, 10 and 5, in row groups of 5."""
    frame = pd.DataFrame({"id": np.arange(25), "x": np.arange(25.0), "other": "a"})
    files = []
    for number, first in enumerate((0, 10, 20)):
        path = tmp_path / f"in-{number}.parquet"
        frame.iloc[first : first + 10].to_parquet(path, index=False, row_group_size=5)
        files.append(path)
    return Partitions(tuple(files), rows_per_part=5)


def run(task, table, folder):
    with Execution().open() as mapper:
        return map_parts(task, table, folder, mapper)


def hidden(folder):
    return [path for path in folder.parent.iterdir() if path.name.startswith(f".{folder.name}")]


def test_every_row_is_there_once_in_its_order(table, tmp_path):
    done = run(work.AddTask(1.0), table, tmp_path / "out")
    result = done.result().read()
    assert result["id"].tolist() == list(range(25))
    assert np.array_equal(result["x"], np.arange(25.0) + 1.0)
    assert (done.rows, done.parts, done.kept) == (25, 5, 0)
    assert done.times["rows"].sum() == 25
    assert json.dumps(done.to_json())
    assert hidden(tmp_path / "out") == []


def test_parts_are_cut_at_row_groups_and_held_rows_are_bounded(table, tmp_path):
    seen = tmp_path / "seen"
    wide = Partitions(table.files, rows_per_part=10)
    assert run(work.AddTask(1.0, seen=seen), wide, tmp_path / "out").parts == 3
    assert seen.read_text().split() == ["0", "10", "20"]
    seen.unlink()
    narrow = Partitions(table.files, rows_per_part=2)
    assert run(work.AddTask(1.0, seen=seen), narrow, tmp_path / "out").parts == 5
    assert len(seen.read_text().split()) == 15


def test_a_poison_part_is_named_and_the_rest_is_kept(table, tmp_path):
    out, seen = tmp_path / "out", tmp_path / "seen"
    run(work.AddTask(100.0), table, out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(PartError, match=r"part 3 \(in-1.parquet, rows 17, 18, 19 of") as caught:
        run(work.AddTask(1.0, limit=16.0), table, out)
    assert caught.value.rows == (17, 18, 19)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    done = run(work.AddTask(1.0, limit=30.0, seen=seen), table, out)
    assert done.kept == 3
    assert seen.read_text().split() == ["15", "20"]
    assert np.array_equal(done.result().read()["x"], np.arange(25.0) + 1.0)


def test_other_work_or_other_rows_start_again(table, tmp_path):
    out = tmp_path / "out"
    for task in (work.AddTask(1.0, limit=16.0), work.AddTask(2.0, limit=16.0)):
        with pytest.raises(PartError):
            run(task, table, out)
    pd.read_parquet(table.files[0]).assign(x=-1.0).to_parquet(table.files[0], index=False)
    done = run(work.AddTask(2.0), table, out)
    assert done.kept == 0
    assert done.result().read()["x"].tolist()[:3] == [1.0, 1.0, 1.0]


def test_a_torn_part_is_done_again(table, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(PartError):
        run(work.AddTask(1.0, limit=16.0), table, out)
    (torn,) = hidden(out)
    path = torn / "part-00001.parquet"
    path.write_bytes(path.read_bytes()[:-3])
    assert run(work.AddTask(1.0), table, out).kept == 2


def test_what_is_no_part_is_refused(table, tmp_path):
    csv = tmp_path / "in.csv"
    csv.write_text("id,x\n1,2\n")
    with pytest.raises(DataError, match="ingest_parts"):
        run(work.AddTask(1.0), Partitions((csv,)), tmp_path / "out")
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 no")
    with pytest.raises(DataError, match=r"broken.parquet is not a parquet file"):
        run(work.AddTask(1.0), Partitions((broken,)), tmp_path / "out")
    task = work.AddTask(1.0)
    task.columns = ("id", "y")
    with pytest.raises(DataError, match="no column y; expected id, y"):
        run(task, table, tmp_path / "out")
    assert not (tmp_path / "out").exists()
