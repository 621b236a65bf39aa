"""Which tables an experiment reads, and how their rows are split and standardised."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from countermove.data.rows import design_matrix
from countermove.data.schema import Schema
from countermove.data.splits import split_table
from countermove.data.standardise import Standardiser
from countermove.errors import DataError, ParameterError, UnknownNameError
from countermove.learning.comparison import Split

logger = logging.getLogger(__name__)

Table = tuple[pd.DataFrame, Schema]
Tables = Callable[..., Table]
"""Gives the typed table and the schema of a dataset by name (and number of steps of a series)."""
SHARES = {"train": 0.6, "validation": 0.2, "test": 0.2}
"""As in the SERM experiments."""


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Which tables an experiment reads and how it prepares them; see `split_table`."""

    datasets: Sequence[str]
    # Where a dataset's differs from the settings.
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


def present(datasets: Iterable[str], tables: Tables, skip_missing: bool) -> dict[str, Table]:
    """Return the tables that are there; one that is not is left out with a warning, or refused."""
    found = {}
    for name in datasets:
        try:
            found[name] = tables(name)
        except (DataError, UnknownNameError) as error:
            if not skip_missing:
                raise
            logger.warning("left out %s: %s", name, error)
    return found


def some_present(datasets: Iterable[str], tables: Tables, skip_missing: bool) -> dict[str, Table]:
    """Return the tables that are there, at least one."""
    names = list(datasets)
    found = present(names, tables, skip_missing)
    if not found:
        raise ParameterError(
            f"none of the tables of this experiment is there ({', '.join(names)}); fetch them, "
            "put a file and a schema in place, or name other datasets"
        )
    return found
