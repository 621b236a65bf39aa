"""The headline of a run: a short table where somebody watches, log lines elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from countermove.execution import watched
from countermove.reporting.words import accuracy_rows, promise_line, rule_names

if TYPE_CHECKING:
    from rich.console import Group

WIDEST = 100
"""Columns of a terminal beyond which a sentence is hard to follow."""


def headline(
    metrics: Mapping[str, Any], calibration: Mapping[str, Any], first: str, report: str
) -> Group:
    """Return the headline of a run, for a rich console.

    Parameters
    ----------
    metrics, calibration
        What the run left in ``metrics.json`` and ``recourse_calibration.json``.
    first
        The first sentence of the decision summary.
    report
        Where the page lies.

    Returns
    -------
    Group
        The sentence; accuracy (share of test rows) of both rules while nobody moves and after the
        response trained for, the better of each row bold; whether training pays; the promise;
        the page.
    """
    from rich.console import Group
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(f"accuracy, {metrics['dataset']}")
    for name in rule_names(metrics).values():
        table.add_column(name.removesuffix(" rule"), justify="right")
    for people, *accuracies in accuracy_rows(metrics)[:2]:
        best = max(accuracies)
        styles = ["bold green" if value == best else "" for value in accuracies]
        cells = [
            Text(f"{value:.3f}", style) for value, style in zip(accuracies, styles, strict=True)
        ]
        table.add_row(people, *cells)
    promise = Text(f"Promised: {promise_line(calibration)}.")
    page = Text.assemble("Report:   ", (report, "bold cyan"))
    choice = metrics.get("choice")
    pays = [] if choice is None else [Text(choice["sentence"])]
    return Group("", Text(first), "", Padding(table, (0, 0, 1, 0)), *pays, promise, page)


def show(
    metrics: Mapping[str, Any], calibration: Mapping[str, Any], first: str, report: str
) -> bool:
    """Write the headline where a person watches, and return whether one does."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    if not watched(console):
        return False
    console.print(
        headline(metrics, calibration, first, report),
        width=min(WIDEST, console.width),
        soft_wrap=False,
    )
    return True
