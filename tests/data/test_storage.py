"""A file is whole or not there."""

import os

import pytest

from countermove.data.storage import replace_file
from countermove.errors import StorageError


@pytest.mark.fault
def test_a_failed_write_leaves_the_old_file_and_no_rubbish(tmp_path, monkeypatch):
    path = tmp_path / "file"
    replace_file(path, b"old")

    def refuse(*_):
        raise OSError("disk full")

    monkeypatch.setattr("countermove.data.storage.os.replace", refuse)
    with pytest.raises(StorageError, match="disk full"):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_gets_the_permissions_of_any_new_file(tmp_path):
    before = os.umask(0o027)
    try:
        replace_file(tmp_path / "champion.json", b"{}")
    finally:
        os.umask(before)
    assert (tmp_path / "champion.json").stat().st_mode & 0o777 == 0o640


def test_a_refusal_names_the_file_and_leaves_what_was_there(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError, match=r"cannot write .*folder: Is a directory"):
        replace_file(tmp_path / "folder", b"x")
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(StorageError, match="File exists"):
        replace_file(tmp_path / "file" / "below", b"x")
    assert (tmp_path / "file").read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]
