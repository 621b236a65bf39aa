"""The one protocol of all papers: cells are measured, averaged, drawn and written as a page."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pandas as pd

from countermove.execution import Mapper
from countermove.experiments.cell_store import CellStore
from countermove.experiments.tables import Tables
from countermove.reporting import figure_data, render

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from countermove.data.texts import Texts
    from countermove.recourse.text import Encoder, VectorStore

Source = TypeVar("Source")
PageTable = dict[str, Any]
"""A table of a page: title, head and rows."""


@dataclass(frozen=True)
class Sources:
    """Where experiments read from.

    Parameters
    ----------
    tables
        Gives a typed table and its schema by name.
    texts, vectors
        Give the texts of a file, and the vectors kept for an encoder.
    store
        Keeps finished cells.
    """

    tables: Tables
    texts: Callable[..., Texts] | None = None
    vectors: Callable[[Encoder], VectorStore] | None = None
    store: CellStore | None = None


@dataclass(frozen=True, eq=False)
class Measured:
    """One row per cell, and what an experiment found beside them (examples, a picture, advice)."""

    cells: pd.DataFrame
    beside: Any = None


class Experiment(ABC, Generic[Source]):
    """One experiment of a paper, on whatever it reads from (``Source``)."""

    @abstractmethod
    def cells(self, source: Source, seed: int, mapper: Mapper | None = None) -> pd.DataFrame:
        """Return everything measured, one row per cell, the same whoever works."""

    def measure(self, source: Source, seed: int, mapper: Mapper | None = None) -> Measured:
        """Return the cells and what stands beside them; nothing does, by default."""
        return Measured(self.cells(source, seed, mapper))

    def means(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return what is reported, from the cells; the cells themselves, by default."""
        return cells

    @abstractmethod
    def figure(self, found: Measured, means: pd.DataFrame, title: str) -> Figure:
        """Draw the experiment."""

    def page(self, found: Measured, means: pd.DataFrame, figure: Figure) -> str:
        """Write figure and means as a page that needs nothing but itself."""
        return experiment_page([figure], [means_table(means)])


def experiment_page(
    figures: Sequence[Figure],
    tables: Iterable[PageTable] = (),
    title: str | None = None,
    lead: str = "",
    note: str = "",
) -> str:
    """Return a page of figures and tables; called like the first figure unless titled."""
    first = str(figures[0].layout.title.text or "")
    return render(
        "experiment.html",
        title=title or first,
        lead=lead,
        figures=[
            {"content": figure_data(one), "description": str(one.layout.title.text or first)}
            for one in figures
        ],
        tables=list(tables),
        note=note,
    )


def page_table(title: str, head: Iterable[str], rows: Iterable[Iterable[str]]) -> PageTable:
    """Return a table for a page; the first cell of a row is its heading."""
    return {"title": title, "head": list(head), "rows": [list(row) for row in rows]}


def means_table(means: pd.DataFrame, form: str = ".4f", title: str = "Means") -> PageTable:
    """Return a frame as a table for a page: numbers by ``form``, nothing where there is none."""
    columns = [_texts(means[name], form) for name in means.columns]
    return page_table(title, map(str, means.columns), zip(*columns, strict=True))


def _texts(values: pd.Series, form: str) -> list[str]:
    fractions = pd.api.types.is_float_dtype(values)
    return [
        "" if value is None or (isinstance(value, float) and isnan(value))
        else f"{value:{form}}" if fractions else str(value)
        for value in values
    ]  # fmt: skip


def mean_and_spread(cells: pd.DataFrame, by: list[str], values: list[str]) -> pd.DataFrame:
    """Return mean and standard deviation of columns per group, and the number of cells."""
    grouped = cells.groupby(by, sort=False)[values]
    means, spreads = grouped.mean(), grouped.std(ddof=1).add_suffix("_sd")
    count = grouped.size().rename("cells")
    return pd.concat([means, spreads, count], axis=1).reset_index()


def over_splits(cells: pd.DataFrame, axes: list[str], sort: bool = False) -> pd.DataFrame:
    """Return the mean of every measure over splits, with how many splits there were.

    A measure that some split lacks (nobody was refused there) is averaged over the others.
    """
    grouped = cells.drop(columns="split").groupby(axes, sort=sort)
    means = grouped.mean()
    means.insert(0, "splits", grouped.size())
    return means.reset_index()
