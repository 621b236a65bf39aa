"""The experiments of the look-ahead paper, one object each, and what they share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

import numpy as np
import pandas as pd

from countermove.dynamics.learners import LogisticLearner
from countermove.dynamics.published import PublishedQuasiNewton
from countermove.people import QuadraticCost
from countermove.production.lookahead_table import LookaheadTable
from countermove.response.gain import GainResponse

Solver = Literal["exact", "published"]


class LookaheadExperiment(Protocol):
    """What every experiment can do."""

    def cells(self, people: LookaheadTable, seed: int) -> pd.DataFrame:
        """Return everything measured, one row per cell."""

    def means(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return what is reported, from the cells."""


def gain_response(people: LookaheadTable, columns: Any, strength: float) -> GainResponse:
    r"""Return people who move by :math:`\epsilon w_S`: the strength, on the columns S."""
    return GainResponse(QuadraticCost(1.0 / (2.0 * strength)), people.only(tuple(columns or ())))


def platform(
    people: LookaheadTable,
    solver: Solver = "exact",
    penalty: float | None = None,
    penalise_intercept: bool = True,
) -> LogisticLearner:
    """Return the learner: exact, or as the paper's code fits; by default with penalty 1/n."""
    strength = 1.0 / people.crowd.n if penalty is None else penalty
    if solver == "published":
        return PublishedQuasiNewton(strength, penalise_intercept=penalise_intercept)
    return LogisticLearner(strength, penalise_intercept=penalise_intercept)


def share_words(shares: Mapping[int, float]) -> str:
    """Return a mixture in words: ``0.9 level 1, 0.1 level 2``."""
    return ", ".join(f"{share:g} level {level}" for level, share in sorted(shares.items()))


def mean_and_spread(cells: pd.DataFrame, by: list[str], values: list[str]) -> pd.DataFrame:
    """Return mean and standard deviation of columns per group, and the number of cells."""
    grouped = cells.groupby(by, sort=False)[values]
    means, spreads = grouped.mean(), grouped.std(ddof=1).add_suffix("_sd")
    count = grouped.size().rename("cells")
    return pd.concat([means, spreads, count], axis=1).reset_index()


def accuracy(scores: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> float:
    """Return the share of people whose decision is their label in {0, 1}."""
    return float(np.mean((scores >= 0.0) == (y > 0.5)))
