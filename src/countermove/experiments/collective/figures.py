"""Recourse alone and together, drawn: losses over budgets, moving centroids, answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from countermove.experiments._drawing import DARK
from countermove.experiments.protocol import PageTable, page_table
from countermove.reporting.words import number

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure


CLASSES = (
    "#2b6cb0",
    "#dd9c3c",
    "#00796b",
    "#805ad5",
    "#c53030",
    "#718096",
    "#b83280",
    "#4c51bf",
    "#975a16",
    "#2f855a",
)
GRID = 90
"""Points along an edge of the regions' picture."""


def centroids_figure(picture: pd.DataFrame, facts: Mapping[str, Any]) -> Figure:
    """Draw everybody at the first budget, with a slider over the others (Figure 1, animated)."""
    from plotly.graph_objects import Figure, Frame

    budgets = list(dict.fromkeys(picture["budget"]))
    parts = {budget: picture[picture["budget"] == budget] for budget in budgets}
    classes = [str(name) for name in facts["classes"]]
    colours = {name: CLASSES[i % len(CLASSES)] for i, name in enumerate(classes)}
    regions = facts["features"] == 2 and facts["learner"]["kind"] == "centroid"
    frames = [
        Frame(data=_traces(parts[budget], picture, colours, regions), name=f"{budget:.3g}")
        for budget in budgets
    ]
    figure = Figure(data=frames[0].data, frames=frames)
    step = {"mode": "immediate", "frame": {"duration": 300, "redraw": True}}
    slider = {
        "currentvalue": {"prefix": "budget of each person: "},
        "steps": [
            {"label": frame.name, "method": "animate", "args": [[frame.name], step]}
            for frame in frames
        ],
    }
    buttons = {"type": "buttons", "x": 1.02, "y": 0.1, "xanchor": "left"}
    play = {"label": "play", "method": "animate", "args": [None, {**step, "fromcurrent": True}]}
    return figure.update_layout(
        title=f"{facts['experiment']}: class means that move for the query",
        template="plotly_white",
        sliders=[slider],
        updatemenus=[{**buttons, "buttons": [play]}],
        height=650,
        yaxis={"scaleanchor": "x"},
    )


def _traces(
    now: pd.DataFrame, everything: pd.DataFrame, colours: Mapping[str, str], regions: bool
) -> list[Any]:
    from plotly.graph_objects import Scatter

    means = now[now["who"] == "centroid"]
    traces = [_regions(means, everything, colours)] if regions else []
    for name, colour in colours.items():
        for who, symbol, size in (("subject", "circle", 6), ("centroid", "diamond", 15)):
            part = now[(now["who"] == who) & (now["class"].astype(str) == name)]
            traces.append(
                Scatter(
                    x=part["x"].tolist(),
                    y=part["y"].tolist(),
                    mode="markers",
                    name=name,
                    legendgroup=name,
                    showlegend=who == "centroid",
                    marker={
                        "color": colour,
                        "symbol": symbol,
                        "size": size,
                        "opacity": 0.55 if who == "subject" else 1.0,
                        "line": {"color": "white", "width": 1},
                    },
                )
            )
    for who, label, symbol in (
        ("query", "the query, helped by others", "star"),
        ("alone", "the query, moving alone (regions as at 0)", "star-open"),
    ):
        part = now[now["who"] == who]
        traces.append(
            Scatter(
                x=part["x"].tolist(),
                y=part["y"].tolist(),
                mode="markers",
                name=label,
                marker={"color": DARK, "symbol": symbol, "size": 17},
            )
        )
    return traces


def _regions(means: pd.DataFrame, everything: pd.DataFrame, colours: Mapping[str, str]) -> Any:
    """Colour the plane by the nearest centroid."""
    from plotly.graph_objects import Heatmap

    ends = [
        np.linspace(everything[axis].min() - 0.3, everything[axis].max() + 0.3, GRID)
        for axis in ("x", "y")
    ]
    across, up = np.meshgrid(*ends)
    at = means[["x", "y"]].to_numpy(np.float64)
    away = np.hypot(across[..., None] - at[:, 0], up[..., None] - at[:, 1])
    order = list(colours)
    named = np.array([order.index(str(name)) for name in means["class"]])
    last = max(len(order) - 1, 1)
    scale = [[i / last, colour] for i, colour in enumerate(colours.values())]
    return Heatmap(
        x=ends[0].tolist(),
        y=ends[1].tolist(),
        z=named[away.argmin(axis=2)].tolist(),
        zmin=0,
        zmax=last,
        colorscale=scale,
        opacity=0.18,
        showscale=False,
        hoverinfo="skip",
    )


def answer_tables(facts: Mapping[str, Any]) -> list[PageTable]:
    """Return the answers as tables."""
    return [
        page_table(
            f"Answers at budget {facts['budget_of_answers']:.3g}",
            ("question", "answer"),
            answer_rows(facts),
        ),
        page_table(
            "How many take part",
            ("people who take part", "loss", "drawn at random: mean", "lowest", "highest"),
            [
                (f"{row['participation']:.0%}", *(f"{row[key]:.4f}" for key in _SHARES))
                for row in facts["participation"]
            ],
        ),
        page_table(
            "Who should help",
            ("class", "worth of one person's help (loss)"),
            [(name, f"{value:.2e}") for name, value in facts["who_should_help"].items()],
        ),
        page_table(
            "Other ways",
            ("another way", "loss", "goal reached"),
            [(w["who"], f"{w['loss']:.4f}", number(w["reached"])) for w in facts["alternatives"]],
        ),
        page_table(
            "At whose expense",
            ("class", "people", "accuracy before", "after", "decisions changed"),
            [
                (
                    name,
                    f"{group['people']:.0f}",
                    f"{group['accuracy_before']:.3f}",
                    f"{group['accuracy']:.3f}",
                    f"{group['changed']:.1%}",
                )
                for name, group in facts["side_effects"]["by_group"].items()
            ],
        ),
    ]


_SHARES = ("loss", "drawn_mean", "drawn_lowest", "drawn_highest")


def answer_rows(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the answers in words."""
    least, effects, blind = facts["least_budget"], facts["side_effects"], facts["without_sight"]
    even = facts["break_even_participation"]
    return [
        ("loss of the goal, alone", f"{facts['individual_loss']:.4f}"),
        ("loss of the goal, together", f"{facts['collective_loss']:.4f}"),
        (
            "least budget that reaches the goal, alone",
            number(least["individual"], ".4g", "none found"),
        ),
        (
            "least budget that reaches the goal, together",
            number(least["collective"], ".4g", "none found"),
        ),
        (
            "participation from which together is at least as good as alone",
            "never" if even is None else f"{even:.1%}",
        ),
        ("training accuracy before", f"{effects['accuracy_before']:.3f}"),
        ("training accuracy after, people as they were", f"{effects['accuracy']:.3f}"),
        ("decisions changed among the others", f"{effects['changed']:.1%}"),
        (
            f"loss without seeing the learner, after {blind['retrainings']} retrainings",
            f"{blind['loss']:.4f} (regret {blind['regret']:.4f})",
        ),
        (
            "the same, each class moving to or from the query only",
            f"{blind['loss_along_query']:.4f} (regret {blind['regret_along_query']:.4f})",
        ),
        ("the platform's audit raises an alarm", number(facts["audit"]["alarm"])),
    ]
