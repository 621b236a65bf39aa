"""Grids of experiments: datasets × splits × seeds × strengths × costs, every rule in each cell.

A cell is one `compare` of the learning room; a figure of a paper is one grid.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from countermove import __version__
from countermove.data.schema import Schema
from countermove.errors import ParameterError, shown
from countermove.execution import Mapper, map_ordered
from countermove.experiments.cell_store import CellStore, content_key
from countermove.experiments.protocol import Experiment, Measured, Sources, experiment_page
from countermove.experiments.tables import Sampling, Table, Tables, make_split, present
from countermove.learning.baselines import hardt_threshold
from countermove.learning.comparison import (
    Split,
    compare,
    judging_population,
    train_blind,
)
from countermove.learning.evaluation import worst_accuracy
from countermove.learning.regularisers import Regulariser
from countermove.people import Cost, LinearCost, MixtureCost
from countermove.scores import Score

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

logger = logging.getLogger(__name__)

ScoreOf = Callable[[Schema, int], Score | None]
"""Gives the score to start from, by schema and seed; None: linear."""


@dataclass(frozen=True, kw_only=True)
class Grid(Sampling, Experiment[Sources]):
    """What varies, and what does not.

    Parameters
    ----------
    splits, costs
        The axes besides the datasets: number of random splits, prices of a move.
    response
        The population, as `StrategicClassifier` takes it.
    settings
        Further arguments of `StrategicClassifier`.
    blind
        Arguments that differ for the blind rule.
    steps
        Lengths of history, one more axis, for tables that are series.
    seeds
        Of training (start and mini-batches), one more axis; empty: one, that of the split.
    regulariser, strengths
        What is added to the strategic rule's risk, and how much of it, one more axis; empty: as
        much as the regulariser says.
    score
        The score to start from; linear by default.
    axis
        What the figure is drawn against: ``steps``, ``strength`` or a number of the cost.
    prune
        Remove finished cells that this grid does not ask for.
    """

    splits: int
    costs: Sequence[Cost]
    response: Any = "best"
    settings: Mapping[str, Any] = field(default_factory=dict)
    blind: Mapping[str, Any] = field(default_factory=dict)
    steps: Sequence[int] = ()
    score: ScoreOf | None = None
    seeds: Sequence[int] = ()
    regulariser: Any = None
    strengths: Sequence[float] = ()
    axis: str = "scale"
    prune: bool = False

    def __post_init__(self) -> None:
        if self.strengths and self.regulariser is None:
            raise ParameterError(
                f"strengths {shown(self.strengths)} of no regulariser; say which one, or leave "
                "them out"
            )

    @property
    def inner(self) -> list[tuple[Regulariser | None, Cost]]:
        """What varies inside a block, in the order of its rows."""
        aims = [replace(self.regulariser, strength=s) for s in self.strengths]
        return [(aim, cost) for aim in aims or [self.regulariser] for cost in self.costs]

    def cells(self, source: Sources, seed: int, mapper: Mapper | None = None) -> pd.DataFrame:
        """Train and judge every cell that is not finished yet."""
        return run_sweep(self, source.tables, seed, mapper, source.store, self.prune)

    def figure(self, found: Measured, means: pd.DataFrame, title: str) -> Figure:
        """Draw mean accuracies against the axis."""
        return sweep_figure(found.cells, self.axis, title)

    def page(self, found: Measured, means: pd.DataFrame, figure: Figure) -> str:
        """Write the figure as a page."""
        return experiment_page([figure])


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


def run_sweep(
    grid: Grid,
    tables: Tables,
    seed: int,
    mapper: Mapper | None = None,
    store: CellStore | None = None,
    prune: bool = False,
) -> pd.DataFrame:
    """Return one row per cell: dataset, split, cost, the accuracies of every rule, seconds.

    Where the grid has them as axes also the steps, the seed and the strength.

    Parameters
    ----------
    grid
        What varies, and what does not.
    tables
        Gives a table by name.
    seed
        Of the first split; the others follow.
    mapper
        Who works; here, one block after the other, by default.
    store
        Keeps finished cells: a sweep that was stopped goes on where it was.
    prune
        Remove from the store, at the end, the cells this sweep does not ask for.
    """
    found = _found(grid, tables)
    blocks = [
        Block(*key, number, drawn)
        for key in found
        for number in range(grid.splits)
        for drawn in (grid.seeds or (None,))
    ]
    work = SweepWork(grid, found, seed, store)
    done = map_ordered(do_block, blocks, work, mapper, "splits")
    if prune and store is not None:
        _prune(grid, {name for name, _ in found}, store, [key for keys, _ in done for key in keys])
    rows = [
        block.axes | row for block, (_, cells) in zip(blocks, done, strict=True) for row in cells
    ]
    return pd.DataFrame(rows)


def _found(grid: Grid, tables: Tables) -> dict[tuple[str, int | None], Table]:
    """Return the tables that are there, by name and length of history."""
    found = {
        (name, steps): tables(name, steps) if steps else table
        for name, table in present(grid, tables)
        for steps in (grid.steps or (None,))
    }
    if not found:
        raise ParameterError(
            f"none of the tables of this sweep is there ({', '.join(grid.datasets)}); "
            "put a file and a schema in place or name other datasets"
        )
    return found


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


def do_block(work: SweepWork, block: Block) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the keys and the cells of a block, those that are known and those trained now."""
    inner, table, store = work.grid.inner, work.tables[block.table, block.steps], work.store
    keys = [] if store is None else _keys(work, block, table)
    rows = {} if store is None else store.known(keys)
    missing = [k for k in range(len(inner)) if k not in rows]
    trained = _cells(work.grid, block, table, work.seed, [inner[k] for k in missing])
    for k, row in zip(missing, trained, strict=True):
        rows[k] = row
        if store is not None:
            store.put(keys[k], row)
    return keys, [rows[k] for k in range(len(inner))]


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
        found = compare(split, grid.response, cost, blind=blind, **aimed).to_json()
        seconds = time.perf_counter() - started
        found |= _hardt(split, grid.response, cost, settings)
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


