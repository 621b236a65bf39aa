"""Trade-off curves: datasets × splits × populations, one curve of strengths each.

A curve is one `trade_off` of the learning room; a figure of a paper is one set of curves.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from countermove.experiments._drawing import GREY, OCHRE, PUBLISHED, RIGHT
from countermove.experiments.protocol import (
    Experiment,
    Measured,
    PageTable,
    Row,
    Sources,
    page_table,
    records,
)
from countermove.experiments.tables import Sampling, Table, make_split, some_present
from countermove.learning.regularisers import SocialRegulariser
from countermove.learning.tradeoff import choice_of, mark, trade_off
from countermove.people import Cost
from countermove.reporting.words import called

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

logger = logging.getLogger(__name__)

AXES = ["dataset", "split", "response", "training"]
MEASURES = {
    "utility": ("utility", "mean payoff: decision (±1) minus cost"),
    "burden": ("burden", "mean least cost of approval, deserving people"),
    "recourse": ("recourse_all", "share approved at once or after their move"),
}
"""The hard measure of each kind and what its axis says."""
PARTS = {"validation": (GREY, "circle"), "test": (RIGHT, "diamond")}
FRONT, CHOSEN = OCHRE, PUBLISHED
ABREAST = 3
"""Panels a page has room for side by side; more of them stand in pairs."""


@dataclass(frozen=True)
class TradeOffCurve:
    """One population and how rules are trained for it, as `StrategicClassifier` takes them."""

    response: str
    strengths: Sequence[float]  # of the regulariser; 0 is added
    settings: Mapping[str, Any] = field(default_factory=dict)
    epochs: int | None = None  # of strengths above 0; None: as many as the rule without may take
    training: str = "usual"  # what distinguishes curves of the same population, in words


@dataclass(frozen=True, kw_only=True)
class TradeOff(Sampling, Experiment[Sources]):
    """Datasets × splits × populations; the strength of the regulariser varies along a curve."""

    what: ClassVar[str] = "curves"

    regulariser: SocialRegulariser
    curves: Sequence[TradeOffCurve]
    splits: int
    cost: Cost
    tolerance: float = 0.01  # accuracy the chosen point may give up, on validation rows

    def given(self, source: Sources, seed: int) -> dict[str, Table]:
        """Return the tables that are there."""
        return some_present(self.datasets, source.tables, self.skip_missing)

    def places(self, given: dict[str, Table]) -> list[tuple[str, int, int]]:
        """Return tables, splits and curves."""
        return list(product(given, range(self.splits), range(len(self.curves))))

    def rows_at(self, place: tuple[str, int, int], seed: int, given: dict[str, Table]) -> list[Row]:
        """Return one curve of one split of one table: a row per strength."""
        name, number, which = place
        curve, started = self.curves[which], time.perf_counter()
        split = make_split(self, given[name], seed + number)
        settings = {"random_state": seed + number, **curve.settings, "epochs": curve.epochs}
        if name in self.batch_sizes:
            settings["batch_size"] = self.batch_sizes[name]
        points = trade_off(
            split, self.regulariser, curve.strengths, curve.response, self.cost, **settings
        )
        logger.info(
            "%s, split %d, %s: %d strengths in %.1f s",
            name, number, curve.response, len(points), time.perf_counter() - started,
        )  # fmt: skip
        where = dict(zip(AXES, (name, number, curve.response, curve.training), strict=True))
        marked = mark(points, self.regulariser.kind, self.tolerance)
        return records(marked, **where)

    def means(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return the chosen point of every curve beside its unregularised one."""
        kind = self.regulariser.kind
        rows = [
            dict(zip(AXES, key, strict=True)) | choice_of(curve, kind)
            for key, curve in cells.groupby(AXES, sort=False)
        ]
        # For split "all" the one strength chosen by the means over splits: a point of accuracy is
        # little more than the noise of one split's validation rows.
        whole = [axis for axis in AXES if axis != "split"]
        for key, curves in cells.groupby(whole, sort=False):
            averaged = curves.groupby("strength").mean(numeric_only=True).reset_index()
            joint = choice_of(mark(averaged, kind, self.tolerance), kind)
            rows.append(dict(zip(whole, key, strict=True)) | {"split": "all"} | joint)
        return pd.DataFrame(rows)

    def titled(self, title: str) -> str:
        """Return the title of the figure."""
        return f"Accuracy against {self.regulariser.kind} ({title})"

    def draw(self, found: Measured, means: pd.DataFrame) -> Figure:
        """Draw every strength as a point, a panel per population; buttons pick hard or smoothed."""
        from plotly.subplots import make_subplots

        panels = list(found.cells.groupby(["dataset", "response", "training"], sort=False))
        several = len(set(found.cells["dataset"])) > 1
        names = [
            (f"{name}: " if several else "") + _people(str(response), str(training))
            for (name, response, training), _ in panels
        ]
        columns = len(panels) if len(panels) <= ABREAST else 2
        lines = -(-len(panels) // columns)
        figure = make_subplots(
            rows=lines, cols=columns, subplot_titles=names, vertical_spacing=0.15
        )
        kind = self.regulariser.kind
        hard, words = MEASURES[kind]
        for number, (_, own) in enumerate(panels):
            # Points are means over splits; front and choice are those of the means, by validation
            # rows (the rows "all" of the choices).
            averaged = own.groupby("strength").mean(numeric_only=True).reset_index()
            own = mark(averaged, kind, self.tolerance)
            for traces, shown in ((_traces(own, hard), True), (_traces(own, "smoothed"), False)):
                for trace in traces:
                    trace.visible, trace.showlegend = shown, number == 0
                    figure.add_trace(trace, row=number // columns + 1, col=number % columns + 1)
        figure.update_xaxes(title="accuracy after response", tickformat=".3~f")
        figure.update_yaxes(title=words, col=1)
        return figure.update_layout(
            height=120 + 400 * lines,
            legend={"orientation": "h", "y": -0.2 / lines},
            updatemenus=[_buttons(len(figure.data), len(panels), columns, words)],
        )

    def shown(self, found: Measured, means: pd.DataFrame) -> Row:
        """Show what the chosen strength of every curve bought."""
        kind = self.regulariser.kind
        _, words = MEASURES[kind]
        joint = means["split"] == "all"
        cut_off = int(found.cells[["validation_cut_off", "test_cut_off"]].to_numpy().max())
        return {
            "tables": [
                _choices_table("One strength for all splits, by their means", means[joint], kind),
                _choices_table("Split by split", means[~joint], kind),
            ],
            "title": f"Accuracy against {kind}",
            "lead": "Every point is one rule, trained with another strength of the regulariser. "
            f"The strength chosen has the best hard measure ({words}) among those that give up at "
            f"most {self.tolerance:g} of accuracy, both judged on validation rows; the table "
            "reports test rows, without and with regularisation.",
            "note": "Deserving people whom no allowed move brings to approval are left out of the "
            f"burden: at most {cut_off} in any part. Smoothed measures can move by rescaling the "
            "score alone; judge by the hard ones.",
        }


def _choices_table(title: str, choices: pd.DataFrame, kind: str) -> PageTable:
    hard, _ = MEASURES[kind]
    head = (
        *("people", "split", "strength", "accuracy, plain", "accuracy, chosen"),
        *(f"{kind}, plain", f"{kind}, chosen", "change"),
    )
    rows = [
        (
            f"{row['dataset']}: {_people(row['response'], row['training'])}",
            str(row["split"]),
            f"{row['strength']:.4g}",
            f"{row['test_accuracy_plain']:.3f}",
            f"{row['test_accuracy']:.3f}",
            *(
                f"{row[name]:.3f}".replace("-", "−")
                for name in (f"test_{hard}_plain", f"test_{hard}")
            ),
            f"{row['change']:+.3f} ({row['relative_change']:+.0%})".replace("-", "−"),
        )
        for _, row in choices.iterrows()
    ]
    return page_table(title, head, rows)


def _people(response: str, training: str) -> str:
    """Return a curve's people in words, and its training where that is not the usual one."""
    return called(response) + ("" if training == "usual" else f", {training}")


def _traces(own: pd.DataFrame, measure: str) -> list[Any]:
    # The points of both parts, the front and the choice.
    from plotly.graph_objects import Scatter

    hover = "strength %{customdata:.4g}<br>accuracy %{x:.3f}<br>measure %{y:.3f}"
    traces = [
        Scatter(
            x=own[f"{part}_accuracy"].tolist(),
            y=own[f"{part}_{measure}"].tolist(),
            customdata=own["strength"].tolist(),
            mode="markers",
            name=part,
            legendgroup=part,
            marker={"color": colour, "symbol": symbol, "size": 8},
            hovertemplate=hover,
        )
        for part, (colour, symbol) in PARTS.items()
    ]
    best = own[own["front"]].sort_values("validation_accuracy")
    line = Scatter(
        x=best["validation_accuracy"].tolist(),
        y=best[f"validation_{measure}"].tolist(),
        mode="lines",
        name="Pareto front (hard measure, validation)",
        legendgroup="front",
        line={"color": FRONT, "dash": "dot"},
        hoverinfo="skip",
    )
    chosen = own[own["chosen"]].iloc[0]
    star = Scatter(
        x=[float(chosen["test_accuracy"])],
        y=[float(chosen[f"test_{measure}"])],
        customdata=[float(chosen["strength"])],
        mode="markers",
        name="chosen on validation, test rows",
        legendgroup="chosen",
        marker={"color": CHOSEN, "symbol": "star", "size": 15},
        hovertemplate=hover,
    )
    return [line, *traces, star]


def _buttons(n_traces: int, n_panels: int, columns: int, words: str) -> dict[str, Any]:
    """Return the switch between hard and smoothed measures; the left axes say which."""
    half = n_traces // n_panels // 2
    hard = ([True] * half + [False] * half) * n_panels
    left = [f"yaxis{number or ''}.title.text" for number in (0, *range(3, n_panels + 1, 2))]
    left = left if columns == 2 else left[:1]
    axis = dict.fromkeys(left, words)
    smooth = dict.fromkeys(left, "smoothed measure (training steers by it)")
    return {
        "type": "buttons",
        "direction": "right",
        "x": 1.0,
        "y": 1.0,
        "pad": {"b": 30},
        "yanchor": "bottom",
        "xanchor": "right",
        "buttons": [
            {"label": "hard", "method": "update", "args": [{"visible": hard}, axis]},
            {
                "label": "smoothed",
                "method": "update",
                "args": [{"visible": [not shown for shown in hard]}, smooth],
            },
        ],
    }
