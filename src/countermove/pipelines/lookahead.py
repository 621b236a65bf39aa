"""Look-ahead: people who foresee the next model, retrained on or acting as collectives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
from kedro.pipeline import Node, Pipeline

from countermove.params import LookaheadParameters

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from countermove.experiments.lookahead.people import LookaheadTable
    from countermove.experiments.tables import Tables
else:  # Kedro resolves annotations at start-up, and these are slow to import.
    Figure = LookaheadTable = Tables = Any


def prepare(tables: Tables, raw_tables: Tables, lookahead: LookaheadParameters) -> LookaheadTable:
    """Bring the table to the crowd an experiment reads."""
    from countermove.experiments.lookahead.people import lookahead_table

    return lookahead_table(tables, raw_tables, lookahead.dataset, lookahead.preparation)


def measure(people: LookaheadTable, lookahead: LookaheadParameters, seed: int) -> pd.DataFrame:
    """Run the experiment."""
    return lookahead.build().cells(people, seed)


def average(cells: pd.DataFrame, lookahead: LookaheadParameters) -> pd.DataFrame:
    """Sum the cells up."""
    return lookahead.build().means(cells)


def draw(cells: pd.DataFrame, means: pd.DataFrame, lookahead: LookaheadParameters) -> Figure:
    """Draw the experiment."""
    from countermove.experiments import Measured

    return lookahead.build().figure(Measured(cells), means, lookahead.name)


def write_page(
    cells: pd.DataFrame,
    means: pd.DataFrame,
    figure: Figure,
    future: dict[str, Any] | None,
    lookahead: LookaheadParameters,
) -> str:
    """Write the rule's future, figure and means as a page that needs nothing but itself."""
    from countermove.experiments import Measured
    from countermove.experiments.protocol import opening

    said = opening(future, "retraining", lookahead.dataset)
    return lookahead.build().page(Measured(cells), means, figure, said)


def state(
    people: LookaheadTable, means: pd.DataFrame, lookahead: LookaheadParameters, seed: int
) -> dict[str, Any]:
    """State what was run on whom, and what came out."""
    from countermove.experiments.lookahead.people import lookahead_facts

    return lookahead_facts(people, means, lookahead.model_dump(mode="json"), seed)


def create_pipeline(**_: object) -> Pipeline:
    """Return the look-ahead pipeline."""
    people, cells, means = "lookahead_people", "lookahead_cells", "lookahead_means"
    settings, seed, figure = "params:lookahead", "params:seed", "lookahead_figure"
    given, shown = ["tables", "raw_tables", settings], [
        cells, means, figure, "lookahead_future", settings,
    ]  # fmt: skip
    stated = [people, means, settings, seed]
    return Pipeline(
        [
            Node(prepare, given, people, name="prepare_lookahead"),
            Node(measure, [people, settings, seed], cells, name="measure_lookahead"),
            Node(average, [cells, settings], means, name="average_lookahead"),
            Node(draw, [cells, means, settings], figure, name="draw_lookahead"),
            Node(write_page, shown, "lookahead_page", name="write_lookahead_page"),
            Node(state, stated, "lookahead_facts", name="state_lookahead"),
        ],
        namespace="lookahead",
        prefix_datasets_with_namespace=False,
    )
