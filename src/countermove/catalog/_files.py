"""Files that are replaced whole: an interrupted write leaves the previous one readable.

Kedro's own datasets open the target and write into it. These write a sibling
file first and rename it, which a local file system does in one step.
"""

from __future__ import annotations

import glob
import os
import time
import uuid
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

import pandas as pd
from kedro_datasets.json import JSONDataset
from kedro_datasets.pandas import CSVDataset, ParquetDataset
from kedro_datasets.plotly import JSONDataset as PlotlyDataset
from kedro_datasets.text import TextDataset

from countermove.catalog.previews import (
    ROWS,
    JSONPreview,
    PlotlyPreview,
    TablePreview,
    first_rows,
    table_preview,
)
from countermove.data.standardise import Standardiser
from countermove.data.storage import spreadsheet_safe
from countermove.errors import StorageError

ABANDONED = 86_400.0
"""Seconds after which nobody writes on a draft any more."""


class _ReplacedWhole:
    """Mixin for a local, unversioned Kedro file dataset, before it in the bases."""

    _filepath: PurePosixPath
    _draft: PurePosixPath

    def save(self, data: Any) -> None:
        """Write beside the target, under a name that no other run uses, then rename."""
        target = Path(self._filepath)
        _clear(target)
        self._draft = self._filepath.with_name(f".{target.name}.{uuid.uuid4().hex}.partial")
        try:
            super().save(data)  # type: ignore[misc]
            os.replace(self._draft, target)
        except BaseException as error:
            Path(self._draft).unlink(missing_ok=True)
            refused = _refusal(error)
            if refused is None:
                raise
            raise StorageError(
                f"cannot write {self._filepath}: {refused.strerror or refused}; the previous "
                "content is kept. Free space or fix the permissions, and run again"
            ) from error

    def _there(self) -> bool:
        return Path(self._filepath).is_file()

    def _get_save_path(self) -> PurePosixPath:
        return self._draft


def _clear(target: Path) -> None:
    """Remove the drafts that runs left which were killed while they wrote, a day ago or more."""
    for draft in target.parent.glob(f".{glob.escape(target.name)}.*.partial"):
        with suppress(FileNotFoundError):  # Another run clears too.
            if time.time() - draft.stat().st_mtime > ABANDONED:
                draft.unlink()


def _refusal(error: BaseException | None) -> OSError | None:
    """Return the operating system's error, however deeply Kedro wrapped it."""
    while error is not None and not isinstance(error, OSError):
        error = error.__cause__
    return error


class AtomicParquetDataset(_ReplacedWhole, ParquetDataset):  # type: ignore[misc]
    """A parquet table."""

    def preview(self, nrows: int = ROWS) -> TablePreview:
        """Return the first rows."""
        return first_rows(Path(self._filepath), nrows)


class AtomicCSVDataset(_ReplacedWhole, CSVDataset):  # type: ignore[misc]
    """A CSV file: a small table that people open in a spreadsheet, which executes none of it."""

    def save(self, data: pd.DataFrame) -> None:
        """Write the table; text that a spreadsheet would execute begins with an apostrophe."""
        super().save(spreadsheet_safe(data))

    def preview(self, nrows: int = ROWS) -> TablePreview:
        """Return the first rows."""
        if not self._there():
            return None
        return table_preview(pd.read_csv(Path(self._filepath), nrows=nrows), nrows)


class AtomicJSONDataset(_ReplacedWhole, JSONDataset):  # type: ignore[misc]
    """A JSON document; NaN and infinity are refused, because JSON has neither."""

    DEFAULT_SAVE_ARGS: ClassVar[dict[str, Any]] = {"indent": 2, "allow_nan": False}

    def preview(self) -> JSONPreview:
        """Return the document."""
        return Path(self._filepath).read_text("utf-8") if self._there() else None


class StandardiserDataset(AtomicJSONDataset):
    """A `Standardiser`, stored as JSON."""

    def load(self) -> Standardiser:
        """Read the units."""
        return Standardiser.from_json(super().load())

    def save(self, data: Standardiser) -> None:
        """Write the units."""
        super().save(data.to_json())


class AtomicTextDataset(_ReplacedWhole, TextDataset):  # type: ignore[misc]
    """A text file, such as an HTML page."""


class AtomicPlotlyDataset(_ReplacedWhole, PlotlyDataset):  # type: ignore[misc]
    """A plotly figure, as JSON."""

    def preview(self) -> PlotlyPreview:
        """Return the figure."""
        return super().preview() if self._there() else None


class _Optional:
    """Mixin for a file dataset, before it in the bases: a file that is absent loads as None."""

    def load(self) -> Any:
        """Return the content, or None where no run has left the file yet."""
        return super().load() if self.exists() else None  # type: ignore[attr-defined,misc]


class OptionalJSONDataset(_Optional, AtomicJSONDataset):
    """A JSON document, or None where there is no file."""


class OptionalCSVDataset(_Optional, AtomicCSVDataset):
    """A CSV file, or None where there is none."""
