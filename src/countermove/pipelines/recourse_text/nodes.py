"""Recourse on texts: cells, their means, and the advice in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pandas as pd

from countermove.params import RecourseTextParameters

if TYPE_CHECKING:
    from countermove.data.texts import Texts
    from countermove.experiments.recourse.texts import Stores
else:  # Kedro resolves annotations at start-up, and these are slow to import.
    Texts = Stores = Any


def train_and_measure(
    texts: Callable[..., Texts], stores: Stores, recourse_text: RecourseTextParameters
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Train every score of the sentences and measure it; advise the refused."""
    from countermove.experiments.recourse.texts import run_text_experiment

    said = recourse_text
    read = texts(said.dataset, text=said.text, label=said.label, favourable=said.favourable)
    return run_text_experiment(said.build(), read, stores)


def average(cells: pd.DataFrame) -> pd.DataFrame:
    """Average over splits."""
    from countermove.experiments.recourse.texts import over_text_splits

    return over_text_splits(cells)
