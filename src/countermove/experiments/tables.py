"""Which tables an experiment reads, and how their rows are split and standardised."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from countermove.data.rows import design_matrix
from countermove.data.schema import Schema
from countermove.data.splits import split_table
from countermove.data.standardise import Standardiser
from countermove.errors import DataError, UnknownNameError
from countermove.learning.comparison import Split

logger = logging.getLogger(__name__)

Table = tuple[pd.DataFrame, Schema]
Tables = Callable[..., Table]
"""Gives the typed table and the schema of a dataset by name (and number of steps of a series)."""
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
