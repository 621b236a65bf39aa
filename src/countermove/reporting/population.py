"""A population in parts on one page: what both rules did to it, and where the time went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from countermove.reporting._promise import claimed
from countermove.reporting.rendering import figure_data, render

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

RUNS = {"blind": "responses to the blind rule", "strategic": "responses to the published rule",
        "advice": "decisions and advice"}  # fmt: skip
STEPS = {"reading": "#9aa5b1", "working": "#00796b", "writing": "#b7791f"}
MEASURES = {
    "moved": "share who moved",
    "mean_cost": "what movers paid on average",
    "favoured": "share favoured once everybody has responded",
    "accuracy_nobody_moves": "accuracy if nobody moved",
    "accuracy_after_response": "accuracy after response",
}
DRAWN = 300
"""Parts that are drawn of each run; of more, the slowest."""


def population_page(report: Mapping[str, Any], dataset: str) -> str:
    """Return the page: both rules, the promise, and the time every part took."""
    return render(
        "population.html",
        dataset=dataset,
        people=f"{report['strategic']['rows']:,}",
        measures=[
            (words, *(f"{report[rule][measure]:.3f}" for rule in ("blind", "strategic")))
            for measure, words in MEASURES.items()
        ],
        claim=_claim(report["certificate"]),
        engine=report["execution"]["engine"],
        runs=[_totals(words, report[run]["run"]) for run, words in RUNS.items()],
        figure=figure_data(times_figure(report)),
    )


def times_figure(report: Mapping[str, Any]) -> Figure:
    """Draw the seconds every part was read, worked on and written, one panel per run."""
    from plotly.graph_objects import Bar
    from plotly.subplots import make_subplots

    figure = make_subplots(
        rows=len(RUNS), cols=1, subplot_titles=list(RUNS.values()), vertical_spacing=0.12
    )
    for row, run in enumerate(RUNS, start=1):
        times = _slowest(report[run]["run"]["times"])
        for step, colour in STEPS.items():
            bars = Bar(
                x=[f"part {one['part']}" for one in times],
                y=[one[step] for one in times],
                customdata=[[one["rows"], one["worker"]] for one in times],
                hovertemplate="%{x}: %{y:.3f} s, %{customdata[0]:,} rows, %{customdata[1]}",
                name=step,
                legendgroup=step,
                showlegend=row == 1,
                marker={"color": colour},
            )
            figure.add_trace(bars, row=row, col=1)
        figure.update_yaxes(title="seconds", row=row, col=1)
    return figure.update_layout(barmode="stack", template="plotly_white", height=750)


def _claim(claim: Mapping[str, Any]) -> dict[str, Any]:
    facts = {"what": claimed(claim), "rows": f"{claim['n']:,}", "value": None}
    if claim["value"] is None:
        return facts | {"reason": claim["reason"]}
    return facts | {
        "side": "most" if claim["direction"] == "upper" else "least",
        "value": f"{claim['value']:.3f}",
        "level": f"{claim['level']:.0%}",
    }


def _totals(words: str, run: Mapping[str, Any]) -> tuple[str, ...]:
    times = run["times"]
    longest = max((_spent(one) for one in times), default=0.0)
    counts = (run["rows"], run["parts"], run["kept"])
    workers = len({one["worker"] for one in times})
    return (words, *(f"{n:,}" for n in counts), f"{run['seconds']:.1f}", f"{workers}",
            f"{longest:.2f}")  # fmt: skip


def _slowest(times: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the parts to draw, in their order."""
    return sorted(sorted(times, key=_spent)[-DRAWN:], key=lambda one: int(one["part"]))


def _spent(one: Mapping[str, Any]) -> float:
    return float(sum(one[step] for step in STEPS))
