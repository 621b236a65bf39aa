"""Which tables there are: in the package, in the raw folder, or to be fetched."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from countermove.data.fetching import was_fetched
from countermove.data.names import known_datasets
from countermove.data.published import PUBLISHED, TEXTS, WITHOUT_FETCHING, Facts
from countermove.data.schema import LABEL, Schema, load_schema
from countermove.data.sources import SUFFIXES, read_file
from countermove.errors import CountermoveError

State: TypeAlias = Literal[
    "embedded", "fabricated", "fetched", "fetchable", "your file", "unusable file", "no file yet"
]


@dataclass(frozen=True)
class Listed:
    """One table: where it is, how many people it has, how many fare well, on what terms."""

    name: str
    state: State
    facts: Facts | None
    description: str

    def cells(self) -> tuple[str, str, str, str, str, str]:
        """Return the entry in words: name, state, rows, favourable share, terms, description."""
        if self.facts is None:
            return self.name, self.state, "", "", "", self.description
        rows, share = f"{self.facts.rows:,}", f"{self.facts.favourable:.1%}"
        return self.name, self.state, rows, share, self.facts.terms, self.description


HEADINGS = ("dataset", "state", "rows", "favourable", "terms", "what it is")


def list_datasets(schemas: Path, raw_folder: Path) -> list[Listed]:
    """Return every dataset that has a schema, by name, then the texts that can be fetched.

    Tables that come with Countermove or were fetched are known in numbers; only
    a file of the user's own is read to count its rows.
    """
    tables = [_listed(load_schema(name, schemas), raw_folder) for name in known_datasets(schemas)]
    return tables + [_listed_text(name, raw_folder) for name in sorted(TEXTS)]


def _listed_text(name: str, raw_folder: Path) -> Listed:
    there = was_fetched(raw_folder / f"{name}{TEXTS[name].suffix}")
    description = f"texts with labels (docs/data/{name}.md)"
    return Listed(name, "fetched" if there else "fetchable", TEXTS[name].facts, description)


def _listed(schema: Schema, raw_folder: Path) -> Listed:
    name = schema.name
    known = PUBLISHED[name].facts if name in PUBLISHED else WITHOUT_FETCHING.get(name)
    there = [path for s in SUFFIXES if (path := raw_folder / f"{name}{s}").is_file()]
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


def _counted(path: Path, schema: Schema) -> Facts | None:
    """Return the numbers of the user's own table; ``None`` if a run would refuse it."""
    from countermove.data.cleaning import clean

    try:
        table = clean(read_file(path), schema)
    except CountermoveError:
        return None
    return Facts(len(table), float((table[LABEL] == 1).mean()), "yours")
