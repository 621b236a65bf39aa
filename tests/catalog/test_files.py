"""An interrupted write leaves the previous file readable."""

import os
import signal
import subprocess
import sys
import textwrap

import pandas as pd
import pytest

from countermove.catalog import AtomicJSONDataset, AtomicParquetDataset, AtomicTextDataset


def test_table_round_trip(tmp_path):
    dataset = AtomicParquetDataset(filepath=str(tmp_path / "deep" / "t.parquet"))
    table = pd.DataFrame({"a": [1, 2], "b": ["x", "é"]})
    dataset.save(table)
    pd.testing.assert_frame_equal(dataset.load(), table)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["t.parquet"]


def test_facts_refuse_nan_and_keep_the_previous_file(tmp_path):
    dataset = AtomicJSONDataset(filepath=str(tmp_path / "f.json"))
    dataset.save({"a": 1.0})
    with pytest.raises(Exception, match="JSON compliant"):
        dataset.save({"a": float("nan")})
    assert dataset.load() == {"a": 1.0}


def test_page_round_trip(tmp_path):
    dataset = AtomicTextDataset(filepath=str(tmp_path / "p.html"))
    dataset.save("<p>ü</p>")
    assert dataset.load() == "<p>ü</p>"


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
