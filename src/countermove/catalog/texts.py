"""Texts by name, and the vectors of their sentences."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from kedro.io import AbstractDataset, DatasetError

from countermove.data.texts import Texts, read_texts


class TextsDataset(AbstractDataset[None, Any]):
    """Every file of texts by name, read when it is asked for (see `read_texts`)."""

    def __init__(self, folder: dict[str, str], metadata: dict[str, Any] | None = None) -> None:
        self._folder = Path(folder["path"])
        self.metadata = metadata

    def load(self) -> Callable[..., Texts]:
        """Return a function from a name and its columns to the texts."""
        return partial(read_texts, folder=self._folder)

    def save(self, data: None) -> None:
        """Refuse: raw data is never written."""
        raise DatasetError("raw texts are read-only")

    def _describe(self) -> dict[str, Any]:
        return {"folder": str(self._folder)}


class VectorsDataset(AbstractDataset[None, Any]):
    """The vectors kept for each encoder; what is missing is encoded when it is asked for."""

    def __init__(self, folder: dict[str, str], metadata: dict[str, Any] | None = None) -> None:
        self._folder = Path(folder["path"])
        self.metadata = metadata

    def load(self) -> Callable[..., Any]:
        """Return a function from an encoder to its store."""
        from countermove.recourse.text import VectorStore

        return partial(VectorStore, folder=self._folder)

    def save(self, data: None) -> None:
        """Refuse: a store writes its own parts."""
        raise DatasetError("vectors are kept as they are made")

    def _describe(self) -> dict[str, Any]:
        return {"folder": str(self._folder)}
