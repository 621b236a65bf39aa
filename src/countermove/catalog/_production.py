"""Models, registry, history and labelled batches: what a scheduled run works on."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from kedro.io import AbstractVersionedDataset, DatasetError, Version

from countermove.catalog._folders import ReadOnlyDataset, UserFilesDataset, schema_at
from countermove.catalog.previews import ROWS, JSONPreview, TablePreview, table_preview
from countermove.errors import without_passwords
from countermove.scores.storage import DESCRIPTION, PublishedModel, load_model, save_model

if TYPE_CHECKING:
    from countermove.production.history import DecisionHistory
    from countermove.production.registry import Registry
    from countermove.production.retraining.labelled_batch import LabelledBatch


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
        return load_model(Path(self._get_load_path()), schema_at(self._schema))

    def save(self, data: PublishedModel) -> None:
        """Write a new version."""
        save_model(data, Path(self._get_save_path()))

    def preview(self) -> JSONPreview:
        """Return what the newest version says about itself; its weights stay unread."""
        if not self._exists():
            return None
        path: Path = Path(self._get_load_path()) / DESCRIPTION
        return path.read_text("utf-8")

    def _exists(self) -> bool:
        try:
            return Path(self._get_load_path()).exists()
        except DatasetError:
            return False

    def _describe(self) -> dict[str, Any]:
        return {"filepath": str(self._filepath), "version": self._version}


class RegistryDataset(ReadOnlyDataset):
    """The versions of one dataset's rule, see `countermove.production.registry.Registry`.

    Parameters
    ----------
    location
        ``{"path": …}``: a folder of the project, or any fsspec URL.
    schema
        ``{"path": …}`` of the present schema.
    credentials
        Options of the file system, from credentials.yml.
    unsigned
        ``refuse`` or ``accept`` records without a signature, where there is a key.
    metadata
        Layer and other hints for kedro-viz.
    """

    refusal = "the registry is written by the retrain pipeline, not by the catalog"

    def __init__(
        self,
        location: dict[str, str],
        schema: dict[str, str],
        credentials: dict[str, Any] | None = None,
        unsigned: str = "refuse",
        metadata: dict[str, Any] | None = None,
    ) -> None:
        self._url, self._schema = location["path"], Path(schema["path"])
        self._credentials, self.metadata = credentials, metadata
        if unsigned not in ("refuse", "accept"):
            raise DatasetError(f"globals: unsigned_records is refuse or accept, got {unsigned!r}")
        self._unsigned: Any = unsigned

    def load(self) -> Registry:
        """Open the registry."""
        from countermove.production.registry import Registry, Signer

        signer = Signer.from_environment(self._unsigned)
        schema = schema_at(self._schema)
        return Registry(self._url, schema, self._credentials, signer=signer)

    def preview(self) -> JSONPreview:
        """Return the pointer to the champion."""
        from countermove.production.registry.registry import CHAMPION

        store = self.load().store
        return store.read(CHAMPION).decode() if store.exists(CHAMPION) else None

    def _describe(self) -> dict[str, Any]:
        return {"url": without_passwords(self._url)}


class HistoryDataset(ReadOnlyDataset):
    """The history of one dataset's decisions, see `countermove.production.history.DecisionHistory`.

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

    refusal = "the history is written by the retrain pipeline, not by the catalog"

    def __init__(
        self,
        location: dict[str, str],
        dataset: str,
        credentials: dict[str, str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        self._url = (credentials or {}).get("url") or location["path"]
        self._dataset, self.metadata = dataset, metadata

    def load(self) -> DecisionHistory:
        """Open the history."""
        from countermove.production.history import DecisionHistory, database_url

        url = database_url(self._url)
        if "://" not in self._url:
            Path(self._url).parent.mkdir(parents=True, exist_ok=True)
        return DecisionHistory(url, self._dataset)

    def preview(self, nrows: int = ROWS) -> TablePreview:
        """Return the last decisions; nothing before there is a database."""
        if "://" in self._url or not Path(self._url).is_file():
            return None
        return table_preview(self.load().decisions().iloc[::-1], nrows)

    def _describe(self) -> dict[str, Any]:
        return {"dataset": self._dataset}


class LabelledBatchesDataset(UserFilesDataset):
    """Labelled batches: every table in a folder, by date where all have one, else by name.

    A folder that does not exist holds no batch.
    """

    def load(self) -> list[LabelledBatch]:
        """Read every batch as it came, with the marker beside it."""
        from countermove.production.retraining.labelled_batch import read_folder

        return read_folder(self._folder, self._layout())

    def preview(self, nrows: int = ROWS) -> TablePreview:
        """Return the first rows of the newest batch."""
        batches = self.load()
        return table_preview(batches[-1].raw, nrows) if batches else None

    def _exists(self) -> bool:
        return self._folder.is_dir()