RULES = {
    "benchmark": ("nobody moves, blind", "#1f2933", "dot"),
    "blind": ("blind", "#9aa5b1", "solid"),
    "shifted_blind": ("blind, threshold raised by the reach", "#b7791f", "dash"),
    "bias_search": ("blind, best intercept", "#805ad5", "dash"),
    "hardt": ("Hardt et al.", "#c53030", "solid"),
    "strategic": ("strategic", "#00796b", "solid"),
}
"""How the rules of a comparison are called and drawn."""


def sweep_figure(cells: pd.DataFrame, axis: str, title: str) -> Figure:
    """Draw the mean accuracy of every rule over splits, one panel per dataset."""
    from plotly.graph_objects import Scatter
    from plotly.subplots import make_subplots

    names = list(dict.fromkeys(cells["dataset"]))
    figure = make_subplots(rows=1, cols=len(names), subplot_titles=names, shared_yaxes=True)
    for column, name in enumerate(names, start=1):
        means = cells[cells["dataset"] == name].groupby(axis).mean(numeric_only=True)
        for rule, (label, colour, dash) in RULES.items():
            if rule in means:
                line = Scatter(
                    x=means.index.tolist(),
                    y=means[rule].tolist(),
                    name=label,
                    legendgroup=rule,
                    showlegend=column == 1,
                    line={"color": colour, "dash": dash},
                )
                figure.add_trace(line, row=1, col=column)
        named = {"steps": "steps of history", "strength": "strength of the regulariser"}
        words = named.get(axis, f"{axis} of the cost")
        figure.update_xaxes(title=words, row=1, col=column)
    figure.update_yaxes(title="share judged right after response", row=1, col=1)
    return figure.update_layout(title=title, template="plotly_white")
