"""Text that is HTML already, told apart from text that must still be escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

_SEAM = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[_=/:])")


class Markup(str):
    """HTML made by this package; any other string is escaped before it is shown."""

    __slots__ = ()


def html(value: str) -> Markup:
    """Return a text as HTML, escaped unless it is `Markup`."""
    return value if isinstance(value, Markup) else Markup(escape(value))


def joined(parts: Iterable[str], between: str = "") -> Markup:
    """Return texts one after the other, each escaped unless it is `Markup`."""
    return Markup(html(between).join(html(part) for part in parts))


def name(text: str) -> Markup:
    """Return a column's name that may break between its words on a narrow screen."""
    return Markup("<wbr>".join(escape(part) for part in _SEAM.split(text)))


def paragraph(*parts: str, kind: str = "") -> Markup:
    """Return a paragraph of texts."""
    return Markup(f"<p{_class(kind)}>{joined(parts)}</p>")


def bullets(items: Iterable[str], kind: str = "") -> Markup:
    """Return a list of texts."""
    inner = "".join(f"<li>{html(item)}</li>" for item in items)
    return Markup(f"<ul{_class(kind)}>{inner}</ul>")


def folded(summary: str, *parts: str) -> Markup:
    """Return parts that open when the reader asks; on paper they stand open."""
    return Markup(f"<details><summary>{html(summary)}</summary>{joined(parts)}</details>")


def unbroken(*parts: str) -> Markup:
    """Return texts that stay on one line."""
    return Markup(f'<span class="unbroken">{joined(parts)}</span>')


def command(line: str) -> Markup:
    """Return a command to type; a line breaks between its words alone."""
    words = joined((unbroken(word) for word in line.split(" ")), " ")
    return Markup(f"<code>{words}</code>")


def absent(what: str, line: str) -> Markup:
    """Return the sentence that stands where a stage has left nothing."""
    return paragraph(what, " Make it with ", command(line), ".", kind="absent")


def _class(kind: str) -> str:
    return f' class="{escape(kind)}"' if kind else ""
