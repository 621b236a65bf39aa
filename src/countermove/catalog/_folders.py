"""Folders: tables in parts, batches of applicants, and what a node fills file by file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
from kedro.io import AbstractDataset, DatasetError

from countermove.catalog.previews import ROWS, TablePreview, first_rows
from countermove.data.files import PLAIN, FileFormat
from countermove.data.partitions import Partitions, raw_partitions, read_parts, write_parts
from countermove.data.schema import Schema, load_schema


def schema_at(path: Path) -> Schema:
    """Read the schema that a catalog entry points at."""
    return load_schema(path.stem, path.parent)


class ReadOnlyDataset(AbstractDataset[None, Any]):
    """Base of datasets that the catalog never writes."""

    refusal: ClassVar[str] = "raw tables are read-only"

    def save(self, data: None) -> None:
        """Refuse, and say why."""
        raise DatasetError(self.refusal)


class ReadOnlyFolderDataset(ReadOnlyDataset):
    """Base of datasets that read from a folder and never write to it.

    Parameters
    ----------
    folder
        ``{"path": …}`` of the folder.
    metadata
        Layer and other hints for kedro-viz.
    """

    def __init__(self, folder: dict[str, str], metadata: dict[str, Any] | None = None) -> None:
        self._folder = Path(folder["path"])
        self.metadata = metadata

    def _describe(self) -> dict[str, Any]:
        return {"folder": str(self._folder)}


class UserFilesDataset(ReadOnlyFolderDataset):
    """Base of datasets that read users' files from a folder, laid out as a schema says.

    Parameters
    ----------
    folder
        ``{"path": …}`` of the folder.
    schema
        ``{"path": …}`` of the schema that says how the files are laid out; None: plainly.
    metadata
        Layer and other hints for kedro-viz.
    """

    def __init__(
        self,
        folder: dict[str, str],
        schema: dict[str, str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(folder, metadata)
        self._schema = schema

    def _layout(self) -> FileFormat:
        return PLAIN if self._schema is None else schema_at(Path(self._schema["path"])).file


class ApplicantBatchesDataset(ReadOnlyFolderDataset):
    """Every batch by its id: ``<folder>/<id>.csv``, ``.parquet``, or a folder ``<id>`` of such."""

    def load(self) -> Callable[..., Partitions]:
        """Return a function from an id, the rows held at once and a layout to the parts."""
        return partial(raw_partitions, folder=self._folder.absolute())


class RawPartsDataset(ReadOnlyFolderDataset):
    """The user's raw table, a part at a time: a directory of files, or one file.

    Parameters
    ----------
    folder
        ``{"path": …}`` of the folder where users put ``<dataset>/`` or ``<dataset>.parquet``.
    dataset
        Name of the dataset.
    metadata
        Layer and other hints for kedro-viz.
    """

    def __init__(
        self, folder: dict[str, str], dataset: str, metadata: dict[str, Any] | None = None
    ) -> None:
        super().__init__(folder, metadata)
        self._dataset = dataset

    def load(self) -> Callable[..., Partitions]:
        """Return a function from the number of rows held at once (and a layout) to the parts."""
        return partial(raw_partitions, self._dataset, self._folder)

    def _describe(self) -> dict[str, Any]:
        return {"dataset": self._dataset, "folder": str(self._folder)}


class PartsDataset(AbstractDataset[Iterable[tuple[str, pd.DataFrame]], dict[str, Partitions]]):
    """A folder with one directory of parquet files per split, replaced whole.

    What is saved may be a generator: parts are written as they come.

    Parameters
    ----------
    folder
        ``{"path": …}`` of the folder.
    metadata
        Layer and other hints for kedro-viz.
    """

    def __init__(self, folder: dict[str, str], metadata: dict[str, Any] | None = None) -> None:
        self._folder = Path(folder["path"])
        self.metadata = metadata

    def load(self) -> dict[str, Partitions]:
        """Return the splits; their rows are read when they are iterated over."""
        return read_parts(self._folder)

    def save(self, data: Iterable[tuple[str, pd.DataFrame]]) -> None:
        """Write the parts, then put the folder in place of the previous one."""
        write_parts(data, self._folder)

    def preview(self, nrows: int = ROWS) -> TablePreview:
        """Return the first rows of the first part."""
        found = min(self._folder.glob("*/*.parquet"), default=None)
        return None if found is None else first_rows(found, nrows)

    def _exists(self) -> bool:
        return self._folder.is_dir()

    def _describe(self) -> dict[str, Any]:
        return {"folder": str(self._folder)}


class FolderDataset(ReadOnlyFolderDataset):
    """A place for results that are written while they are made: parts of a table, finished cells.

    The folder need not exist.
    """

    def load(self) -> Path:
        """Return the path; absolute, because workers start elsewhere."""
        return self._folder.absolute()

    def save(self, data: None) -> None:
        """Refuse: its files are written one by one."""
        raise DatasetError(f"{self._folder} is filled by a node, not by the catalog")

    def preview(self, nrows: int = ROWS) -> TablePreview:
        """Return the first rows of the first table in it."""
        found = min(self._folder.rglob("*.parquet"), default=None)
        return None if found is None else first_rows(found, nrows)

    def _exists(self) -> bool:
        return True
