"""Sweep: every rule on a grid of datasets, splits, costs and strengths (SERM, Figure 1)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from kedro.pipeline import Node, Pipeline

from countermove.params import ExecutionParameters, SweepParameters

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from countermove.experiments.tables import Tables
else:  # Kedro resolves annotations at start-up, and these are slow to import.
    Figure = Tables = Any


def run(
    tables: Tables, store: Path, sweep: SweepParameters, execution: ExecutionParameters, seed: int
) -> pd.DataFrame:
    """Train and judge every cell that is not finished yet."""
    from countermove.experiments import Sources
    from countermove.experiments.cell_store import CellStore

    with execution.build().open() as mapper:
        return sweep.build().cells(Sources(tables, store=CellStore(store)), seed, mapper)


def draw(cells: pd.DataFrame, sweep: SweepParameters) -> Figure:
    """Draw mean accuracies against the cost."""
    from countermove.experiments import Measured

    return sweep.build().figure(Measured(cells), cells, sweep.name)


def write_page(cells: pd.DataFrame, figure: Figure, sweep: SweepParameters) -> str:
    """Write the figure as a page that needs nothing but itself."""
    from countermove.experiments import Measured

    return sweep.build().page(Measured(cells), cells, figure)


def create_pipeline(**_: object) -> Pipeline:
    """Return the sweep pipeline."""
    return Pipeline(
        [
            Node(
                run,
                ["tables", "sweep_store", "params:sweep", "params:execution", "params:seed"],
                "sweep_cells",
                name="run",
            ),
            Node(draw, ["sweep_cells", "params:sweep"], "sweep_figure", name="draw"),
            Node(
                write_page,
                ["sweep_cells", "sweep_figure", "params:sweep"],
                "sweep_page",
                name="write_sweep_page",
            ),
        ],
        namespace="sweep",
        prefix_datasets_with_namespace=False,
    )
