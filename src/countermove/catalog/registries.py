"""The registry of a dataset's rules."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from kedro.io import AbstractDataset, DatasetError

from countermove.catalog.tables import schema_at

if TYPE_CHECKING:
    from countermove.production.registry import Registry


class RegistryDataset(AbstractDataset[None, Any]):
    """Versions of a rule, decisions about them and the champion.

    Parameters
    ----------
    url
        A local folder, or an fsspec URL such as ``s3://bucket/models/credit``.
    schema
        ``{"path": …}`` of the present schema: models made for another are refused.
    credentials
        Of the file system; from credentials.yml or the environment.
    metadata
        Layer and other hints for kedro-viz.
    """

    def __init__(
        self,
        url: str,
        schema: dict[str, str],
        credentials: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        self._url, self._schema = url, Path(schema["path"])
        self._credentials = credentials
        self.metadata = metadata

    def load(self) -> Registry:
        """Open it; nothing is read yet."""
        from countermove.production.registry import Registry

        return Registry(self._url, schema_at(self._schema).digest(), self._credentials)

    def save(self, data: None) -> None:
        """Refuse: a registry writes its own versions."""
        raise DatasetError("versions are added to the registry, which is never replaced")

    def _exists(self) -> bool:
        return True

    def _describe(self) -> dict[str, Any]:
        return {"url": self._url}
