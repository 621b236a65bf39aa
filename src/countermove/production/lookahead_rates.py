r"""Theorem 3 where it can be seen: only part of the people respond, so the model itself moves.

Where everybody moves alike the intercept absorbs it in one round. Else retraining contracts by
:math:`|\sum_k \alpha_k \rho^k|` a round, :math:`\rho` the leading eigenvalue of level 1, and the
stable model is one for all mixtures without level 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove.dynamics.contraction import linearise, promise, settle
from countermove.dynamics.learners import LogisticLearner
from countermove.dynamics.level_k import LevelKPopulation
from countermove.dynamics.retraining import Retraining, retrain_until_stable
from countermove.production.lookahead import (
    accuracy,
    gain_response,
    platform,
    share_words,
)
from countermove.production.lookahead_table import LookaheadTable

Mixture = Mapping[int, float]
MIXTURES: tuple[Mixture, ...] = (
    {1: 1.0}, {1: 0.9, 2: 0.1}, {1: 0.5, 2: 0.5}, {1: 0.1, 2: 0.9}, {2: 1.0}, {3: 1.0},
    {0: 0.3, 1: 0.7}, {0: 0.3, 1: 0.35, 2: 0.35},
)  # fmt: skip
"""Levels 1 and 2 as in the paper, deeper thinkers, and mixtures with people of level 0."""


@dataclass(frozen=True)
class RatesExperiment:
    r"""Response strengths × mixtures, with exact fits and exact shares.

    Parameters
    ----------
    mixtures
        Shares by level.
    response_strengths
        :math:`\epsilon`: people move by :math:`\epsilon w_S`.
    columns
        S; none: those of the table that can change.
    respond_below
        The column below whose median people respond; none: the second column (the paper's age).
    rounds
        Most models trained after the first.
    penalty, penalise_intercept
        Of the learner; none: 1/n.
    """

    mixtures: Sequence[Mixture] = field(default=MIXTURES)
    response_strengths: Sequence[float] = (10.0, 50.0)
    columns: Sequence[str] = ()
    respond_below: str | None = None
    rounds: int = 40
    penalty: float | None = None
    penalise_intercept: bool = False

    def cells(self, people: LookaheadTable, seed: int) -> pd.DataFrame:
        """Return one row per strength and mixture; nothing is drawn.

        ``measured``: the last ratio of gaps; ``radius``: spectral radius of retraining where it
        came to rest; ``predicted``: Theorem 3's sum with the eigenvalues of level 1 at its stable
        model, above 1 where retraining leaves it, none with people of level 0, whose stable model
        is another; ``distance``: of the last model from level 1's stable one; ``holds``: Theorem
        3's condition.
        """
        return pd.DataFrame(
            [
                {"response_strength": strength, **row}
                for strength in self.response_strengths
                for row in self._rows(people, strength)
            ]
        )

    def means(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return the cells: each is exact."""
        return cells

    def _rows(self, people: LookaheadTable, strength: float) -> Iterator[dict[str, Any]]:
        learner = platform(people, "exact", self.penalty, self.penalise_intercept)
        alone = self._population(people, strength, {1: 1.0})
        walked = self._run(learner, alone).thetas
        holds = promise(learner, alone, walked).holds
        # Where level 1 alternates, its stable model lies between the last two.
        home = settle(learner, alone, walked[-2:].mean(axis=0))
        values = np.linalg.eigvals(linearise(learner, alone, home).matrix)
        for shares in self.mixtures:
            population = self._population(people, strength, shares)
            run = self._run(learner, population)
            sums = [sum(share * value**k for k, share in shares.items() if k) for value in values]
            predicted = None if shares.get(0) else float(np.abs(sums).max())
            scores = learner.scores(run.theta, people.crowd.X)
            yield {
                "mixture": share_words(shares),
                "status": run.status,
                "rounds": len(run.gaps),
                "measured": run.measured.rate,
                "predicted": predicted,
                "radius": linearise(learner, population, run.theta).radius if run.stable else None,
                "distance": float(np.linalg.norm(run.theta - home)),
                "risk": float(run.risks[-1]),
                "accuracy_before": accuracy(scores, people.crowd.y),
                "holds": holds,
            }

    def _run(self, learner: LogisticLearner, population: LevelKPopulation) -> Retraining:
        return retrain_until_stable(
            learner, population, rounds=self.rounds, tolerance=1e-13, on_divergence="report",
            theory=False,
        )  # fmt: skip

    def _population(
        self, people: LookaheadTable, strength: float, shares: Mixture
    ) -> LevelKPopulation:
        response = gain_response(people, self.columns, strength)
        return LevelKPopulation(people.crowd, response, shares, who=self._who(people))

    def _who(self, people: LookaheadTable) -> NDArray[np.bool_]:
        name = self.respond_below or people.names[min(1, len(people.names) - 1)]
        values = people.crowd.X[:, people.columns([name])[0]]
        below: NDArray[np.bool_] = values < np.median(values)
        return below
