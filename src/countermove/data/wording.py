"""How a column is spoken of: its display name, what people do about it, what time does alone.

A text is given once for every language or once per language. None of it changes what a
model reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

Texts: TypeAlias = tuple[tuple[str, str], ...]
"""Language (``en``; empty: whatever the language) and text, in the order of the file."""

VALUE = "{value}"
"""The place of the value in a verb; a schema file may also write ``…``."""


def text_in(texts: Texts, language: str) -> str:
    """Return the text in a language, else the one for all of them, else the empty text."""
    known = dict(texts)
    return known.get(language, known.get("", ""))


def texts_entry(texts: Texts) -> str | dict[str, str] | None:
    """Return texts as a schema file holds them."""
    if not texts:
        return None
    return texts[0][1] if texts[0][0] == "" else dict(texts)


@dataclass(frozen=True)
class Wording:
    """The words for one column.

    Parameters
    ----------
    name
        Display name.
    raising, lowering
        What people do to raise or lower it, with ``{value}`` where the new value stands.
    horizon
        What time does by itself, a sentence.
    """

    name: Texts = ()
    raising: Texts = ()
    lowering: Texts = ()
    horizon: Texts = ()

    def name_in(self, language: str) -> str:
        """Return the display name: in the language, else in any; empty without one."""
        return text_in(self.name, language) or next((text for _, text in self.name), "")

    def to_entry(self) -> dict[str, Any]:
        """Return the entries as a schema file would hold them."""
        up, down = texts_entry(self.raising), texts_entry(self.lowering)
        ways = {key: way for key, way in (("up", up), ("down", down)) if way is not None}
        entry = {
            "name": texts_entry(self.name),
            "verb": up if up == down else ways,
            "horizon": texts_entry(self.horizon),
        }
        return {key: value for key, value in entry.items() if value}
