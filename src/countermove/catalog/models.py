"""Versioned models: one folder per version, written whole, checked on load."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

from kedro.io import AbstractVersionedDataset, DatasetError, Version
from kedro_datasets._typing import JSONPreview

from countermove.catalog.tables import schema_at
from countermove.scores.storage import DESCRIPTION, PublishedModel, load_model, save_model


class ModelDataset(AbstractVersionedDataset[PublishedModel, PublishedModel]):
    """A ``PublishedModel`` under ``<filepath>/<version>/``.

    Parameters
    ----------
    filepath
        Folder of all versions of this model.
    schema
        ``{"path": …}`` of the present schema: a model made for another is refused on load.
    version
        Kedro's version; the newest is loaded unless one is pinned.
    metadata
        Layer and other hints for kedro-viz.
    """

    def __init__(
        self,
        filepath: str,
        schema: dict[str, str],
        version: Version | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(PurePosixPath(filepath), version)
        self._schema = Path(schema["path"])
        self.metadata = metadata

    def load(self) -> PublishedModel:
        """Read the newest (or pinned) version."""
        present = schema_at(self._schema)
        return load_model(Path(self._get_load_path()), present.digest())

    def save(self, data: PublishedModel) -> None:
        """Write a new version."""
        save_model(data, Path(self._get_save_path()))

    def preview(self) -> JSONPreview:
        """Return what the newest version says about itself; its weights stay unread."""
        if not self._exists():
            return None
        return JSONPreview((Path(self._get_load_path()) / DESCRIPTION).read_text("utf-8"))

    def _exists(self) -> bool:
        try:
            return Path(self._get_load_path()).exists()
        except DatasetError:
            return False

    def _describe(self) -> dict[str, Any]:
        return {"filepath": str(self._filepath), "version": self._version}
