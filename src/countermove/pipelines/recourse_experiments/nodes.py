"""An experiment of the recourse paper: cells, their means, examples of advice, a figure, a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from countermove.params import ExecutionParameters, RecourseExperimentsParameters

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from countermove.experiments.tables import Tables
else:  # Kedro resolves annotations at start-up, and these are slow to import.
    Figure = Tables = Any


def train_and_measure(
    tables: Tables,
    recourse_experiments: RecourseExperimentsParameters,
    execution: ExecutionParameters,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Train every model and measure it under every rule; return cells and examples."""
    from countermove.experiments.recourse.grid import run_recourse_experiment

    with execution.build().open() as mapper:
        outcome = run_recourse_experiment(recourse_experiments.build(), tables, mapper)
    return outcome.cells, outcome.examples


def average(cells: pd.DataFrame) -> pd.DataFrame:
    """Average over splits."""
    from countermove.experiments.recourse.grid import over_splits

    return over_splits(cells)


def draw(cells: pd.DataFrame, recourse_experiments: RecourseExperimentsParameters) -> Figure:
    """Draw performance and recourse against what varies."""
    from countermove.experiments.recourse.figures import recourse_figure

    return recourse_figure(cells, recourse_experiments.axis, recourse_experiments.name)


def write_page(figure: Figure, means: pd.DataFrame, examples: pd.DataFrame) -> str:
    """Write figure, means and examples as a page that needs nothing but itself."""
    from countermove.experiments.recourse.figures import recourse_page

    return recourse_page(figure, means, examples)
