"""An experiment of the transferability paper, as cells, what they sum up to, and a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from countermove.params import ExecutionParameters, TransferExperimentsParameters

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from countermove.experiments.tables import Tables
else:  # Kedro resolves annotations at start-up, and these are slow to import.
    Figure = Tables = Any


def measure(
    tables: Tables,
    transfer_experiments: TransferExperimentsParameters,
    execution: ExecutionParameters,
    seed: int,
) -> pd.DataFrame:
    """Run the experiment."""
    with execution.build().open() as mapper:
        return transfer_experiments.build().cells(tables, seed, mapper)


def sum_up(
    cells: pd.DataFrame, transfer_experiments: TransferExperimentsParameters
) -> pd.DataFrame:
    """Sum the cells up."""
    return transfer_experiments.build().means(cells)


def draw(
    cells: pd.DataFrame, means: pd.DataFrame, transfer_experiments: TransferExperimentsParameters
) -> Figure:
    """Draw the experiment."""
    from countermove.experiments.transfer.figures import transfer_figure

    said = transfer_experiments
    return transfer_figure(said.experiment.kind, cells, means, said.name)


def write_page(figure: Figure, means: pd.DataFrame) -> str:
    """Write the figure and the table as a page that needs nothing but itself."""
    from countermove.experiments.transfer.figures import experiment_page

    return experiment_page(figure, means)
