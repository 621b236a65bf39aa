"""The paper's open question: people who look ahead with a wrong or an estimated learner.

Level 2 and above imagine the next model. They may think of another penalty than the
platform's, or know some of the rows only; the model that becomes stable then differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from countermove.dynamics.learners import LogisticLearner
from countermove.dynamics.level_k import LevelKPopulation
from countermove.dynamics.retraining import Retraining, retrain_until_stable
from countermove.errors import ParameterError
from countermove.production.lookahead import gain_response, mean_and_spread, platform
from countermove.production.lookahead_table import LookaheadTable
from countermove.randomness import generator


@dataclass(frozen=True)
class BeliefsExperiment:
    r"""Wrong penalties, and samples of rows, against people who know the learner.

    Parameters
    ----------
    shares
        Shares by level; somebody thinks at level 2 or more.
    response_strength
        :math:`\epsilon`: people move by :math:`\epsilon w_S`.
    columns
        S; none: those of the table that can change.
    respond_below
        As in `RatesExperiment`: the column below whose median people respond.
    believed_penalties
        Penalties people think of, as multiples of the true one.
    believed_rows
        Numbers of rows they estimate the next model from.
    seeds
        Draws of those rows.
    rounds
        Most models trained after the first.
    """

    shares: Mapping[int, float] = field(default_factory=lambda: {2: 1.0})
    response_strength: float = 10.0
    columns: Sequence[str] = ()
    respond_below: str | None = None
    believed_penalties: Sequence[float] = (10.0, 100.0, 1000.0)
    believed_rows: Sequence[int] = (1_000, 3_000, 10_000)
    seeds: Sequence[int] = tuple(range(5))
    rounds: int = 100

    def cells(self, people: LookaheadTable, seed: int) -> pd.DataFrame:
        """Return one row per belief and seed.

        ``distance``: of the stable model from that of people who know; ``gain``: what a person
        who responds gains on average, score less cost; ``measured``: the rate of the end.
        """
        learner = platform(people, penalise_intercept=False)
        right = self._population(people)
        known = self._run(learner, right)
        rows = [
            {"belief": "right", "value": 1.0, "seed": 0, **_facts(known, known, right, learner)}
        ]
        for belief, value, number, population in self._believers(people, learner, right, seed):
            run = self._run(learner, population)
            found = _facts(run, known, population, learner)
            rows.append({"belief": belief, "value": value, "seed": number, **found})
        return pd.DataFrame(rows)

    def means(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return averages over seeds per belief."""
        return mean_and_spread(cells, ["belief", "value"], ["distance", "gain", "risk", "measured"])

    def _run(self, learner: LogisticLearner, population: LevelKPopulation) -> Retraining:
        return retrain_until_stable(
            learner, population, rounds=self.rounds, tolerance=1e-12, on_divergence="report",
            theory=False,
        )  # fmt: skip

    def _population(self, people: LookaheadTable) -> LevelKPopulation:
        name = self.respond_below or people.names[min(1, len(people.names) - 1)]
        values = people.crowd.X[:, people.columns([name])[0]]
        response = gain_response(people, self.columns, self.response_strength)
        who = values < np.median(values)
        population = LevelKPopulation(people.crowd, response, self.shares, who=who)
        if population.top < 2:
            raise ParameterError(
                f"only people of level 2 or more look ahead; the shares are {dict(self.shares)}"
            )
        return population

    def _believers(
        self, people: LookaheadTable, learner: LogisticLearner, right: LevelKPopulation, seed: int
    ) -> Iterator[tuple[str, float, int, LevelKPopulation]]:
        for factor in self.believed_penalties:
            believed = replace(learner, penalty=factor * learner.penalty)
            yield "penalty", factor, 0, replace(right, believed_learner=believed)
        for size in self.believed_rows:
            for number in self.seeds:
                rng = generator(seed, f"believed rows {size} {number}")
                chosen = np.sort(rng.permutation(people.crowd.n)[: min(size, people.crowd.n)])
                yield "rows", float(size), number, replace(right, believed_rows=chosen)


def _facts(
    run: Retraining, known: Retraining, population: LevelKPopulation, learner: LogisticLearner
) -> dict[str, Any]:
    crowd = population.answer(run.theta, learner)
    moves = crowd.X - population.base.X
    price = population.response.cost.price(population.base.X, crowd.X)
    gain = moves @ learner.slope(run.theta, crowd.d) - price
    who = population.who if population.who is not None else np.ones(crowd.n, dtype=bool)
    return {
        "status": run.status,
        "distance": float(np.linalg.norm(run.theta - known.theta)),
        "gain": float(gain[who].mean()),
        "risk": float(run.risks[-1]),
        "measured": run.measured.rate,
    }
