"""Numbers that carry the place they come from: shown and linked by one look-up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from countermove.reporting.rendering import macro
from countermove.reporting.words import number, share

if TYPE_CHECKING:
    import pandas as pd

Key = str | int
Write = Callable[[Any], str]


@dataclass(frozen=True)
class Citation:
    """A value in words and where it was read; in a template it is a link (macro ``cited``)."""

    text: str
    address: str
    title: str
    id: str = ""

    def __html__(self) -> str:
        """Return the link, see MarkupSafe."""
        return macro("cited")(self)


Text = str | Citation | tuple["str | Citation", ...]
"""What a template can show: a text, a citation, or several of them one after the other."""
Row = Sequence[Text]


@dataclass(frozen=True)
class Cited:
    """A JSON document of the run and its address, relative to the page.

    The text of a link is formatted from the very value that its address points to (a JSON
    pointer, RFC 6901), so a number on the page cannot differ from its source.
    """

    file: str
    facts: Mapping[str, Any] | Sequence[Any]

    def value(self, *path: Key) -> Any:
        """Return the value at a path."""
        found: Any = self.facts
        for key in path:
            found = found[key]
        return found

    def link(self, *path: Key, by: Write = number, id: str = "") -> Citation:  # noqa: A002
        """Return the value at a path, in words and linked to where it stands."""
        return self.linked(by(self.value(*path)), *path, id=id)

    def number(self, *path: Key, form: str) -> Citation:
        """Return the value at a path as ``number`` writes it by ``form``."""
        return self.link(*path, by=lambda value: number(value, form))

    def words(self, *path: Key) -> Citation:
        """Return the value at a path as it stands."""
        return self.link(*path, by=str)

    def share(self, *path: Key) -> Citation:
        """Return the value at a path in per cent."""
        return self.link(*path, by=share)

    def linked(self, text: str, *path: Key, id: str = "") -> Citation:  # noqa: A002
        """Return a text linked to the value it is about."""
        self.value(*path)
        pointer = "".join(f"/{_token(key)}" for key in path)
        dotted = ".".join(str(key) for key in path)
        return Citation(text, f"{self.file}#{pointer}", f"{self.file}: {dotted}", id)


@dataclass(frozen=True)
class CitedTable:
    """A CSV file of the run, its rows in the order of the file; rows are linked by RFC 7111."""

    file: str
    table: pd.DataFrame

    def link(self, row: int, column: str, by: Write = number) -> Citation:
        """Return a cell in words, linked to its row; the first row after the heading is 0."""
        text = by(self.table[column].iloc[row])
        # Row 1 of the fragment is the heading.
        return Citation(text, f"{self.file}#row={row + 2}", f"{self.file}: row {row + 1}, {column}")

    def number(self, row: int, column: str, form: str) -> Citation:
        """Return a cell as ``number`` writes it by ``form``."""
        return self.link(row, column, by=lambda value: number(value, form))

    def share(self, row: int, column: str) -> Citation:
        """Return a cell in per cent."""
        return self.link(row, column, by=share)


def _token(key: Key) -> str:
    return quote(str(key).replace("~", "~0").replace("/", "~1"), safe="~")
