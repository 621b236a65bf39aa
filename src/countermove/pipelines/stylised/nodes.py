"""Costs chosen, costs unknown, moves on a surface: a table and a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from countermove.params import ExecutionParameters, StylisedParameters

if TYPE_CHECKING:
    from plotly.graph_objects import Figure
else:  # Kedro resolves annotations at start-up, and plotly is slow to import.
    Figure = Any


def run(
    stylised: StylisedParameters, execution: ExecutionParameters, seed: int
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Train every rule on every made-up table."""
    from countermove.experiments.serm.stylised import run_stylised

    with execution.build().open() as mapper:
        return run_stylised(stylised.build(), seed, mapper)


def draw(picture: dict[str, Any], stylised: StylisedParameters) -> Figure:
    """Draw the first table."""
    from countermove.experiments.serm.stylised_figure import stylised_figure

    return stylised_figure(picture, stylised.name)
