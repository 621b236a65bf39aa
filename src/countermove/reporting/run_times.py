"""How long training takes, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

WAYS = {
    "blind": ("blind", "#9aa5b1"),
    "exact": ("strategic, fixed point solved", "#00796b"),
    "row": ("procedure, each person until still", "#b7791f"),
    "batch": ("procedure, until the average is still", "#805ad5"),
    "increasing": ("procedure, one more step per epoch", "#c53030"),
}
"""How the ways of finding answers are called and drawn."""


def run_times_figure(cells: pd.DataFrame, title: str) -> Figure:
    """Draw seconds against the batch size on fabricated rows, and per real table."""
    from plotly.graph_objects import Bar, Scatter
    from plotly.subplots import make_subplots

    fabricated = cells["dataset"] == "synthetic"
    figure = make_subplots(
        rows=1,
        cols=3,
        subplot_titles=("synthetic: seconds", "synthetic: share of the answers", "tables: seconds"),
    )
    for way, (label, colour) in WAYS.items():
        of_way = cells["way"] == way
        line = cells[fabricated & of_way]
        look = {"name": label, "legendgroup": way, "marker": {"color": colour}}
        sizes = line["batch_size"].tolist()
        figure.add_trace(Scatter(x=sizes, y=line["seconds"].tolist(), **look), row=1, col=1)
        shares = Scatter(x=sizes, y=line["share"].tolist(), showlegend=False, **look)
        figure.add_trace(shares, row=1, col=2)
        bars = cells[~fabricated & of_way]
        seconds = Bar(
            x=bars["dataset"].tolist(), y=bars["seconds"].tolist(), showlegend=False, **look
        )
        figure.add_trace(seconds, row=1, col=3)
    for column in (1, 2):
        figure.update_xaxes(title="batch size", type="log", dtick=0.30103, row=1, col=column)
    figure.update_yaxes(type="log", row=1, col=1)
    figure.update_yaxes(range=[0, 1], tickformat=".0%", row=1, col=2)
    return figure.update_layout(
        title=title, template="plotly_white", legend={"orientation": "h", "y": -0.2}
    )
