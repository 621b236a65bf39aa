"""A grid of experiments, as a table and a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from countermove.params import SweepParameters

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from countermove.production.sweep import Tables
else:  # Kedro resolves annotations at start-up, and these are slow to import.
    Figure = Tables = Any


def run(tables: Tables, sweep: SweepParameters, seed: int) -> pd.DataFrame:
    """Train and judge every cell."""
    from countermove.production.sweep import run_sweep

    return run_sweep(sweep.build(), tables, seed)


def draw(cells: pd.DataFrame, sweep: SweepParameters) -> Figure:
    """Draw mean accuracies against the cost."""
    from countermove.reporting.figures import sweep_figure

    return sweep_figure(cells, sweep.axis, sweep.name)


def write_page(figure: Figure) -> str:
    """Write the figure as a page that needs nothing but itself."""
    from countermove.reporting.page import figure_page

    return figure_page(figure)
