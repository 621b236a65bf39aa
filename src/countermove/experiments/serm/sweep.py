"""Grids of experiments: datasets × splits × seeds × strengths × costs, every rule in each cell.

A cell is one `compare` of the learning room; a figure of a paper is one grid.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from countermove import __version__
from countermove.data.schema import Schema
from countermove.errors import ParameterError, shown
from countermove.execution import Mapper
from countermove.experiments._drawing import DARK, GREY, OCHRE, PUBLISHED, RIGHT, VIOLET
from countermove.experiments.cell_store import CellStore, content_key
from countermove.experiments.protocol import Experiment, Measured, Row, Sources
from countermove.experiments.tables import Sampling, Table, make_split, some_present
from countermove.learning.baselines import hardt_threshold
from countermove.learning.comparison import (
    Split,
    compare,
    judging_population,
    train_blind,
)
from countermove.learning.evaluation import worst_accuracy
from countermove.learning.regularisers import Regulariser
from countermove.learning.trees import TreeTraining
from countermove.people import Cost, LinearCost, MixtureCost
from countermove.response import Population, named_response
from countermove.scores import Score

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

logger = logging.getLogger(__name__)

ScoreOf = Callable[[Schema, int], Score | TreeTraining | None]
"""Gives the score to start from, by schema and seed; None: linear."""


RULES = {
    "benchmark": ("nobody moves, blind", DARK, "dot"),
    "blind": ("blind", GREY, "solid"),
    "shifted_blind": ("blind, threshold raised by the reach", OCHRE, "dash"),
    "bias_search": ("blind, best intercept", VIOLET, "dash"),
    "hardt": ("Hardt et al.", PUBLISHED, "solid"),
    "strategic": ("strategic", RIGHT, "solid"),
}
"""How the rules of a comparison are called and drawn."""


@dataclass(frozen=True, kw_only=True)
class Grid(Sampling, Experiment[Sources]):
    """Datasets × splits × costs (× lengths of history × seeds × strengths of a regulariser)."""

    what: ClassVar[str] = "splits"

    splits: int
    costs: Sequence[Cost]
    response: Any = "best"
    never: float = 0.0  # share of people who never move, of a response by name
    log_sd: float = 0.0  # spread of the logarithm of the others' prices
    settings: Mapping[str, Any] = field(default_factory=dict)  # of `StrategicClassifier`
    blind: Mapping[str, Any] = field(default_factory=dict)  # those that differ for the blind rule
    steps: Sequence[int] = ()  # lengths of history, for tables that are series
    score: ScoreOf | None = None  # linear by default
    seeds: Sequence[int] = ()  # of training; none: one, that of the split
    regulariser: Any = None
    strengths: Sequence[float] = ()  # none: as much as the regulariser says
    axis: str = "scale"  # of the figure: steps, strength or a number of the cost
    prune: bool = False  # whether finished cells that this grid does not ask for are removed

    def __post_init__(self) -> None:
        if self.strengths and self.regulariser is None:
            raise ParameterError(
                f"strengths {shown(self.strengths)} of no regulariser; say which one, or leave "
                "them out"
            )

    def people(self, cost: Cost) -> Any:
        """Return who responds at a cost: the response, or a population of it."""
        if not (self.never or self.log_sd):
            return self.response
        kind = named_response(self.response, cost, None, self.settings.get("temperature", 0.5))
        return Population(kind, never=self.never, log_sd=self.log_sd)

    @property
    def inner(self) -> list[tuple[Regulariser | None, Cost]]:
        """What varies inside a block, in the order of its rows."""
        aims = [replace(self.regulariser, strength=s) for s in self.strengths]
        return [(aim, cost) for aim in aims or [self.regulariser] for cost in self.costs]

    def given(self, source: Sources, seed: int) -> SweepWork:
        """Return the tables that are there, by name and length of history."""
        found = some_present(self.datasets, source.tables, self.skip_missing)
        tables = {
            (name, steps): source.tables(name, steps) if steps else table
            for name, table in found.items()
            for steps in (self.steps or (None,))
        }
        return SweepWork(self, tables, seed, source.store)

    def places(self, given: SweepWork) -> list[Block]:
        """Return tables, splits and seeds."""
        seeds: Sequence[int | None] = self.seeds or (None,)
        where = product(given.tables, range(self.splits), seeds)
        return [Block(*key, split, seed) for key, split, seed in where]

    def measured_at(self, place: Block, seed: int, given: SweepWork) -> tuple[list[Row], list[str]]:
        """Return the cells of a block, those known and those trained now; beside: their keys."""
        inner, store, table = self.inner, given.store, given.tables[place.table, place.steps]
        keys = [] if store is None else _keys(given, place, table)
        rows = {} if store is None else store.known(keys)
        missing = [k for k in range(len(inner)) if k not in rows]
        trained = _cells(self, place, table, seed, [inner[k] for k in missing])
        for k, row in zip(missing, trained, strict=True):
            rows[k] = row
            if store is not None:
                store.put(keys[k], row)
        return [place.axes | rows[k] for k in range(len(inner))], keys

    def beside(self, parts: Sequence[list[str]]) -> list[str]:
        """Return the keys of all cells."""
        return [key for keys in parts for key in keys]

    def measure(self, source: Sources, seed: int, mapper: Mapper | None = None) -> Measured:
        """Train and judge every cell that is not finished yet."""
        found = super().measure(source, seed, mapper)
        if self.prune and source.store is not None:
            _prune(self, set(found.cells["dataset"]), source.store, found.beside)
        return Measured(found.cells)

    def draw(self, found: Measured, means: pd.DataFrame) -> Figure:
        """Draw the mean accuracy of every rule over splits, one panel per dataset."""
        from plotly.graph_objects import Scatter
        from plotly.subplots import make_subplots

        names = list(dict.fromkeys(found.cells["dataset"]))
        figure = make_subplots(rows=1, cols=len(names), subplot_titles=names, shared_yaxes=True)
        for column, name in enumerate(names, start=1):
            own = found.cells[found.cells["dataset"] == name]
            averages = own.groupby(self.axis).mean(numeric_only=True)
            for rule, (label, colour, dash) in RULES.items():
                if rule in averages:
                    line = Scatter(
                        x=averages.index.tolist(),
                        y=averages[rule].tolist(),
                        name=label,
                        legendgroup=rule,
                        showlegend=column == 1,
                        line={"color": colour, "dash": dash},
                    )
                    figure.add_trace(line, row=1, col=column)
            named = {"steps": "steps of history", "strength": "strength of the regulariser"}
            words = named.get(self.axis, f"{self.axis} of the cost")
            figure.update_xaxes(title=words, row=1, col=column)
        figure.update_yaxes(title="share judged right after response", row=1, col=1)
        return figure

    def shown(self, found: Measured, means: pd.DataFrame) -> Row:
        """Show the figure alone."""
        return {}


@dataclass(frozen=True)
class Block:
    """Cells that share a table, a split and a seed, so a blind rule: one item of work."""

    table: str
    steps: int | None
    split: int
    seed: int | None = None

    @property
    def axes(self) -> dict[str, Any]:
        """What is the same in all its cells."""
        length = {} if self.steps is None else {"steps": self.steps}
        drawn = {} if self.seed is None else {"seed": self.seed}
        return {"dataset": self.table, "split": self.split, **length, **drawn}


@dataclass(frozen=True)
class SweepWork:
    """What all blocks of a sweep share; travels to workers."""

    grid: Grid
    tables: Mapping[tuple[str, int | None], Table]
    seed: int
    store: CellStore | None = None


def _prune(grid: Grid, present: set[str], store: CellStore, asked: Sequence[str]) -> None:
    """Remove what the sweep no longer asks for, unless a table it asks for was not there."""
    absent = [name for name in grid.datasets if name not in present]
    if absent:
        logger.warning(
            "no cell was removed from %s: some may belong to %s, whose table is not there",
            store.folder, shown(absent),
        )  # fmt: skip
        return
    removed = store.prune(asked)
    logger.info("%d cells that this sweep does not ask for removed from %s", removed, store.folder)


def _keys(work: SweepWork, block: Block, table: Table) -> list[str]:
    """Return what decides each cell: its place in the grid, every setting and the data."""
    grid, (typed, schema) = work.grid, table
    score = None if grid.score is None else grid.score(schema, _start(work.seed, block))
    settings = block.axes | {
        "sampling": [grid.balance, grid.max_rows, grid.divide_by_root_d, dict(grid.shares)],
        "batch_size": grid.batch_sizes.get(block.table),
        "response": grid.response,
        "settings": dict(grid.settings),
        "blind": dict(grid.blind),
        "score": None if score is None else [score.kind, score.describe()],
        "seed": work.seed,
        "version": __version__,
        **({"differ": [grid.never, grid.log_sd]} if grid.never or grid.log_sd else {}),
        "schema": schema,
        "data": content_key({}, typed),
    }
    return [
        content_key(settings | {"cost": cost} | ({} if aim is None else {"regulariser": aim}))
        for aim, cost in grid.inner
    ]


def _start(seed: int, block: Block) -> int:
    """Return the seed of training: the block's own, or that of its split."""
    return seed + block.split if block.seed is None else block.seed


