"""Tables of people before and after a deployment, as the user brings them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from kedro.io import AbstractDataset, DatasetError
from kedro_datasets._typing import TablePreview

from countermove.catalog.previews import ROWS, table_preview
from countermove.data.sources import SUFFIXES, read_file
from countermove.errors import DataError


class DeploymentTableDataset(AbstractDataset[None, pd.DataFrame]):
    """The raw table ``<folder>/<name>.csv`` or ``.parquet``.

    Parameters
    ----------
    folder
        ``{"path": …}`` of the folder of the user's files.
    name
        Of the file, without its ending.
    metadata
        Layer and other hints for kedro-viz.
    """

    def __init__(
        self, folder: dict[str, str], name: str, metadata: dict[str, Any] | None = None
    ) -> None:
        self._folder, self._name = Path(folder["path"]), name
        self.metadata = metadata

    def load(self) -> pd.DataFrame:
        """Read the table as it came."""
        candidates = self._candidates()
        found = [path for path in candidates if path.is_file()]
        if len(found) > 1:
            raise DataError(f"two files for {self._name!r}: {found[0]} and {found[1]}; keep one")
        if not found:
            expected = " or ".join(str(path) for path in candidates)
            raise DataError(f"missing file: people as they stood are expected in {expected}")
        return read_file(found[0])

    def save(self, data: None) -> None:
        """Refuse: raw data is never written."""
        raise DatasetError("raw tables are read-only")

    def preview(self, nrows: int = ROWS) -> TablePreview:
        """Return the first rows."""
        there = any(path.is_file() for path in self._candidates())
        return table_preview(self.load(), nrows) if there else None

    def _candidates(self) -> list[Path]:
        return [self._folder / f"{self._name}{suffix}" for suffix in SUFFIXES]

    def _describe(self) -> dict[str, Any]:
        return {"folder": str(self._folder), "name": self._name}
