"""Files that are whole or not there: content reaches the disk before it gets its name."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from countermove.errors import StorageError


def write_through(path: Path, content: bytes) -> None:
    """Write a file and wait until it is on the disk."""
    with path.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def replace_file(path: Path, content: bytes) -> None:
    """Write ``content`` next to ``path``, flush it to disk, then rename over ``path``.

    Raises
    ------
    StorageError
        If the disk refuses; what was at ``path`` is still there.
    """
    try:
        _replace(path, content)
    except OSError as error:
        raise StorageError(
            f"cannot write {path}: {error.strerror or error}; what was there is as it was. "
            "Free space or mend the permissions, and run again"
        ) from error


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Made with the permissions of any new file: others who may read the folder may read it.
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        write_through(beside, content)
        os.replace(beside, path)
        flush(path.parent)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def flush(path: Path) -> None:
    """Wait until a file, or the renames in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
