"""Files that are whole or not there, and that others may read."""

from __future__ import annotations

import os

import pytest

from countermove.data.durable import replace_file
from countermove.errors import StorageError


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
    with pytest.raises(StorageError, match="Not a directory"):
        replace_file(tmp_path / "file" / "below", b"x")
    assert (tmp_path / "file").read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]
