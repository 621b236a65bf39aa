"""An experiment of the recourse paper, as a table of cells, their means and a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from countermove.params import RecourseExperimentsParameters

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from countermove.production.sweep import Tables
else:  # Kedro resolves annotations at start-up, and these are slow to import.
    Figure = Tables = Any


def train_and_measure(
    tables: Tables, recourse_experiments: RecourseExperimentsParameters
) -> pd.DataFrame:
    """Train every model and measure it under every rule."""
    from countermove.production.recourse_experiments import run_recourse_experiment

    return run_recourse_experiment(recourse_experiments.build(), tables)


def average(cells: pd.DataFrame) -> pd.DataFrame:
    """Average over splits."""
    from countermove.production.recourse_experiments import over_splits

    return over_splits(cells)


def draw(means: pd.DataFrame, recourse_experiments: RecourseExperimentsParameters) -> Figure:
    """Draw performance and recourse against what varies."""
    from countermove.reporting.recourse_experiments import recourse_figure

    return recourse_figure(means, recourse_experiments.axis, recourse_experiments.name)