def _cells(
    grid: Grid,
    block: Block,
    table: Table,
    seed: int,
    inner: Sequence[tuple[Regulariser | None, Cost]],
) -> Iterator[dict[str, Any]]:
    if not inner:
        return
    name, number, drawn = block.table, block.split, _start(seed, block)
    split = make_split(grid, table, seed + number)
    settings = {"random_state": drawn, **grid.settings}
    if grid.score is not None:
        settings["score"] = grid.score(table[1], drawn)
    if name in grid.batch_sizes:
        settings["batch_size"] = grid.batch_sizes[name]
    blind = train_blind(split, **{**settings, **grid.blind})
    for aim, cost in inner:
        started = time.perf_counter()
        aimed = settings | ({} if aim is None else {"regulariser": aim})
        people = grid.people(cost)
        found = compare(split, people, cost, blind=blind, **aimed).to_json()
        seconds = time.perf_counter() - started
        found |= _hardt(split, people, cost, settings)
        logger.info("%s, split %d, %s: strategic %.3f", name, number, cost, found["strategic"])
        strength = {} if aim is None else {"strength": aim.strength}
        yield _axes(cost) | strength | found | {"seconds": seconds}


def _hardt(
    split: Split, response: Any, cost: Cost, settings: Mapping[str, Any]
) -> dict[str, float]:
    """Return the accuracy of Hardt et al.'s rule for the linear part of a mixture."""
    if not isinstance(cost, MixtureCost):
        return {}
    rule = hardt_threshold(LinearCost(cost.scale * cost.direction), *split.known)
    people = judging_population(response, cost, None, settings)
    return {"hardt": worst_accuracy(rule, *split.test, people.members)}


def _axes(cost: Cost) -> dict[str, Any]:
    """Return the numbers of a cost that a figure can be drawn against."""
    described = cost.describe()
    return {"cost": described["kind"]} | {
        name: float(value)
        for name, value in described.items()
        if np.ndim(value) == 0 and name != "kind"
    }
