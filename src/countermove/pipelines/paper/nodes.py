"""An experiment of a paper: cells and what stands beside them, means, a figure, a page."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pandas as pd

from countermove.params import ExecutionParameters, PaperParameters

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from countermove.data.texts import Texts
    from countermove.experiments.recourse.texts import Stores
    from countermove.experiments.tables import Tables
else:  # Kedro resolves annotations at start-up, and these are slow to import.
    Figure = Stores = Tables = Texts = Any


def measure(
    tables: Tables,
    texts: Callable[..., Texts],
    vectors: Stores,
    paper: PaperParameters,
    execution: ExecutionParameters,
    seed: int,
) -> tuple[pd.DataFrame, Any]:
    """Run the experiment; return its cells, and what it found beside them."""
    from countermove.experiments import Sources

    with execution.build().open() as mapper:
        found = paper.build().measure(Sources(tables, texts, vectors), seed, mapper)
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
