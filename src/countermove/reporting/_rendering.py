"""Pages from Jinja2 templates: texts are escaped, an unknown name is an error."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


@cache
def _environment() -> Environment:
    """Return the one environment of all pages."""
    return Environment(
        loader=PackageLoader("countermove.reporting", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(template: str, **context: Any) -> str:
    """Return a template of ``reporting/templates`` filled with ``context``."""
    return _environment().get_template(template).render(**context)
