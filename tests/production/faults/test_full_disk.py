"""A disk that is full: one plain message, nothing half-written, the champion as it was."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from countermove.errors import StorageError
from countermove.production.registry import Registry, recover


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of 24 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(place)]
    mount = shutil.which("mount")
    if mount is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system is not permitted here")
    yield place
    # Lazily: a test that failed may still hold a file open, and the next run clears the folder.
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place: Path, leave: int) -> Path:
    """Fill a file system up to some bytes."""
    free = os.statvfs(place)
    path = place / "ballast"
    with path.open("wb") as stream:
        stream.write(b"x" * max(0, free.f_bavail * free.f_frsize - leave))
    return path


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def test_a_registry_on_a_full_disk_stays_as_it_was(small_disk, forker):
    assert forker.order("promote", small_disk)["code"] == 0
    registry = Registry(str(small_disk / "registry"))
    champion = registry.champion()
    assert champion is not None
    known = files(small_disk / "registry")
    ballast = fill(small_disk, leave=0)
    for name, content in (("champion.json", b"x" * 10), ("versions/000002-x/model.json", b"y")):
        with pytest.raises(StorageError, match="No space left on device"):
            registry.store.write(name, content)
    assert files(small_disk / "registry") == known
    still = registry.champion()
    assert still is not None
    assert still.pointer == champion.pointer
    ballast.unlink()
    recover(registry)
    assert forker.order("promote", small_disk)["code"] == 0
    assert registry.pointer() != champion.pointer


@pytest.mark.slow
@pytest.mark.fault
def test_a_promotion_is_refused_at_every_amount_of_free_space(small_disk, forker):
    assert forker.order("promote", small_disk)["code"] == 0
    registry = Registry(str(small_disk / "registry"))
    first = registry.champion()
    assert first is not None
    ended, said = set(), ""
    for leave in range(0, 20 * 4096, 4096):
        ballast = fill(small_disk, leave)
        code = forker.order("promote", small_disk)["code"]
        ended.add(code)
        said += forker.log.read_text()
        assert registry.champion() is not None
        ballast.unlink()
        recover(registry)
        assert recover(registry) == []
        # Nothing half-written outlives the recovery.
        names = {path.name for path in files(small_disk / "registry")}
        assert not {name for name in names if name.startswith(".")}
    # Refused at first, with an error of ours; in the end there is space enough.
    assert ended == {0, 1}
    assert "No space left on device" in said
    assert "disk is full" in said
    assert "StorageError" in said


@pytest.mark.slow
@pytest.mark.fault
@pytest.mark.parametrize("leave", [0, 20_000])
def test_a_run_on_a_full_disk_says_so_plainly(deployed, small_disk, leave):
    place = small_disk / "project"
    shutil.copytree(deployed.path, place)
    project = type(deployed)(place)
    project.bring_batch("one")
    ballast = fill(small_disk, leave)
    ran = project.retrain()
    assert ran.returncode == 1, ran.stderr
    last = [line for line in ran.stderr.splitlines() if line.startswith("Error:")]
    assert last, ran.stderr
    assert "StorageError" in last[0]
    assert "No space left on device" in ran.stderr or "disk is full" in ran.stderr
    assert "Traceback" not in ran.stderr
    registry = Registry(str(place / "data/06_models/tiny"))
    assert registry.champion() is not None
    assert not list(place.rglob(".*.partial"))
    ballast.unlink()
    assert project.retrain().returncode in (0, 3)


def test_a_file_that_may_not_grow_is_refused_and_removed(tmp_path):
    registry = Registry(str(tmp_path))
    registry.store.write("champion.json", b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(StorageError, match="File too large"):
            registry.store.write("champion.json", b"x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert registry.store.read("champion.json") == b"old"
    assert registry.store.names() == ["champion.json"]
