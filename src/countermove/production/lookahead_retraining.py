"""Figure 1: gaps between models retrained on mixtures of level-k people.

The exact learner shows the dynamics; the published one shows what the paper plots,
which is the tolerance of its fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pandas as pd

from countermove._types import Floats
from countermove.dynamics.level_k import LevelKPopulation
from countermove.dynamics.published import PublishedDescent
from countermove.dynamics.retraining import retrain_until_stable
from countermove.production.lookahead import (
    Solver,
    gain_response,
    mean_and_spread,
    platform,
    share_words,
)
from countermove.production.lookahead_table import LookaheadTable
from countermove.randomness import generator

Mixture = Mapping[int, float]
MIXTURES: tuple[Mixture, ...] = ({1: 0.9, 2: 0.1}, {1: 0.5, 2: 0.5}, {1: 0.1, 2: 0.9})
"""The paper's."""


@dataclass(frozen=True)
class RetrainingExperiment:
    r"""Mixtures × seeds × rounds.

    Parameters
    ----------
    mixtures
        Shares by level.
    response_strength
        :math:`\epsilon`: people move by :math:`\epsilon w_S`.
    columns
        S; none: those of the table that can change.
    rounds
        Models trained after the first.
    seeds
        Draws of who thinks how far (one is enough where ``groups`` are weights).
    solver
        ``exact``, or ``published``: as the paper's code fits.
    groups
        ``drawn``: everybody has one level, at random, as in the paper; ``weights``: everybody
        counts at every level with its share.
    start
        ``fitted`` to the people before any deployment, or where the ``published`` descent stops;
        none: as the solver.
    penalty, penalise_intercept
        Of the learner; none: 1/n, the intercept too, as published.
    """

    mixtures: Sequence[Mixture] = field(default=MIXTURES)
    response_strength: float = 0.5
    columns: Sequence[str] = ()
    rounds: int = 25
    seeds: Sequence[int] = tuple(range(10))
    solver: Solver = "exact"
    groups: Literal["drawn", "weights"] = "drawn"
    start: Literal["fitted", "published"] | None = None
    penalty: float | None = None
    penalise_intercept: bool = True

    def cells(self, people: LookaheadTable, seed: int) -> pd.DataFrame:
        """Return one row per mixture, seed and round.

        ``gap`` is the distance between models in a row, ``gap_scaled`` the same over the length
        of the first model on the columns people change (what the paper plots).
        """
        start = self._start(people)
        return pd.concat(
            [
                table.assign(mixture=share_words(shares), seed=number)
                for shares in self.mixtures
                for number, table in self._runs(people, shares, start, seed)
            ],
            ignore_index=True,
        )

    def means(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return averages over seeds per mixture and round, with standard deviations."""
        kept = cells.dropna(subset=["gap"])
        return mean_and_spread(kept, ["mixture", "round"], ["gap", "gap_scaled", "risk"])

    def _start(self, people: LookaheadTable) -> Floats:
        learner = platform(people, self.solver, self.penalty, self.penalise_intercept)
        if (self.start or {"exact": "fitted"}.get(self.solver, "published")) == "published":
            return PublishedDescent(learner.penalty).fit(people.crowd)
        return learner.fit(people.crowd)

    def _runs(
        self, people: LookaheadTable, shares: Mixture, start: Floats, seed: int
    ) -> Iterator[tuple[int, pd.DataFrame]]:
        learner = platform(people, self.solver, self.penalty, self.penalise_intercept)
        response = gain_response(people, self.columns, self.response_strength)
        moved = people.columns(self.columns or people.changeable)
        size = float(np.linalg.norm(start[list(moved)]))
        drawn = self.groups == "drawn"
        for number in self.seeds if drawn else self.seeds[:1]:
            rng = generator(seed, f"levels {number}")
            population = (
                LevelKPopulation.drawn(people.crowd, response, shares, rng)
                if drawn
                else LevelKPopulation(people.crowd, response, shares)
            )
            run = retrain_until_stable(
                learner, population, start, rounds=self.rounds, tolerance=0.0,
                on_divergence="report", theory=False,
            )  # fmt: skip
            table = run.table()[["round", "gap", "risk"]]
            yield number, table.assign(gap_scaled=table["gap"] / size, status=run.status)
