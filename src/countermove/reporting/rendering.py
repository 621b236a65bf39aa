"""Pages from Jinja2 templates: texts are escaped, an unknown name is an error."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from importlib.resources import files
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from countermove import __version__

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

PLOTLY = "plotly-cartesian.min.js"
"""The official cartesian bundle of plotly.js 4.1.1 (npm, plotly.js-cartesian-dist-min; MIT, its
licence lies beside it): the version that plotly for Python draws for."""
PLOTLY_DIGEST = "79542150855a52c567260e3137095dbe2b744e6d702a5cabe67da246942fba7a"
"""SHA-256 of the bundle as it came from npm."""
TRACES = frozenset(
    (
        *("bar", "box", "contour", "heatmap", "histogram", "histogram2d", "histogram2dcontour"),
        *("image", "pie", "scatter", "scatterternary", "violin"),
    )
)
"""What the bundle can draw."""
_SEAM = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[_=/:])")


def render(template: str, **context: Any) -> str:
    """Return a template of ``reporting/templates`` filled with ``context``."""
    return environment().get_template(template).render(**context)


def plotting_script() -> Markup:
    """Return plotly.js, the part of it that our figures need, to stand inside a page."""
    return asset(PLOTLY)


def figure_data(figure: Figure) -> dict[str, Any]:
    """Return a plotly figure as the plain data that the macro ``stored_figure`` embeds."""
    content: dict[str, Any] = json.loads(figure.to_json())
    return content


def macro(name: str) -> Callable[..., str]:
    """Return a macro of ``macros.html``, to be called from Python."""
    made: Callable[..., str] = getattr(environment().get_template("macros.html").module, name)
    return made


@cache
def environment() -> Environment:
    """Return the one environment of all pages."""
    made = Environment(
        loader=PackageLoader("countermove.reporting", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Keys stay in their order, and no number of a page may be NaN.
    made.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    made.globals |= {
        "asset": asset,
        "countermove_version": __version__,
        "plotting_script": plotting_script,
    }
    made.filters["breakable"] = breakable
    return made


@cache
def asset(file: str) -> Markup:
    """Return a style or a script of this package as it stands in its file."""
    return Markup(files("countermove.reporting").joinpath("assets", file).read_text("utf-8"))


def breakable(text: str) -> Markup:
    """Return a column's name that may break between its words on a narrow screen."""
    return Markup("<wbr>").join(escape(part) for part in _SEAM.split(text))


def axis_label(text: str, width: int = 22) -> str:
    """Return an axis label broken into lines, escaped for plotly."""
    return plotly_text(wrap(text, width)) or " "


def plotly_text(lines: Iterable[str]) -> str:
    """Return lines as one text of a figure; plotly reads a little HTML."""
    return "<br>".join(html.escape(line, quote=False) for line in lines)
