"""One run at a time: a lock that the operating system takes back when its holder dies."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from countermove.errors import LockedError, StorageError

PAUSE = 0.2
"""Seconds between two looks at a lock that is taken."""


@contextmanager
def held(path: Path, wait_seconds: float = 0.0) -> Iterator[None]:
    """Hold the lock at ``path`` while the block runs.

    The file stays; the lock on it belongs to the open file, so a run that is killed
    leaves no lock behind. It is a lock between processes of one machine (or of machines
    that share a file system with locks, such as NFS 4).

    Parameters
    ----------
    path
        The lock file; made if it is not there.
    wait_seconds
        How long to wait for another run before leaving.

    Raises
    ------
    LockedError
        If another run holds it; the message says which process.
    StorageError
        If the lock file cannot be made or written.
    """
    with _refusals_of(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _take(descriptor, path, wait_seconds)
        with _refusals_of(path):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()}".encode(), 0)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _refusals_of(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"cannot write the lock {path}: {error.strerror}; free space or mend the permissions, "
            "and run again"
        ) from error


def _take(descriptor: int, path: Path, wait_seconds: float) -> None:
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() >= deadline:
                holder = os.pread(descriptor, 100, 0).decode(errors="replace") or "another process"
                raise LockedError(
                    f"{holder} is at work here and holds {path}; waited {wait_seconds:g} s. "
                    "Run again when it is done; a lock never outlives its process"
                ) from error
            time.sleep(PAUSE)
        else:
            return
