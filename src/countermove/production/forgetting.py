"""A person is deleted from everything production keeps of them, on request.

Each file is replaced whole: an interrupted deletion has forgotten in some places and not yet in
others, and the same command finishes it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from countermove.data.files import (
    PLAIN,
    FileFormat,
    read_table,
    table_content,
    table_stem,
    table_suffix,
)
from countermove.data.partitions import write_part
from countermove.data.schema import ROW_ID, Schema
from countermove.data.sources import table_hash
from countermove.data.storage import (
    beside,
    flush,
    put_in_place,
    replace_file,
    seal,
)
from countermove.errors import ModelFileError, SchemaError
from countermove.production.lock import held
from countermove.production.open_advice import AdviceRegister
from countermove.production.registry import Registry
from countermove.production.scoring.applicants import SHEET
from countermove.production.scoring.records import FORGOTTEN, MANIFEST, BatchFolder, counted

REHASHED = "forgotten.json"
"""In the registry: hashes that labelled batches have had since somebody was deleted from them."""


@dataclass(frozen=True)
class Kept:
    """Where production keeps people of one dataset.

    Attributes
    ----------
    registry, schema
        Whose register, and which column is the id.
    scored, labelled, applicants
        Folders of scored batches, labelled batches and applicants.
    tables
        Tables made of them: the quarantine, the rows of the last retraining.
    """

    registry: Registry
    schema: Schema
    scored: Path
    labelled: Path
    applicants: Path
    tables: tuple[Path, ...]

    def forget(self, row_id: str) -> list[str]:
        """Delete a person everywhere; return what was deleted where, one sentence each."""
        if self.schema.id is None:
            raise SchemaError(
                f"schema {self.schema.name!r} names no id column, so nobody can be told from "
                "others by id; nothing was deleted"
            )
        register = AdviceRegister(self.registry).forget(row_id)
        said = [f"open advice of batch {batch}: deleted" for batch in register]
        for place in self._scored_batches():
            said += _said(place.published, _from_scored(place, row_id))
        said += [f"{work}: removed, its batch begins again" for work in self._begun_with(row_id)]
        for path in _files(self.labelled):
            said += _said(path, self._from_labelled(path, row_id))
        for path in _files(self.applicants):
            said += _said(path, self._from_table(path, row_id, self.schema.file))
        for path in self.tables:
            said += _said(path, self._from_table(path, row_id))
        return said

    def _scored_batches(self) -> Iterator[BatchFolder]:
        for path in sorted(self.scored.glob("*")):
            if path.is_dir() and not path.name.startswith("."):
                yield BatchFolder(self.scored, path.name)

    def _begun_with(self, row_id: str) -> Iterator[Path]:
        """Remove the work on unfinished batches that the person is in; nothing was published."""
        for work in sorted(self.scored.glob(".*.partial")):
            place = BatchFolder(self.scored, work.name[1:].removesuffix(".partial"))
            with held(place.lock):
                parts = sorted(work.glob("admitted/*.parquet"))
                ids = [pd.read_parquet(part, columns=[ROW_ID])[ROW_ID] for part in parts]
                ids += [pd.read_csv(sheet, dtype="str")[ROW_ID] for sheet in work.glob(SHEET)]
                if any(_is(part.astype(str), row_id).any() for part in ids):
                    shutil.rmtree(work)
                    yield work

    def _from_labelled(self, path: Path, row_id: str) -> int:
        """Delete a person from a labelled batch; its new hash is accepted by retrainings."""
        rest, gone = self._without(path, row_id, self.schema.file)
        if gone:
            hashes = rehashed(self.registry)
            name = table_stem(path)
            hashes[name] = [*hashes.get(name, []), table_hash(rest)]
            self.registry.write(REHASHED, {"batches": hashes})
            replace_file(path, table_content(rest, path, self.schema.file))
        return gone

    def _from_table(self, path: Path, row_id: str, layout: FileFormat = PLAIN) -> int:
        if not path.is_file():
            return 0
        rest, gone = self._without(path, row_id, layout)
        if gone:
            replace_file(path, table_content(rest, path, layout))
        return gone

    def _without(self, path: Path, row_id: str, layout: FileFormat) -> tuple[pd.DataFrame, int]:
        """Return the rows of a file that are not the person's, and how many are."""
        # Lines that are no rows go as well: nobody can tell whose they are.
        table = read_table(path, layout).frame
        columns = [name for name in (self.schema.id, ROW_ID) if name in table.columns]
        theirs = pd.Series(False, index=table.index)
        for name in columns:
            theirs |= _is(table[name].astype(str).str.strip(), row_id)
        return table[~theirs].reset_index(drop=True), int(theirs.sum())


def _is(ids: pd.Series, row_id: str) -> pd.Series:
    """Return which ids are the person's; in files for spreadsheets some have an apostrophe."""
    return ids.isin([row_id, f"'{row_id}"])


def rehashed(registry: Registry) -> dict[str, list[str]]:
    """Return, by labelled batch, the hashes it has had since people were deleted from it."""
    if not registry.store.exists(REHASHED):
        return {}
    found: Any = registry.read(REHASHED).get("batches")
    lists = list(found.values()) if isinstance(found, dict) else [None]
    if not all(isinstance(each, list) and all(isinstance(h, str) for h in each) for each in lists):
        raise ModelFileError(
            f"{registry.store.where(REHASHED)} does not hold lists of hashes; restore it"
        )
    return dict(found)


def _from_scored(place: BatchFolder, row_id: str) -> int:
    """Delete a person from a scored batch: its parts and its counts."""
    with held(place.lock):
        manifest, draft = place.manifest(), beside(place.published, "forgetting")
        shutil.rmtree(draft, ignore_errors=True)
        if manifest is None:
            return 0
        draft.mkdir()
        gone = 0
        sheet = place.published / SHEET
        if sheet.is_file():
            listed = pd.read_csv(sheet, dtype="str", keep_default_na=False)
            theirs = _is(listed[ROW_ID], row_id)
            gone += int(theirs.sum())
            replace_file(draft / SHEET, table_content(listed[~theirs], sheet))
        for part in sorted(place.published.glob("part-*.parquet")):
            rows = pd.read_parquet(part)
            theirs = rows[ROW_ID].astype(str) == row_id
            gone += int(theirs.sum())
            if theirs.any():
                write_part(rows[~theirs].reset_index(drop=True), draft / part.name)
            else:
                shutil.copy2(part, draft / part.name)
        if gone:
            counts = counted(draft) | {FORGOTTEN: manifest.get(FORGOTTEN, 0) + gone}
            replace_file(draft / MANIFEST, seal(manifest | counts))
            put_in_place(draft, place.published)
            flush(place.folder)
        shutil.rmtree(draft, ignore_errors=True)
        shutil.rmtree(place.work, ignore_errors=True)
        return gone


def _files(folder: Path) -> list[Path]:
    """Return the tables under a folder: files, and files of folders."""
    return sorted(path for path in folder.glob("**/*") if table_suffix(path) is not None)


def _said(where: Path, gone: int) -> list[str]:
    return [f"{where}: {gone} {'row' if gone == 1 else 'rows'} deleted"] if gone else []
