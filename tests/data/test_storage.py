"""A file is whole or not there, and a digest says what is in it."""

import os

import numpy as np
import pandas as pd
import pytest

from countermove.data.storage import replace_file, seal, settings_digest, spreadsheet_safe, unseal
from countermove.errors import ModelFileError, StorageError


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


def test_a_sealed_record_shows_every_change():
    record = {"version": 3, "threshold": 0.1 + 0.2}
    sealed = seal(record)
    assert unseal(sealed, "here") == record
    with pytest.raises(ModelFileError, match="here was altered"):
        unseal(sealed.replace(b'"version": 3', b'"version": 4'), "here")
    for content in (b"", b"[]", b'{"version": 3}'):
        with pytest.raises(ModelFileError, match="not a sealed record"):
            unseal(content, "here")


def test_a_digest_of_settings_counts_every_value_but_not_their_order():
    settings = {"scale": 1.0, "people": {"lower": np.zeros(2000)}}
    same = {"people": {"lower": np.zeros(2000)}, "scale": 1.0}
    assert settings_digest(settings) == settings_digest(same)
    # Printed, so long an array would be abbreviated.
    same["people"]["lower"][1000] = 1e-9
    assert settings_digest(settings) != settings_digest(same)


@pytest.mark.parametrize(
    "cell",
    ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "  =1", "＝1"],
)
def test_no_text_is_executed_by_a_spreadsheet(cell):
    safe = spreadsheet_safe(pd.DataFrame({"text": [cell, "plain", None], "n": [-1.5, 2.0, 3.0]}))
    assert safe["text"].iloc[0] == f"'{cell}"
    assert safe["text"].iloc[1] == "plain"
    assert pd.isna(safe["text"].iloc[2])
    assert safe["n"].tolist() == [-1.5, 2.0, 3.0]


def test_numbers_stay_numbers_also_as_text_and_names_of_columns_are_safe_too():
    table = pd.DataFrame({"=a": ["-5", "+3.2", "-1e-9"], "b": pd.Series([1, -2, 3], dtype=object)})
    safe = spreadsheet_safe(table)
    assert list(safe.columns) == ["'=a", "b"]
    assert safe["'=a"].tolist() == ["-5", "+3.2", "-1e-9"]
    assert safe["b"].tolist() == [1, -2, 3]
