"""Paper: a figure or table of a paper, from its configuration in conf/paper."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pandas as pd
from kedro.pipeline import Node, Pipeline

from countermove.params import ExecutionParameters, PaperParameters

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from countermove.data.texts import Texts
    from countermove.experiments.tables import Tables
else:  # Kedro resolves annotations at start-up, and these are slow to import.
    Figure = Tables = Texts = Any


def measure(
    tables: Tables,
    texts: Callable[..., Texts],
    paper: PaperParameters,
    execution: ExecutionParameters,
    seed: int,
) -> tuple[pd.DataFrame, Any]:
    """Run the experiment; return its cells, and what it found beside them."""
    from countermove.experiments import Sources

    with execution.build().open() as mapper:
        found = paper.build().measure(Sources(tables, texts), seed, mapper)
    return found.cells, {} if found.beside is None else found.beside


def average(cells: pd.DataFrame, paper: PaperParameters) -> pd.DataFrame:
    """Sum the cells up."""
    return paper.build().means(cells)


def draw(cells: pd.DataFrame, beside: Any, means: pd.DataFrame, paper: PaperParameters) -> Figure:
    """Draw the experiment."""
    from countermove.experiments import Measured

    return paper.build().figure(Measured(cells, beside), means, paper.title)


def write_page(
    cells: pd.DataFrame, beside: Any, means: pd.DataFrame, figure: Figure, paper: PaperParameters
) -> str:
    """Write figure and tables as a page that needs nothing but itself."""
    from countermove.experiments import Measured

    return paper.build().page(Measured(cells, beside), means, figure)


def create_pipeline(**_: object) -> Pipeline:
    """Return the paper pipeline."""
    settings = "params:paper"
    given = ["tables", "texts", settings, "params:execution", "params:seed"]
    cells, beside, means = "paper_cells", "paper_beside", "paper_means"
    found, figure = [cells, beside, means], "paper_figure"
    return Pipeline(
        [
            Node(measure, given, [cells, beside], name="measure_paper"),
            Node(average, [cells, settings], means, name="average_paper"),
            Node(draw, [*found, settings], figure, name="draw_paper"),
            Node(write_page, [*found, figure, settings], "paper_page", name="write_paper"),
        ],
        namespace="paper",
        prefix_datasets_with_namespace=False,
    )
