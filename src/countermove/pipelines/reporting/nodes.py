"""One figure, one page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plotly.graph_objects import Figure
else:  # Kedro resolves annotations at start-up, and plotly is slow to import.
    Figure = Any


def draw_accuracy(metrics: dict[str, Any]) -> Figure:
    """Draw accuracy under each kind of people."""
    from countermove.reporting.figures import accuracy_figure

    return accuracy_figure(metrics)


def write_page(metrics: dict[str, Any], certificates: list[dict[str, Any]], figure: Figure) -> str:
    """Write the report page."""
    from countermove.reporting.page import report_page

    return report_page(metrics, certificates, figure)
