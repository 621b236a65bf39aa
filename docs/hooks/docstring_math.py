"""Turn the formulas of docstrings, written for Sphinx, into those of these pages."""

from __future__ import annotations

import re
import textwrap
from typing import Any

from griffe import Extension, Object

BLOCK = re.compile(
    r"^(?P<indent>[ ]*)\.\. math::[ ]*(?P<first>.*)(?:\n|\Z)"
    r"(?P<rest>(?:(?P=indent)[ ]+\S.*(?:\n|\Z)|[ ]*\n(?=(?P=indent)[ ]+\S))*)",
    re.MULTILINE,
)
INLINE = re.compile(r":math:`([^`]+)`")
ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc):`~?([^`]+)`")


def markdown(text: str) -> str:
    """Return a docstring with its formulas as Markdown has them."""
    text = BLOCK.sub(_display, text)
    text = INLINE.sub(r"\\(\1\\)", text)
    return ROLE.sub(r"`\1`", text)


def _display(found: re.Match[str]) -> str:
    indent = found["indent"]
    lines = [found["first"].strip(), *textwrap.dedent(found["rest"]).strip().splitlines()]
    formula = " ".join(line.strip() for line in lines if line.strip())
    return f"\n{indent}$$ {formula} $$\n\n"


class DocstringMath(Extension):
    """Applied to every object before its docstring is parsed."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring in place."""
        if obj.docstring is not None:
            obj.docstring.value = markdown(obj.docstring.value)
