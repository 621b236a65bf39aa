"""How long training takes, as a table and a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from countermove.params import RunTimesParameters

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from countermove.experiments.tables import Tables
else:  # Kedro resolves annotations at start-up, and these are slow to import.
    Figure = Tables = Any


def measure(tables: Tables, run_times: RunTimesParameters, seed: int) -> pd.DataFrame:
    """Train once by every way of finding people's answers."""
    from countermove.experiments.serm.run_times import measure_run_times

    return measure_run_times(run_times.build(), tables, seed)


def draw(cells: pd.DataFrame, run_times: RunTimesParameters) -> Figure:
    """Draw seconds against batch size, and per table."""
    from countermove.experiments.serm.run_times import run_times_figure

    return run_times_figure(cells, run_times.name)
