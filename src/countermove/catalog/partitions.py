"""Tables in parts: directories of parquet files, one per split."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
from kedro.io import AbstractDataset, DatasetError
from kedro_datasets._typing import TablePreview

from countermove.catalog.previews import ROWS, first_rows
from countermove.data.partitions import Partitions, raw_partitions, read_parts, write_parts


class RawPartsDataset(AbstractDataset[None, Any]):
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
        self._folder, self._dataset = Path(folder["path"]), dataset
        self.metadata = metadata

    def load(self) -> Any:
        """Return a function from the number of rows held at once to the parts."""
        return self._parts

    def save(self, data: None) -> None:
        """Refuse: raw data is never written."""
        raise DatasetError("raw tables are read-only")

    def _parts(self, rows_per_part: int) -> Partitions:
        return raw_partitions(self._dataset, self._folder, rows_per_part)

    def _describe(self) -> dict[str, Any]:
        return {"dataset": self._dataset, "folder": str(self._folder)}


class PartsDataset(AbstractDataset[Iterable[tuple[str, pd.DataFrame]], dict[str, Partitions]]):
    """A folder with one directory of parquet files per split, replaced whole.

    What is saved may be a generator: parts are written as they come.
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
