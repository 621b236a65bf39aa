"""The pictures of costs chosen, costs unknown and moves on a surface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


COLOURS = {"naive": "#b7791f", "oracle": "#805ad5", "serm": "#00796b", "blind": "#9aa5b1"}
CALLED = {
    "naive": "naive",
    "oracle": "knows the truth",
    "serm": "strategic",
    "blind": "blind",
}
PEOPLE = {1.0: ("favourable", "#2b6cb0"), -1.0: ("unfavourable", "#c53030")}
"""How both kinds of people are called and drawn."""


def stylised_figure(picture: Mapping[str, Any], title: str) -> Figure:
    """Draw people, the rules learned, and what the experiment is about."""
    from plotly.graph_objects import Figure, Scatter

    X, y = np.array(picture["X"]), np.array(picture["y"])
    figure = Figure()
    for label, (name, colour) in PEOPLE.items():
        of_label = X[y == label]
        dots = {"color": colour, "size": 6, "opacity": 0.7}
        figure.add_trace(
            Scatter(x=of_label[:, 0], y=of_label[:, 1], mode="markers", name=name, marker=dots)
        )
    span = X.min(axis=0), X.max(axis=0)
    for rule, line in picture["rules"].items():
        ends = _boundary(np.array(line["weight"]), line["bias"], *span)
        look = {"color": COLOURS[rule], "width": 3}
        figure.add_trace(
            Scatter(x=ends[:, 0], y=ends[:, 1], mode="lines", name=CALLED[rule], line=look)
        )
    {"flexible": _directions, "unknown": _rings, "manifold": _tangents}[picture["experiment"]](
        figure, picture
    )
    low, high = span
    margin = 0.25 * (high - low)
    figure.update_xaxes(range=[low[0] - margin[0], high[0] + margin[0]], title="x1")
    figure.update_yaxes(range=[low[1] - margin[1], high[1] + margin[1]], title="x2")
    return figure.update_layout(title=title, template="plotly_white")


def _boundary(weight: Any, bias: float, low: Any, high: Any) -> Any:
    """Return two far points of the line on which the score is zero."""
    length = float(np.linalg.norm(weight))
    if length == 0.0:
        return np.empty((0, 2))
    foot = -bias * weight / length**2
    along = np.array([-weight[1], weight[0]]) / length
    # Slide the foot to where the picture is, then reach well beyond its edges.
    middle = foot + along * float(along @ (0.5 * (low + high) - foot))
    far = 4.0 * float(np.linalg.norm(high - low))
    return np.stack([middle - far * along, middle + far * along])


def _arrow(figure: Figure, start: Any, end: Any, colour: str, text: str = "") -> None:
    figure.add_annotation(
        x=end[0], y=end[1], ax=start[0], ay=start[1], xref="x", yref="y", axref="x", ayref="y",
        showarrow=True, arrowhead=3, arrowwidth=2, arrowcolor=colour,
    )  # fmt: skip
    if text:
        figure.add_annotation(x=end[0], y=end[1], text=text, showarrow=False, yshift=14)


def _directions(figure: Figure, picture: Mapping[str, Any]) -> None:
    """Draw the directions in which a move is charged: given, best and learned."""
    names = {"naive": "v₀", "oracle": "v*", "serm": "v̂"}
    for rule, name in names.items():
        direction = np.array(picture["rules"][rule]["direction"])
        end = 0.7 * direction / np.linalg.norm(direction)
        _arrow(figure, (0.0, 0.0), end, COLOURS[rule], name)


def _rings(figure: Figure, picture: Mapping[str, Any]) -> None:
    """Draw how far people may go at the estimate, in truth, and at the ends of the box."""
    from plotly.graph_objects import Scatter

    centre = np.array([-0.6, 0.0])
    angles = np.linspace(0.0, 2.0 * np.pi, 181)
    looks = {
        "estimate": (COLOURS["naive"], "solid"),
        "truth": (COLOURS["oracle"], "solid"),
        "cheapest": (COLOURS["serm"], "dot"),
        "dearest": (COLOURS["serm"], "dot"),
    }
    for name, (colour, dash) in looks.items():
        reach = picture["reaches"][name]
        x, y = centre[0] + reach * np.cos(angles), centre[1] + reach * np.sin(angles)
        figure.add_trace(
            Scatter(
                x=x, y=y, mode="lines", name=f"reach, {name}", line={"color": colour, "dash": dash}
            )
        )


def _tangents(figure: Figure, picture: Mapping[str, Any]) -> None:
    """Draw learned tangents, and where people go along them."""
    from plotly.graph_objects import Scatter

    at, to = np.array(picture["from"]), np.array(picture["to"])
    along = np.array(picture["tangents"])
    x, y = [], []
    for point, direction in zip(at, along, strict=True):
        ends = point + np.array([[-1.0], [1.0]]) * direction
        x += [*ends[:, 0].tolist(), None]
        y += [*ends[:, 1].tolist(), None]
    grey = {"color": "#4a5568", "width": 1}
    figure.add_trace(Scatter(x=x, y=y, mode="lines", name="learned tangents", line=grey))
    for start, end in zip(at, to, strict=True):
        if not np.allclose(start, end, atol=0.05):
            _arrow(figure, start, end, COLOURS["serm"])
