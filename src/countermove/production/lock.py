"""One run at a time: a lock that the operating system takes back when its holder dies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from socket import gethostname

from filelock import FileLock, Timeout

from countermove.errors import LockedError, StorageError


@contextmanager
def held(path: Path, wait_seconds: float = 0.0) -> Iterator[str | None]:
    """Hold the lock at ``path`` while the block runs; the file stays, the lock does not.

    Yields
    ------
    str or None
        Who held it before and died; None where the last holder let go of it.
    """
    # It excludes processes of one machine (or of machines that share a file system with locks,
    # such as NFS 4). The file is preserved and names its holder, for the message to the others
    # and, where it is killed, to its successor.
    before: list[str] = []
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(
            path,
            wait_seconds,
            preserve_lock_file=True,
            on_acquired=lambda descriptor: before.append(_take(descriptor)),
        ).acquire()
    except Timeout as error:
        raise LockedError(
            f"{_holder(path)} is at work here and holds {path}; waited {wait_seconds:g} s. "
            "Run again when it is done; a lock never outlives its process"
        ) from error
    except OSError as error:
        raise StorageError(
            f"cannot write the lock {path}: {error.strerror}; free space or fix the permissions, "
            "and run again"
        ) from error
    with lock:
        try:
            # Earlier releases left their name there also when they ended well.
            yield before[0] if "(since " in before[0] else None
        finally:
            with suppress(OSError):
                os.truncate(path, 0)


def _take(descriptor: int) -> str:
    """Write down who holds the lock; return who is still named as its holder."""
    before = os.pread(descriptor, 200, 0).decode("utf-8", errors="replace")
    os.ftruncate(descriptor, 0)
    since = datetime.now(UTC).isoformat(timespec="seconds")
    os.pwrite(descriptor, f"process {os.getpid()} on {gethostname()} (since {since})".encode(), 0)
    return before


def _holder(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") or "another process"
