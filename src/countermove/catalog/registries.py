"""Registry, history and labelled batches: what a scheduled run works on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from kedro.io import AbstractDataset, DatasetError
from kedro_datasets._typing import JSONPreview, TablePreview

from countermove.catalog.previews import table_preview
from countermove.catalog.tables import schema_at
from countermove.data.sources import SUFFIXES, read_file
from countermove.errors import BlockedError, DataError

if TYPE_CHECKING:
    from countermove.production.history import History
    from countermove.production.registry import Registry
    from countermove.production.retraining.batches import Batch


class RegistryDataset(AbstractDataset[None, Any]):
    """The versions of one dataset's rule, see `countermove.production.registry.Registry`.

    Parameters
    ----------
    location
        ``{"path": …}``: a folder of the project, or any fsspec URL.
    schema
        ``{"path": …}`` of the present schema.
    credentials
        Options of the file system, from credentials.yml.
    metadata
        Layer and other hints for kedro-viz.
    """

    def __init__(
        self,
        location: dict[str, str],
        schema: dict[str, str],
        credentials: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        self._url, self._schema = location["path"], Path(schema["path"])
        self._credentials, self.metadata = credentials, metadata

    def load(self) -> Registry:
        """Open the registry."""
        from countermove.production.registry import Registry

        return Registry(self._url, schema_at(self._schema).digest(), self._credentials)

    def save(self, data: None) -> None:
        """Refuse: versions are added by a retraining."""
        raise DatasetError("the registry is written by the retrain pipeline, not by the catalog")

    def preview(self) -> JSONPreview:
        """Return the pointer to the champion."""
        from countermove.production.registry.registry import CHAMPION

        store = self.load().store
        return JSONPreview(store.read(CHAMPION).decode()) if store.exists(CHAMPION) else None

    def _describe(self) -> dict[str, Any]:
        return {"url": self._url}


class HistoryDataset(AbstractDataset[None, Any]):
    """The history of one dataset's decisions, see `countermove.production.history.History`.

    Parameters
    ----------
    location
        ``{"path": …}``: a SQLite file, or the URL of a database.
    dataset
        Whose history.
    credentials
        ``{"url": …}`` in place of the location, from credentials.yml: it holds a password.
    metadata
        Layer and other hints for kedro-viz.
    """

    def __init__(
        self,
        location: dict[str, str],
        dataset: str,
        credentials: dict[str, str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        self._url = (credentials or {}).get("url") or location["path"]
        self._dataset, self.metadata = dataset, metadata

    def load(self) -> History:
        """Open the history."""
        from countermove.production.history import History

        if "://" in self._url:
            return History(self._url, self._dataset)
        Path(self._url).parent.mkdir(parents=True, exist_ok=True)
        return History(f"sqlite:///{self._url}", self._dataset)

    def save(self, data: None) -> None:
        """Refuse: rows are added by a retraining."""
        raise DatasetError("the history is written by the retrain pipeline, not by the catalog")

    def preview(self, nrows: int = 5) -> TablePreview:
        """Return the last decisions; nothing before there is a database."""
        if "://" in self._url or not Path(self._url).is_file():
            return None
        return table_preview(self.load().decisions().iloc[::-1], nrows)

    def _describe(self) -> dict[str, Any]:
        return {"dataset": self._dataset}


class BatchesDataset(AbstractDataset[None, Any]):
    """Labelled batches: every CSV and parquet file of a folder, in order of their names.

    Parameters
    ----------
    folder
        ``{"path": …}`` of the folder; none means no batch.
    metadata
        Layer and other hints for kedro-viz.
    """

    def __init__(self, folder: dict[str, str], metadata: dict[str, Any] | None = None) -> None:
        self._folder, self.metadata = Path(folder["path"]), metadata

    def load(self) -> list[Batch]:
        """Read every batch as it came."""
        from countermove.production.retraining.batches import Batch

        files = sorted(path for path in self._folder.glob("*") if path.suffix in SUFFIXES)
        names = [path.stem for path in files]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise BlockedError(f"two files for batch {twice[0]!r} in {self._folder}; keep one")
        try:
            return [Batch(path.stem, read_file(path)) for path in files]
        except DataError as error:
            raise BlockedError(f"a batch cannot be read: {error}", rows=error.rows) from error

    def save(self, data: None) -> None:
        """Refuse: raw data is never written."""
        raise DatasetError("raw tables are read-only")

    def preview(self, nrows: int = 5) -> TablePreview:
        """Return the first rows of the newest batch."""
        batches = self.load()
        return table_preview(batches[-1].raw, nrows) if batches else None

    def _exists(self) -> bool:
        return self._folder.is_dir()

    def _describe(self) -> dict[str, Any]:
        return {"folder": str(self._folder)}
