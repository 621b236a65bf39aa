"""Schemas, raw tables and texts, as the user brings them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from countermove.catalog._folders import (
    ReadOnlyDataset,
    ReadOnlyFolderDataset,
    UserFilesDataset,
    schema_at,
)
from countermove.catalog.previews import ROWS, TablePreview, table_preview
from countermove.data.checks import check_table
from countermove.data.cleaning import clean_rows
from countermove.data.files import RawTable
from countermove.data.schema import Schema, load_schema
from countermove.data.series import with_steps
from countermove.data.sources import expected_files, read_file, read_raw, read_raw_table, user_file
from countermove.data.texts import Texts, read_texts
from countermove.errors import DataError


class SchemaDataset(ReadOnlyDataset):
    """What the columns of a dataset mean: ``conf/<environment>/schemas/<dataset>.yml``."""

    refusal = "schemas are configuration; edit the YAML instead"

    def __init__(self, filepath: str, metadata: dict[str, Any] | None = None) -> None:
        self._filepath = Path(filepath)
        self.metadata = metadata

    def load(self) -> Schema:
        """Read the schema."""
        return schema_at(self._filepath)

    def preview(self) -> TablePreview:
        """Return the features: what each is, and what a person may do about it."""
        features = self.load().features
        described = [{"feature": each.name, **each.to_mapping()} for each in features]
        table = pd.DataFrame(described).drop(columns="categories", errors="ignore").astype(object)
        return table_preview(table.where(table.notna(), ""), len(table))

    def _exists(self) -> bool:
        return self._filepath.exists()

    def _describe(self) -> dict[str, Any]:
        return {"filepath": str(self._filepath)}


class RawTableDataset(ReadOnlyFolderDataset):
    """The raw table of a dataset: the user's file, else the embedded or fabricated one.

    Parameters
    ----------
    folder
        ``{"path": …}`` of the folder where users put ``<dataset>.csv`` or ``<dataset>.parquet``.
    schema
        ``{"path": …}`` of the dataset's schema; its name is the dataset's.
    metadata
        Layer and other hints for kedro-viz.
    """

    def __init__(
        self,
        folder: dict[str, str],
        schema: dict[str, str],
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(folder, metadata)
        self._schema = Path(schema["path"])

    def load(self) -> RawTable:
        """Read the table as it came, and the lines of its file that are no rows."""
        return read_raw_table(self._schema.stem, self._folder, schema_at(self._schema))

    def preview(self, nrows: int = ROWS) -> TablePreview:
        """Return the first rows."""
        return table_preview(self.load().frame, nrows)

    def _describe(self) -> dict[str, Any]:
        return {"dataset": self._schema.stem, "folder": str(self._folder)}


class DeploymentTableDataset(UserFilesDataset):
    """People before or after a deployment: ``<folder>/<name>.csv`` or ``.parquet``.

    Parameters
    ----------
    folder
        ``{"path": …}`` of the folder of the user's files.
    name
        Of the file, without its ending.
    schema
        ``{"path": …}`` of the schema that says how the file is laid out; None: plainly.
    metadata
        Layer and other hints for kedro-viz.
    """

    def __init__(
        self,
        folder: dict[str, str],
        name: str,
        schema: dict[str, str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(folder, schema, metadata)
        self._name = name

    def load(self) -> pd.DataFrame:
        """Read the table as it came."""
        found = user_file(self._name, self._folder)
        if found is None:
            expected = expected_files(self._name, self._folder)
            raise DataError(f"missing file: people as they stood are expected in {expected}")
        return read_file(found, self._layout())

    def preview(self, nrows: int = ROWS) -> TablePreview:
        """Return the first rows."""
        there = user_file(self._name, self._folder) is not None
        return table_preview(self.load(), nrows) if there else None

    def _describe(self) -> dict[str, Any]:
        return {"folder": str(self._folder), "name": self._name}


class TablesByNameDataset(ReadOnlyFolderDataset):
    """Every table by name, read when it is asked for, and cleaned unless ``cleaned`` is false.

    ``schemas`` are the folders of schemas; of two of one name the first one's is read.
    """

    def __init__(
        self,
        folder: dict[str, str],
        schemas: Sequence[str],
        cleaned: bool = True,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(folder, metadata)
        self._schemas = [Path(each) for each in schemas]
        self._cleaned = cleaned

    def load(self) -> Callable[..., tuple[pd.DataFrame, Schema]]:
        """Return a function from a dataset's name to its typed table and schema.

        Its second argument, ``steps``, is the number of steps of a series (None: the schema's).
        """
        return self._table

    def _table(self, name: str, steps: int | None = None) -> tuple[pd.DataFrame, Schema]:
        schema = load_schema(name, *self._schemas)
        if steps is not None:
            schema = with_steps(schema, steps)
        if not self._cleaned:
            return read_raw(name, self._folder, schema), schema
        return clean_rows(read_raw_table(name, self._folder, schema), schema).table, schema

    def _describe(self) -> dict[str, Any]:
        return {
            "folder": str(self._folder),
            "schemas": [str(each) for each in self._schemas],
            "cleaned": self._cleaned,
        }


class TextsByNameDataset(ReadOnlyFolderDataset):
    """Every file of texts by name, read when it is asked for (see `read_texts`)."""

    refusal = "raw texts are read-only"

    def load(self) -> Callable[..., Texts]:
        """Return a function from a name and its columns to the texts."""
        return partial(read_texts, folder=self._folder)


class MatchesSchema:
    """Catalog validator: the typed table holds what its schema says, and has rows."""

    def __init__(self, schema: dict[str, str]) -> None:
        self._schema = Path(schema["path"])

    def validate(self, data: pd.DataFrame) -> pd.DataFrame:
        """Return the table, or raise a ``DataError`` that names rows and columns."""
        check_table(data, schema_at(self._schema))
        return data
