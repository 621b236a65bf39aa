"""Files by name, in a folder of this machine or at any fsspec URL.

Each file appears whole: locally by a rename after it has reached the disk,
elsewhere because a store of objects puts an object at once or not at all.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from countermove.data.storage import replace_file
from countermove.errors import ModelFileError, StorageError, without_passwords


class Store:
    """Small files under one root.

    Parameters
    ----------
    url
        A local folder, or an fsspec URL such as ``s3://bucket/models/credit``.
    options
        What the file system is opened with: keys, endpoints. Never written anywhere.
    """

    def __init__(self, url: str, options: Mapping[str, Any] | None = None) -> None:
        from fsspec.core import url_to_fs

        self.url = url.rstrip("/")
        try:
            self._files, root = url_to_fs(self.url, **(options or {}))
        except (ImportError, ValueError, TypeError, OSError) as error:
            if not options:
                raise StorageError(f"cannot open the registry at {self.url}: {error}") from error
            # An error's words may hold what the file system was opened with: they are not shown.
            raise StorageError(
                f"cannot open the registry at {self.url} with the options "
                f"{', '.join(sorted(options))} ({type(error).__name__}); look at its entry in "
                "credentials.yml"
            ) from None
        self._root = root.rstrip("/")
        protocol = self._files.protocol
        self.local = "file" in ((protocol,) if isinstance(protocol, str) else protocol)

    @property
    def folder(self) -> Path | None:
        """The folder of this machine that holds the files; None at any other URL."""
        return Path(self._root) if self.local else None

    def where(self, name: str = "") -> str:
        """Return what messages call a file."""
        shown = without_passwords(self.url)
        return f"{shown}/{name}" if name else shown

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        try:
            content: bytes = self._files.cat_file(self._path(name))
        except FileNotFoundError as error:
            raise ModelFileError(f"{self.where(name)} is not there") from error
        except OSError as error:
            raise ModelFileError(f"cannot read {self.where(name)}: {error}") from error
        return content

    def write(self, name: str, content: bytes) -> None:
        """Write or replace a file; a reader sees the old content or the new one."""
        if self.local:
            replace_file(Path(self._path(name)), content)
            return
        try:
            self._files.pipe_file(self._path(name), content)
        except OSError as error:
            raise StorageError(f"cannot write {self.where(name)}: {error}; run again") from error

    def exists(self, name: str) -> bool:
        """Return whether a file is there."""
        return bool(self._files.exists(self._path(name)))

    def names(self, folder: str = "") -> list[str]:
        """Return the names directly under a folder, sorted; none if it is not there."""
        self._files.invalidate_cache()
        try:
            found = self._files.ls(self._path(folder), detail=False)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StorageError(f"cannot list {self.where(folder)}: {error}") from error
        return sorted(str(path).rstrip("/").rpartition("/")[2] for path in found)

    def remove(self, name: str) -> None:
        """Remove a file or a folder with all it holds."""
        path = self._path(name)
        try:
            if self.local and Path(path).is_dir():
                shutil.rmtree(path)
            else:
                self._files.rm(path, recursive=True)
        except OSError as error:
            raise StorageError(f"cannot remove {self.where(name)}: {error}") from error

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root
