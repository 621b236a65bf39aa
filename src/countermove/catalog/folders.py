"""Folders that a node fills itself, file by file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kedro.io import AbstractDataset, DatasetError
from kedro_datasets._typing import TablePreview

from countermove.catalog.previews import ROWS, first_rows


class FolderDataset(AbstractDataset[None, Path]):
    """A place for results that are written while they are made: parts of a table, finished cells.

    Parameters
    ----------
    folder
        ``{"path": …}`` of the folder; it need not exist.
    metadata
        Layer and other hints for kedro-viz.
    """

    def __init__(self, folder: dict[str, str], metadata: dict[str, Any] | None = None) -> None:
        self._folder = Path(folder["path"])
        self.metadata = metadata

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

    def _describe(self) -> dict[str, Any]:
        return {"folder": str(self._folder)}
