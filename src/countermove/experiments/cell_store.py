"""Finished cells of an experiment, kept by what decided them.

One small file per cell, named by a digest of its parameters and its data: a
sweep that was killed goes on where it stopped, and a cell whose parameters or
rows changed is simply not found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd

from countermove.data.storage import replace_file, settings_digest
from countermove.errors import ModelFileError

CELL = re.compile(r"[0-9a-f]{32}\.json")


@dataclass(frozen=True)
class CellStore:
    """A folder of finished cells, made with the first one; workers elsewhere must see it too."""

    folder: Path

    def get(self, key: str) -> dict[str, Any] | None:
        """Return a finished cell, or None."""
        path = self._path(key)
        if not path.is_file():
            return None
        try:
            cell: dict[str, Any] = json.loads(path.read_bytes())
        except json.JSONDecodeError as error:
            raise ModelFileError(
                f"{path} is no finished cell ({error}); delete it and run again"
            ) from error
        return cell

    def known(self, keys: Sequence[str]) -> dict[int, dict[str, Any]]:
        """Return the finished cells among some, by their place in the list."""
        found = {place: self.get(key) for place, key in enumerate(keys)}
        return {place: cell for place, cell in found.items() if cell is not None}

    def put(self, key: str, cell: Mapping[str, Any]) -> None:
        """Keep a finished cell: the file is whole or not there."""
        replace_file(self._path(key), json.dumps(dict(cell)).encode())

    def prune(self, asked: Iterable[str]) -> int:
        """Remove every cell but those asked for; return how many. Other files stay."""
        kept = set(asked)
        old = [path for path in self.folder.glob("*.json") if path.stem not in kept]
        cells = [path for path in old if CELL.fullmatch(path.name)]
        for path in cells:
            path.unlink()
        return len(cells)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"


def content_key(settings: Mapping[str, Any], *tables: pd.DataFrame) -> str:
    """Return a digest of settings and of every cell of some tables.

    >>> content_key({"a": 1}) == content_key({"a": 1.5})
    False
    """
    digest = sha256(settings_digest(settings).encode())
    for table in tables:
        kinds = [[name, str(kind)] for name, kind in table.dtypes.items()]
        digest.update(json.dumps(kinds).encode())
        digest.update(pd.util.hash_pandas_object(table, index=False).to_numpy().tobytes())
    return digest.hexdigest()[:32]
