"""One run at a time: a lock that the operating system takes back when its holder dies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from countermove.errors import LockedError, StorageError


@contextmanager
def held(path: Path, wait_seconds: float = 0.0) -> Iterator[None]:
    """Hold the lock at ``path`` while the block runs; the file stays, the lock does not."""
    # It excludes processes of one machine (or of machines that share a file system with locks,
    # such as NFS 4). The file is preserved and names its holder, for the message to the others.
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(
            path, wait_seconds, preserve_lock_file=True, on_acquired=_name_holder
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
        yield


def _name_holder(descriptor: int) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"process {os.getpid()}".encode(), 0)


def _holder(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") or "another process"
