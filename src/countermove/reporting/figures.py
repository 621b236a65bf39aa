"""The figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from countermove.reporting.tables import accuracy_rows

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

BLIND, STRATEGIC = "#9aa5b1", "#00796b"


def accuracy_figure(metrics: Mapping[str, Any]) -> Figure:
    """Draw accuracy of the blind and the strategic rule under each kind of people."""
    from plotly.graph_objects import Bar, Figure, Layout

    rows = accuracy_rows(metrics)
    people = [name for name, *_ in rows]
    bars = [
        Bar(
            name=name,
            x=people,
            y=heights,
            marker_color=colour,
            text=heights,
            texttemplate="%{y:.3f}",
        )
        for name, colour, heights in (
            ("blind", BLIND, [blind for _, blind, _ in rows]),
            ("strategic", STRATEGIC, [strategic for *_, strategic in rows]),
        )
    ]
    layout = Layout(
        barmode="group",
        template="plotly_white",
        title=f"Accuracy on the test rows of {metrics['dataset']}",
        yaxis={"title": "share judged right", "range": [0, 1]},
        xaxis={"title": "how people answer the rule"},
    )
    return Figure(bars, layout)
