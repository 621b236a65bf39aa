"""Accuracy against social good, as tables and a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from countermove.params import ExecutionParameters, TradeoffParameters

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from countermove.experiments.tables import Tables
else:  # Kedro resolves annotations at start-up, and these are slow to import.
    Figure = Tables = Any


def trade(
    tables: Tables, tradeoff: TradeoffParameters, execution: ExecutionParameters, seed: int
) -> pd.DataFrame:
    """Train and measure every strength of every curve."""
    from countermove.experiments.serm.tradeoff import run_tradeoff

    with execution.build().open() as mapper:
        return run_tradeoff(tradeoff.build(), tables, seed, mapper)


def choose(points: pd.DataFrame, tradeoff: TradeoffParameters) -> pd.DataFrame:
    """Set the chosen point of every curve beside its unregularised one."""
    from countermove.experiments.serm.tradeoff import tradeoff_choices

    return tradeoff_choices(points, tradeoff.regulariser.kind, tradeoff.tolerance)


def draw(points: pd.DataFrame, tradeoff: TradeoffParameters) -> Figure:
    """Draw accuracy against the measure, the Pareto front marked."""
    from countermove.experiments.serm.tradeoff_page import tradeoff_figure

    return tradeoff_figure(points, tradeoff.regulariser.kind, tradeoff.name, tradeoff.tolerance)


def write_page(
    points: pd.DataFrame, choices: pd.DataFrame, tradeoff: TradeoffParameters, figure: Figure
) -> str:
    """Write figure and choices as a page that needs nothing but itself."""
    from countermove.experiments.serm.tradeoff_page import tradeoff_page

    return tradeoff_page(points, choices, figure, tradeoff.regulariser.kind, tradeoff.tolerance)
