"""Two figures, a data sheet, one page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from countermove.data.schema import Schema

if TYPE_CHECKING:
    from plotly.graph_objects import Figure
else:  # Kedro resolves annotations at start-up, and plotly is slow to import.
    Figure = Any

Facts = dict[str, Any]


def draw_accuracy(metrics: dict[str, Any]) -> Figure:
    """Draw accuracy under each kind of people."""
    from countermove.reporting.accuracy import accuracy_figure

    return accuracy_figure(metrics)


def draw_transfer(report: dict[str, Any] | None) -> Figure:
    """Draw the error before and after deployment."""
    from countermove.reporting.transfer import transfer_figure

    return transfer_figure(report)


def describe_table(typed: pd.DataFrame, schema: Schema) -> dict[str, Any]:
    """Say who is in the table, what its columns hold and who may change what."""
    from countermove.data.report import table_sheet

    return table_sheet(typed, schema)


def write_page(
    metrics: Facts, certificates: list[Facts], calibration: Facts, frontier: pd.DataFrame,
    audit: Facts, advice: pd.DataFrame, transfer: Facts | None, move_map: Facts | None,
    history: Facts | None, sheet: Facts, tradeoff: pd.DataFrame | None,
    lookahead: Facts | None, collective: Facts | None, population: Facts | None,
) -> str:  # fmt: skip
    """Write the report of what the run left; a stage that left nothing is None."""
    from countermove.reporting.page import Findings, report_page

    found = Findings(
        metrics, certificates, calibration, frontier, audit, advice, transfer, move_map,
        history, sheet, tradeoff, lookahead, collective, population,
    )  # fmt: skip
    return report_page(found)
