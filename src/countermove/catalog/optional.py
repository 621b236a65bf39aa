"""Files that need not be there: absent, they load as None, and the reader says what is missing."""

from __future__ import annotations

from typing import Any

from countermove.catalog.files import CellsDataset, FactsDataset


class _Optional:
    """Mixin for a file dataset, before it in the bases: a file that is absent loads as None."""

    def load(self) -> Any:
        """Return the content, or None where no run has left the file yet."""
        return super().load() if self.exists() else None  # type: ignore[attr-defined,misc]


class OptionalFactsDataset(_Optional, FactsDataset):
    """A JSON document, or None."""


class OptionalCellsDataset(_Optional, CellsDataset):
    """A small table, or None."""
