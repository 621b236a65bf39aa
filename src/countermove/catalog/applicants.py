"""Batches of applicants, as the user brings them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from kedro.io import AbstractDataset, DatasetError

from countermove.data.partitions import raw_partitions


class ApplicantsDataset(AbstractDataset[None, Any]):
    """Every batch by its id: ``<folder>/<id>.csv``, ``.parquet``, or a folder ``<id>`` of such.

    Parameters
    ----------
    folder
        ``{"path": …}`` of the folder of a dataset's batches.
    metadata
        Layer and other hints for kedro-viz.
    """

    def __init__(self, folder: dict[str, str], metadata: dict[str, Any] | None = None) -> None:
        self._folder = Path(folder["path"])
        self.metadata = metadata

    def load(self) -> Any:
        """Return a function from an id and the number of rows held at once to the parts."""
        return partial(raw_partitions, folder=self._folder.absolute())

    def save(self, data: None) -> None:
        """Refuse: raw data is never written."""
        raise DatasetError("raw tables are read-only")

    def _describe(self) -> dict[str, Any]:
        return {"folder": str(self._folder)}
