"""Grids of experiments: datasets × splits × costs, every rule in each cell.

A cell is one `compare` of the learning room; a figure of a paper is one grid.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from countermove.data.design_matrix import design_matrix
from countermove.data.schema import Schema
from countermove.data.splits import split_table
from countermove.data.standardise import Standardiser
from countermove.errors import DataError, ParameterError, UnknownNameError
from countermove.learning.baselines import hardt_threshold
from countermove.learning.comparison import (
    Split,
    compare,
    judging_population,
    train_blind,
)
from countermove.learning.evaluation import worst_accuracy
from countermove.people import Cost, LinearCost, MixtureCost
from countermove.scores import Score

logger = logging.getLogger(__name__)

Table = tuple[pd.DataFrame, Schema]
Tables = Callable[..., Table]
"""Gives the typed table and the schema of a dataset by name (and number of steps of a series)."""
ScoreOf = Callable[[Schema, int], Score | None]
"""Gives the score to start from, by schema and seed; None: linear."""

SHARES = {"train": 0.6, "validation": 0.2, "test": 0.2}
"""As in the SERM experiments."""


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Which tables an experiment reads and how it prepares them.

    Parameters
    ----------
    datasets
        Names.
    batch_sizes
        Per dataset, where it differs from the settings.
    balance, max_rows, divide_by_root_d
        See `split_table` and `Standardiser.fit`.
    skip_missing
        Leave out, with a warning, datasets whose table is not there.
    shares
        Of the rows to train on, to stop by and to judge on.
    """

    datasets: Sequence[str]
    batch_sizes: Mapping[str, int] = field(default_factory=dict)
    balance: bool = True
    max_rows: int | None = None
    divide_by_root_d: bool = True
    skip_missing: bool = False
    shares: Mapping[str, float] = field(default_factory=lambda: dict(SHARES))


@dataclass(frozen=True, kw_only=True)
class Grid(Sampling):
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
    score
        The score to start from; linear by default.
    """

    splits: int
    costs: Sequence[Cost]
    response: Any = "best"
    settings: Mapping[str, Any] = field(default_factory=dict)
    blind: Mapping[str, Any] = field(default_factory=dict)
    steps: Sequence[int] = ()
    score: ScoreOf | None = None


def run_sweep(grid: Grid, tables: Tables, seed: int) -> pd.DataFrame:
    """Return one row per cell: dataset, split, cost, the accuracies of every rule, seconds."""
    rows = [
        {"dataset": name, "split": number, **axes, **row}
        for name, table, axes in _lengths(grid, tables)
        for number in range(grid.splits)
        for row in _cells(grid, name, table, number, seed)
    ]
    if not rows:
        raise ParameterError(
            f"none of the tables of this sweep is there ({', '.join(grid.datasets)}); "
            "put a file and a schema in place or name other datasets"
        )
    return pd.DataFrame(rows)


def make_split(grid: Sampling, table: Table, seed: int) -> Split:
    """Return one random split in standardised units, fitted on its training rows."""
    typed, schema = table
    parts = {
        name: design_matrix(part, schema)
        for name, part in split_table(
            typed, schema, grid.shares, seed, balance=grid.balance, max_rows=grid.max_rows
        ).items()
    }
    unit = Standardiser.fit(parts["train"].X, schema.feature_names, grid.divide_by_root_d)
    return Split(**{name: (unit.transform(part.X), part.y) for name, part in parts.items()})


def present(grid: Sampling, tables: Tables) -> Iterator[tuple[str, Table]]:
    """Yield every dataset whose table is there."""
    for name in grid.datasets:
        try:
            yield name, tables(name)
        except (DataError, UnknownNameError) as error:
            if not grid.skip_missing:
                raise
            logger.warning("left out %s: %s", name, error)


def _lengths(grid: Grid, tables: Tables) -> Iterator[tuple[str, Table, dict[str, Any]]]:
    """Yield every table, of a series once per length of history."""
    for name, table in present(grid, tables):
        if not grid.steps:
            yield name, table, {}
        for steps in grid.steps:
            yield name, tables(name, steps), {"steps": steps}


def _cells(grid: Grid, name: str, table: Table, number: int, seed: int) -> Iterator[dict[str, Any]]:
    split = make_split(grid, table, seed + number)
    settings = {"random_state": seed + number, **grid.settings}
    if grid.score is not None:
        settings["score"] = grid.score(table[1], seed + number)
    if name in grid.batch_sizes:
        settings["batch_size"] = grid.batch_sizes[name]
    blind = train_blind(split, **{**settings, **grid.blind})
    for cost in grid.costs:
        started = time.perf_counter()
        found = compare(split, grid.response, cost, blind=blind, **settings).to_json()
        seconds = time.perf_counter() - started
        found |= _hardt(split, grid.response, cost, settings)
        logger.info("%s, split %d, %s: strategic %.3f", name, number, cost, found["strategic"])
        yield _axes(cost) | found | {"seconds": seconds}


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
