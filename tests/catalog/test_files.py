"""An interrupted write leaves the previous file readable."""

import os
import signal
import subprocess
import sys
import textwrap

import pandas as pd
import pytest

from countermove.catalog.files import FactsDataset, PageDataset, TableDataset


def test_table_round_trip(tmp_path):
    dataset = TableDataset(filepath=str(tmp_path / "deep" / "t.parquet"))
    table = pd.DataFrame({"a": [1, 2], "b": ["x", "é"]})
    dataset.save(table)
    pd.testing.assert_frame_equal(dataset.load(), table)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["t.parquet"]


def test_facts_refuse_nan_and_keep_the_previous_file(tmp_path):
    dataset = FactsDataset(filepath=str(tmp_path / "f.json"))
    dataset.save({"a": 1.0})
    with pytest.raises(Exception, match="JSON compliant"):
        dataset.save({"a": float("nan")})
    assert dataset.load() == {"a": 1.0}


def test_page_round_trip(tmp_path):
    dataset = PageDataset(filepath=str(tmp_path / "p.html"))
    dataset.save("<p>ü</p>")
    assert dataset.load() == "<p>ü</p>"


def test_killed_writer_leaves_the_previous_table(tmp_path):
    """A real process is killed while it writes; the reader still gets the old rows."""
    target = tmp_path / "t.parquet"
    TableDataset(filepath=str(target)).save(pd.DataFrame({"a": [1, 2, 3]}))
    script = textwrap.dedent(
        f"""
        import os, signal
        import pandas as pd
        from countermove.catalog.files import TableDataset
        class Dying(pd.DataFrame):
            def to_parquet(self, stream, **_):
                stream.write(b"PAR1 half a table")
                stream.flush()
                os.kill(os.getpid(), signal.SIGKILL)
        TableDataset(filepath={str(target)!r}).save(Dying({{"a": [9]}}))
        """
    )
    died = subprocess.run([sys.executable, "-c", script], check=False, env=os.environ)
    assert died.returncode == -signal.SIGKILL
    assert TableDataset(filepath=str(target)).load()["a"].tolist() == [1, 2, 3]
