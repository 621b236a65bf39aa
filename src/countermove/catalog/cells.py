"""Finished cells of a sweep, one small file each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kedro.io import AbstractDataset, DatasetError

from countermove.production.cells import CellStore


class CellStoreDataset(AbstractDataset[None, Any]):
    """The folder where a sweep keeps its finished cells, so that it can go on after a stop.

    Parameters
    ----------
    folder
        ``{"path": …}`` of the folder; delete it to train every cell anew.
    metadata
        Layer and other hints for kedro-viz.
    """

    def __init__(self, folder: dict[str, str], metadata: dict[str, Any] | None = None) -> None:
        self._folder = Path(folder["path"])
        self.metadata = metadata

    def load(self) -> CellStore:
        """Return the store; its path is absolute, because workers start elsewhere."""
        return CellStore(self._folder.absolute())

    def save(self, data: None) -> None:
        """Refuse: cells are put there one by one, when they are finished."""
        raise DatasetError("a sweep puts its cells there itself")

    def _exists(self) -> bool:
        return True

    def _describe(self) -> dict[str, Any]:
        return {"folder": str(self._folder)}
