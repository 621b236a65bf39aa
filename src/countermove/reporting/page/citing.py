"""Numbers that carry the place they come from: shown and linked by one look-up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from countermove.reporting.numbers import number
from countermove.reporting.page.markup import Markup

if TYPE_CHECKING:
    import pandas as pd

Key = str | int


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

    def link(self, *path: Key, by: Callable[[Any], str] = number) -> Markup:
        """Return the value at a path, in words and linked to where it stands."""
        return self.linked(by(self.value(*path)), *path)

    def linked(self, text: str, *path: Key) -> Markup:
        """Return a text linked to the value it is about."""
        self.value(*path)
        pointer = "".join(f"/{_token(key)}" for key in path)
        return _anchor(text, f"{self.file}#{pointer}", f"{self.file}: {_dotted(path)}")


@dataclass(frozen=True)
class CitedTable:
    """A CSV file of the run, its rows in the order of the file; rows are linked by RFC 7111."""

    file: str
    table: pd.DataFrame

    def link(self, row: int, column: str, by: Callable[[Any], str] = number) -> Markup:
        """Return a cell in words, linked to its row; the first row after the heading is 0."""
        value = self.table[column].iloc[row]
        where = f"{self.file}: row {row + 1}, {column}"
        # Row 1 of the fragment is the heading.
        return _anchor(by(value), f"{self.file}#row={row + 2}", where)


def _anchor(text: str, address: str, title: str) -> Markup:
    return Markup(
        f'<a class="cited" href="{escape(address)}" title="{escape(title)}">{escape(text)}</a>'
    )


def _token(key: Key) -> str:
    return quote(str(key).replace("~", "~0").replace("/", "~1"), safe="~")


def _dotted(path: Sequence[Key]) -> str:
    return ".".join(str(key) for key in path)
