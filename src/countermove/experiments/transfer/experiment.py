"""What the experiments of the transferability paper share: places of a grid, on any engine."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from countermove.execution import Mapper, map_ordered
from countermove.experiments.protocol import Experiment, Measured, Sources
from countermove.experiments.tables import Tables

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Row = dict[str, Any]


class TransferExperiment(Experiment[Sources]):
    """A grid; a place in it is one item of work, with random numbers of its own."""

    @abstractmethod
    def places(self) -> Sequence[Any]:
        """Return the places in the grid, in the order of the rows."""

    @abstractmethod
    def measured(self, place: Any, seed: int, people: Any) -> list[Row]:
        """Return the rows of one place."""

    @abstractmethod
    def draw(self, cells: pd.DataFrame, means: pd.DataFrame) -> Figure:
        """Draw the experiment, without title and legend."""

    def people(self, tables: Tables) -> Any:
        """Return what every place reads of a table; nothing, where people are drawn."""
        return None

    def cells(self, source: Sources, seed: int, mapper: Mapper | None = None) -> pd.DataFrame:
        """Return everything measured, one row per cell."""
        shared = self, seed, self.people(source.tables)
        found = map_ordered(measure_place, self.places(), shared, mapper)
        return pd.DataFrame([row for rows in found for row in rows])

    def figure(self, found: Measured, means: pd.DataFrame, title: str) -> Figure:
        """Draw the experiment."""
        return self.draw(found.cells, means).update_layout(
            title=title.replace("_", " ").capitalize(),
            template="plotly_white",
            legend={"orientation": "h", "y": -0.15},
        )


def measure_place(shared: tuple[TransferExperiment, int, Any], place: Any) -> list[Row]:
    """Measure one place, on whatever worker this is."""
    experiment, seed, people = shared
    return experiment.measured(place, seed, people)
