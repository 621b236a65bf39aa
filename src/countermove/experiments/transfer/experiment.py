"""The experiments of the transferability paper, one object each, any of them on any engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import pandas as pd

from countermove.execution import Mapper, map_ordered
from countermove.experiments.tables import Tables

Row = dict[str, Any]


class TransferExperiment(ABC):
    """What every experiment can do; a place is one item of work, with random numbers of its own."""

    @abstractmethod
    def places(self) -> Sequence[Any]:
        """Return the places in the grid, in the order of the rows."""

    @abstractmethod
    def measured(self, place: Any, seed: int, people: Any) -> list[Row]:
        """Return the rows of one place."""

    @abstractmethod
    def means(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return what is reported, from the cells."""

    def people(self, tables: Tables) -> Any:
        """Return what every place reads of a table; nothing, where people are drawn."""
        return None

    def cells(self, tables: Tables, seed: int, mapper: Mapper | None = None) -> pd.DataFrame:
        """Return everything measured, one row per cell, the same whoever works."""
        shared = self, seed, self.people(tables)
        found = map_ordered(measure_place, self.places(), shared, mapper)
        return pd.DataFrame([row for rows in found for row in rows])


def measure_place(shared: tuple[TransferExperiment, int, Any], place: Any) -> list[Row]:
    """Measure one place, on whatever worker this is."""
    experiment, seed, people = shared
    return experiment.measured(place, seed, people)
