"""Two figures, one page."""

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


def draw_transfer(report: dict[str, Any]) -> Figure:
    """Draw the error before and after deployment."""
    from countermove.reporting.transfer import transfer_figure

    return transfer_figure(report)


def write_page(
    metrics: dict[str, Any],
    certificates: list[dict[str, Any]],
    figure: Figure,
    transfer: dict[str, Any],
    intervals: Figure,
) -> str:
    """Write the report page."""
    from countermove.reporting.page import report_page
    from countermove.reporting.transfer_page import transfer_section

    return report_page(metrics, certificates, figure, [transfer_section(transfer, intervals)])
