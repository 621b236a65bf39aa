"""The experiments of the transferability paper, one object each."""

from __future__ import annotations

from typing import Protocol

import pandas as pd

from countermove.production.sweep import Tables


class TransferExperiment(Protocol):
    """What every experiment can do."""

    def cells(self, tables: Tables, seed: int) -> pd.DataFrame:
        """Return everything measured, one row per cell."""

    def means(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return what is reported, from the cells."""
