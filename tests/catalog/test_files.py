"""Every dataset of one file: round trip, previous file kept, absent files, description."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from kedro.io import DatasetError

from countermove.catalog import (
    AtomicCSVDataset,
    AtomicJSONDataset,
    AtomicParquetDataset,
    AtomicPlotlyDataset,
    AtomicTextDataset,
    OptionalCSVDataset,
    OptionalJSONDataset,
    StandardiserDataset,
)
from countermove.data import Standardiser
from countermove.errors import StorageError

TABLE = pd.DataFrame({"a": [1, 2], "b": ["x", "é"]})
FAMILY = {
    AtomicCSVDataset: (TABLE, TABLE.head(1)),
    AtomicJSONDataset: ({"accuracy": 0.1 + 0.2, "who": "é"}, {"accuracy": 1.0}),
    AtomicParquetDataset: (TABLE, TABLE.head(1)),
    AtomicPlotlyDataset: (go.Figure(go.Scatter(y=[1, 2])), go.Figure(go.Scatter(y=[3]))),
    AtomicTextDataset: ("<p>ü</p>", "<p></p>"),
    OptionalCSVDataset: (TABLE, TABLE.head(1)),
    OptionalJSONDataset: ({"accuracy": 0.5}, {"accuracy": 1.0}),
    StandardiserDataset: (
        Standardiser(np.array([0.1 + 0.2]), np.array([1 / 3]), ("a",)),
        Standardiser(np.zeros(2), np.ones(2), ("a", "b")),
    ),
}
"""Each class with what it stores, and another content."""

every_class = pytest.mark.parametrize("kind", FAMILY, ids=lambda kind: kind.__name__)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, pd.DataFrame):
        return bool(one.equals(other))
    return bool(one == other)


def dataset_of(kind: Any, folder: Path) -> Any:
    return kind(filepath=str(folder / "deep" / "file"))


@every_class
def test_what_was_saved_is_loaded_and_nothing_else_is_left(kind: Any, tmp_path: Path) -> None:
    content, other = FAMILY[kind]
    dataset = dataset_of(kind, tmp_path)
    dataset.save(other)
    dataset.save(content)
    assert same(dataset.load(), content)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["file"]


@every_class
def test_a_write_that_fails_leaves_the_previous_file(
    kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, other = FAMILY[kind]
    dataset = dataset_of(kind, tmp_path)
    dataset.save(content)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.replace", full)
        with pytest.raises(
            DatasetError, match="No space left on device; the previous content is kept"
        ) as refused:
            dataset.save(other)
    assert isinstance(refused.value.__cause__, StorageError)
    assert same(dataset.load(), content)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["file"]


@every_class
def test_it_says_where_the_file_lies(kind: Any, tmp_path: Path) -> None:
    dataset = dataset_of(kind, tmp_path)
    assert str(dataset._describe()["filepath"]) == str(tmp_path / "deep" / "file")
    assert "deep/file" in str(dataset)
    assert not dataset.exists()
    dataset.save(FAMILY[kind][0])
    assert dataset.exists()


@every_class
def test_an_absent_file_is_none_only_where_it_may_be_absent(kind: Any, tmp_path: Path) -> None:
    dataset = dataset_of(kind, tmp_path)
    if kind.__name__.startswith("Optional"):
        assert dataset.load() is None
    else:
        with pytest.raises(DatasetError):
            dataset.load()


def test_a_damaged_file_is_not_taken_for_an_absent_one(tmp_path):
    path = tmp_path / "facts.json"
    path.write_text('{"a": 1')
    with pytest.raises(Exception, match=r"facts\.json"):
        OptionalJSONDataset(filepath=str(path)).load()


def test_json_refuses_nan_and_keeps_the_previous_file(tmp_path):
    dataset = AtomicJSONDataset(filepath=str(tmp_path / "f.json"))
    dataset.save({"a": 1.0})
    with pytest.raises(Exception, match="JSON compliant"):
        dataset.save({"a": float("nan")})
    assert dataset.load() == {"a": 1.0}
    assert [path.name for path in tmp_path.iterdir()] == ["f.json"]


def test_two_runs_that_write_one_table_at_once_publish_whole_ones(tmp_path):
    """A chain and a nightly retraining write the same typed table; the later rename wins."""
    target = tmp_path / "t.parquet"

    class Interrupted(pd.DataFrame):
        def to_parquet(self, stream: Any, **_: Any) -> None:
            stream.write(b"PAR1 half a table")
            stream.flush()
            AtomicParquetDataset(filepath=str(target)).save(TABLE)
            assert same(pd.read_parquet(target), TABLE)
            stream.seek(0)
            pd.DataFrame(self).to_parquet(stream)

    AtomicParquetDataset(filepath=str(target)).save(Interrupted({"a": [9]}))
    assert pd.read_parquet(target)["a"].tolist() == [9]
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


def test_killed_writer_leaves_the_previous_table(tmp_path):
    """A real process is killed while it writes; the reader still gets the old rows."""
    target = tmp_path / "t.parquet"
    AtomicParquetDataset(filepath=str(target)).save(pd.DataFrame({"a": [1, 2, 3]}))
    script = textwrap.dedent(
        f"""
        import os, signal
        import pandas as pd
        from countermove.catalog import AtomicParquetDataset
        class Dying(pd.DataFrame):
            def to_parquet(self, stream, **_):
                stream.write(b"PAR1 half a table")
                stream.flush()
                os.kill(os.getpid(), signal.SIGKILL)
        AtomicParquetDataset(filepath={str(target)!r}).save(Dying({{"a": [9]}}))
        """
    )
    died = subprocess.run([sys.executable, "-c", script], check=False, env=os.environ)
    assert died.returncode == -signal.SIGKILL
    assert AtomicParquetDataset(filepath=str(target)).load()["a"].tolist() == [1, 2, 3]
    # What it left is removed once nobody can still be writing it.
    (left,) = tmp_path.glob(".t.parquet.*")
    AtomicParquetDataset(filepath=str(target)).save(pd.DataFrame({"a": [4]}))
    assert left.exists()
    os.utime(left, (0, 0))
    AtomicParquetDataset(filepath=str(target)).save(pd.DataFrame({"a": [5]}))
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]
