"""A file is whole or not there."""

import pytest

from countermove.data.durable import replace_file


@pytest.mark.fault
def test_a_failed_write_leaves_the_old_file_and_no_rubbish(tmp_path, monkeypatch):
    path = tmp_path / "file"
    replace_file(path, b"old")

    def refuse(*_):
        raise OSError("disk full")

    monkeypatch.setattr("countermove.data.durable.os.replace", refuse)
    with pytest.raises(OSError, match="disk full"):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
