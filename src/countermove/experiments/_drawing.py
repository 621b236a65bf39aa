"""What the figures of the experiments share: colours, and lines of columns of a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    from plotly.graph_objects import Scatter

PUBLISHED, AGAIN, RIGHT, OTHER, DARK = "#c53030", "#dd9c3c", "#00796b", "#2b6cb0", "#1f2933"
"""Colours: as published, that on fresh draws, what holds, a second thing that holds, truth."""
GREY, OCHRE, VIOLET = "#9aa5b1", "#b7791f", "#805ad5"
COLOURS = (DARK, OTHER, RIGHT, AGAIN, PUBLISHED)
BELOW = {"orientation": "h", "y": -0.2}
"""A legend below the figure."""
DOTTED = {"mode": "lines", "line": {"dash": "dot"}}
"""The look of a line beside the one it limits."""


def line(x: pd.Series, y: pd.Series, name: str, colour: str, **look: Any) -> Scatter:
    """Return a line; what ``look`` says goes before what a line usually is."""
    from plotly.graph_objects import Scatter

    stroke = {"color": colour} | look.pop("line", {})
    return Scatter(x=x.tolist(), y=y.tolist(), name=name, line=stroke, **look)


def marked(frame: pd.DataFrame, x: str, y: str, name: str, colour: str, **look: Any) -> Scatter:
    """Return a line with markers, of two columns of a frame."""
    return line(frame[x], frame[y], name, colour, **({"mode": "lines+markers"} | look))


def coloured(frame: pd.DataFrame, by: str) -> Iterator[tuple[Any, pd.DataFrame, str]]:
    """Yield each group of a frame: its name, its rows and a colour of its own."""
    for place, (name, part) in enumerate(frame.groupby(by, sort=False)):
        yield name, part, COLOURS[place % len(COLOURS)]
