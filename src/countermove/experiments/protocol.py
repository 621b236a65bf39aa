"""The one protocol of all papers: places of a grid are measured, averaged, drawn, put on a page."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import pandas as pd

from countermove.execution import Mapper, map_ordered
from countermove.experiments.cell_store import CellStore
from countermove.experiments.tables import Tables
from countermove.reporting import figure_data, render

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from countermove.data.texts import Texts

Source = TypeVar("Source")
Row = dict[str, Any]
PageTable = dict[str, Any]
"""A table of a page: title, head and rows."""


@dataclass(frozen=True)
class Sources:
    """Where experiments read from.

    Parameters
    ----------
    tables
        Gives a typed table and its schema by name.
    texts
        Gives the texts of a file.
    store
        Keeps finished cells.
    """

    tables: Tables
    texts: Callable[..., Texts] | None = None
    store: CellStore | None = None


@dataclass(frozen=True, eq=False)
class Measured:
    """One row per cell, and what an experiment found beside them (examples, a picture, advice)."""

    cells: pd.DataFrame
    beside: Any = None


class Experiment(ABC, Generic[Source]):
    """One experiment of a paper, on whatever it reads from (``Source``).

    An experiment names the places of its grid (`places`) and what is measured at one of them
    (`rows_at`; `measured_at` where it also finds something that is no row), with random numbers
    that depend on the place alone. `means`, `draw` and `shown` say what is reported, drawn and put
    on the page; the rest is the same for all of them.
    """

    alone: ClassVar[bool] = False
    """Whether places are measured here one after the other, whatever workers there are."""
    what: ClassVar[str] = "cells"
    """What the progress bar counts."""
    layout: ClassVar[Mapping[str, Any]] = {}
    """What the figure's layout has beside its title."""
    digits: ClassVar[str] = ".4f"
    """How the page writes means."""

    def given(self, source: Source, seed: int) -> Any:
        """Return what every place reads, made once; the source itself, by default."""
        return source

    @abstractmethod
    def places(self, given: Any) -> Sequence[Any]:
        """Return the places of the grid, in the order of their rows."""

    def rows_at(self, place: Any, seed: int, given: Any) -> Iterable[Row]:
        """Return the rows of one place."""
        raise NotImplementedError

    def measured_at(self, place: Any, seed: int, given: Any) -> tuple[Iterable[Row], Any]:
        """Return the rows of one place, and what was found there beside them."""
        return self.rows_at(place, seed, given), None

    def beside(self, parts: Sequence[Any]) -> Any:
        """Join what was found beside the rows of every place; nothing, by default."""
        return None

    def measure(self, source: Source, seed: int, mapper: Mapper | None = None) -> Measured:
        """Return the cells and what stands beside them, the same whoever works."""
        given = self.given(source, seed)
        places, workers = list(self.places(given)), None if self.alone else mapper
        found = map_ordered(_measure_place, places, (self, seed, given), workers, self.what)
        cells = pd.DataFrame([row for rows, _ in found for row in rows])
        return Measured(cells, self.beside([part for _, part in found]))

    def cells(self, source: Source, seed: int, mapper: Mapper | None = None) -> pd.DataFrame:
        """Return everything measured, one row per cell."""
        return self.measure(source, seed, mapper).cells

    def means(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return what is reported, from the cells; the cells themselves, by default."""
        return cells

    @abstractmethod
    def draw(self, found: Measured, means: pd.DataFrame) -> Figure:
        """Draw the experiment, without its title."""

    def titled(self, title: str) -> str:
        """Return the title of the figure, from the name of the results."""
        return title

    def figure(self, found: Measured, means: pd.DataFrame, title: str) -> Figure:
        """Draw the experiment."""
        drawn = self.draw(found, means)
        return drawn.update_layout(title=self.titled(title), template="plotly_white", **self.layout)

    def shown(self, found: Measured, means: pd.DataFrame) -> dict[str, Any]:
        """Return what the page has beside the figure, as `experiment_page` takes it."""
        return {"tables": [means_table(means, self.digits)]}

    def page(self, found: Measured, means: pd.DataFrame, figure: Figure, opening: str = "") -> str:
        """Return the page, which needs nothing but itself; it opens with a sentence if given."""
        shown = self.shown(found, means)
        return experiment_page(figure, **({"lead": opening} if opening else {}) | shown)


def opening(future: Mapping[str, Any] | None, part: str, dataset: str, outcome: bool = True) -> str:
    """Return what is known of the rule of a table: a part of the run's ``future.json``.

    Nothing where the classes are not its outcome, as in the figures of a paper.
    """
    if not outcome:
        return ""
    if future is None:
        return (
            f"What this means for a rule of {dataset} is not known yet: "
            f"kedro run --pipeline=serm --params dataset={dataset} makes one and says it here."
        )
    said = f"The rule of {dataset}, once deployed. {future[part]['words']}"
    return f"{said} Below: people of the same table."


def _measure_place(shared: tuple[Experiment[Any], int, Any], place: Any) -> tuple[list[Row], Any]:
    experiment, seed, given = shared
    rows, beside = experiment.measured_at(place, seed, given)
    return list(rows), beside


def experiment_page(
    figure: Figure,
    tables: Iterable[PageTable] = (),
    title: str | None = None,
    lead: str = "",
    note: str = "",
    more: Sequence[Figure] = (),
) -> str:
    """Return a page of figures and tables; called like the first figure unless titled."""
    first = str(figure.layout.title.text or "")
    return render(
        "experiment.html",
        title=title or first,
        lead=lead,
        figures=[
            {"content": figure_data(one), "description": str(one.layout.title.text or first)}
            for one in (figure, *more)
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


def records(frame: pd.DataFrame, **where: Any) -> list[Row]:
    """Return the rows of a frame, each with the names of its place before it."""
    return [
        where | {str(name): value for name, value in row.items()}
        for row in frame.to_dict("records")
    ]


def averages(
    cells: pd.DataFrame, by: Sequence[str], leave: Sequence[str] = (), sort: bool = False
) -> pd.DataFrame:
    """Return the mean of every column per group, but of those to leave out.

    A measure that some cell lacks (nobody was refused there) is averaged over the others.
    """
    return cells.drop(columns=list(leave)).groupby(list(by), sort=sort).mean().reset_index()


def mean_and_spread(cells: pd.DataFrame, by: list[str], values: list[str]) -> pd.DataFrame:
    """Return mean and standard deviation of columns per group, and the number of cells."""
    grouped = cells.groupby(by, sort=False)[values]
    means, spreads = grouped.mean(), grouped.std(ddof=1).add_suffix("_sd")
    count = grouped.size().rename("cells")
    return pd.concat([means, spreads, count], axis=1).reset_index()


def over_splits(cells: pd.DataFrame, axes: list[str], sort: bool = False) -> pd.DataFrame:
    """Return `averages` over splits, with how many splits there were."""
    means = averages(cells, axes, ["split"], sort)
    counts = cells.groupby(axes, sort=sort).size()
    means.insert(len(axes), "splits", counts.to_numpy())
    return means
