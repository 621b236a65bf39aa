"""The fit picture: what people did, and what the chosen model says they do."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from countermove.reporting.rendering import figure_data, plotly_text, render

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

SEEN, MODEL, PALE = "#2b6cb0", "#c53030", "#9aa5b1"


def people_figure(facts: Mapping[str, Any]) -> Figure:
    """Draw an estimate as `PeopleEstimate.to_json` gives it, verdict above."""
    draw = _matched if facts["picture"]["kind"] == "matched" else _samples
    figure = draw(facts["picture"])
    lines = [part for text in facts["verdict"].splitlines() for part in wrap(text, 130)]
    return figure.update_layout(
        title={"text": plotly_text(lines), "font": {"size": 13}}
        | {"x": 0.02, "xanchor": "left", "yanchor": "top", "y": 0.98},
        template="plotly_white",
        margin={"t": 70 + 19 * len(lines)},
        legend={"orientation": "h", "y": -0.18},
    )


def people_page(facts: Mapping[str, Any], figure: Figure) -> str:
    """Return the page of an estimate: its verdict in words, and the figure of the fit."""
    content = figure_data(figure)
    # The verdict stands above the figure already.
    content["layout"] |= {"title": {"text": ""}, "margin": {"t": 40}}
    return render("people_estimate.html", verdict=facts["verdict"].splitlines(), figure=content)


def _matched(picture: Mapping[str, Any]) -> Figure:
    """Draw every person's advance against their gap, and the mean by strip of gap."""
    from plotly.graph_objects import Scatter
    from plotly.subplots import make_subplots

    people, strips = picture["points"], picture["strips"]
    titles = ("each person", "mean, by gap (two standard errors)")
    figure = make_subplots(rows=1, cols=2, subplot_titles=titles)
    dots = {"color": SEEN, "size": 4, "opacity": 0.45}
    figure.add_trace(
        Scatter(x=people["gap"], y=people["advance"], mode="markers", marker=dots, name="seen"),
        row=1, col=1,
    )  # fmt: skip
    figure.add_trace(
        Scatter(x=people["gap"], y=people["model"], name="model, who moves", line={"color": MODEL}),
        row=1, col=1,
    )  # fmt: skip
    errors = {"type": "data", "array": [2 * value for value in strips["error"]]}
    figure.add_trace(
        Scatter(x=strips["gap"], y=strips["seen"], mode="markers", error_y=errors,
                marker={"color": SEEN}, name="seen, mean"),
        row=1, col=2,
    )  # fmt: skip
    figure.add_trace(
        Scatter(x=strips["gap"], y=strips["model"], name="model, mean", line={"color": MODEL}),
        row=1, col=2,
    )  # fmt: skip
    for column in (1, 2):
        figure.add_vline(x=0.0, line={"color": PALE, "dash": "dot"}, row=1, col=column)
        figure.update_xaxes(title="gap to approval before, in distance", row=1, col=column)
    return figure.update_yaxes(title="advance towards approval", row=1, col=1)


def _samples(picture: Mapping[str, Any]) -> Figure:
    """Draw the densities of levels before, after and by the model."""
    from plotly.graph_objects import Figure, Scatter

    ends = picture["edges"]
    middles = [0.5 * (low + high) for low, high in pairwise(ends)]
    widths = [max(high - low, 1e-12) for low, high in pairwise(ends)]
    figure = Figure()
    for name, colour, shares in (
        ("before", PALE, picture["before"]),
        ("after", SEEN, picture["after"]),
        ("after, by the model", MODEL, picture["model"]),
    ):
        heights = [share / width for share, width in zip(shares, widths, strict=True)]
        line = {"color": colour, "shape": "hvh"}
        figure.add_trace(Scatter(x=middles, y=heights, name=name, line=line))
    tallest = sorted(share / width for share, width in zip(picture["before"], widths, strict=True))
    figure.add_vline(x=0.0, line={"color": PALE, "dash": "dot"})
    figure.update_yaxes(title="people per unit of distance", range=[0, 2.0 * tallest[-1]])
    return figure.update_xaxes(title="distance beyond the boundary of approval")
