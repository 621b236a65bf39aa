"""Retraining on people who look ahead: Figure 1, Theorem 3 and the paper's open question.

In Figure 1 the exact learner shows the dynamics; the published one shows what the paper plots,
which is the tolerance of its fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.dynamics.learners import LogisticLearner
from countermove.dynamics.retraining.loop import Retraining, retrain_until_stable
from countermove.dynamics.retraining.populations import LevelKPopulation
from countermove.dynamics.retraining.stability import linearise, promise, settle
from countermove.errors import ParameterError
from countermove.execution import Mapper
from countermove.experiments.lookahead.experiment import LookaheadExperiment
from countermove.experiments.lookahead.figures import (
    beliefs_figure,
    rates_figure,
    retraining_figure,
)
from countermove.experiments.lookahead.people import (
    LookaheadTable,
    Solver,
    accuracy,
    gain_response,
    platform,
    share_words,
)
from countermove.experiments.lookahead.published_fits import PublishedDescent
from countermove.experiments.protocol import mean_and_spread
from countermove.randomness import generator

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Mixture = Mapping[int, float]
MIXTURES: tuple[Mixture, ...] = ({1: 0.9, 2: 0.1}, {1: 0.5, 2: 0.5}, {1: 0.1, 2: 0.9})
"""The paper's."""


@dataclass(frozen=True)
class RetrainingExperiment(LookaheadExperiment):
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

    def cells(
        self, people: LookaheadTable, seed: int, mapper: Mapper | None = None
    ) -> pd.DataFrame:
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

    def draw(self, cells: pd.DataFrame, means: pd.DataFrame) -> Figure:
        """Draw the experiment, without title and legend."""
        return retraining_figure(cells, means)


# Theorem 3 where it can be seen: only part of the people respond, so the model itself moves. Where
# everybody moves alike the intercept absorbs it in one round. Else retraining contracts by
# |sum_k alpha_k rho^k| a round, rho the leading eigenvalue of level 1, and the stable model is one
# for all mixtures without level 0.

RATE_MIXTURES: tuple[Mixture, ...] = (
    {1: 1.0}, {1: 0.9, 2: 0.1}, {1: 0.5, 2: 0.5}, {1: 0.1, 2: 0.9}, {2: 1.0}, {3: 1.0},
    {0: 0.3, 1: 0.7}, {0: 0.3, 1: 0.35, 2: 0.35},
)  # fmt: skip
"""Levels 1 and 2 as in the paper, deeper thinkers, and mixtures with people of level 0."""


@dataclass(frozen=True)
class RatesExperiment(LookaheadExperiment):
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

    mixtures: Sequence[Mixture] | None = None
    response_strengths: Sequence[float] = (10.0, 50.0)
    columns: Sequence[str] = ()
    respond_below: str | None = None
    rounds: int = 40
    penalty: float | None = None
    penalise_intercept: bool = False

    def cells(
        self, people: LookaheadTable, seed: int, mapper: Mapper | None = None
    ) -> pd.DataFrame:
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
        for shares in self.mixtures or RATE_MIXTURES:
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

    def draw(self, cells: pd.DataFrame, means: pd.DataFrame) -> Figure:
        """Draw the experiment, without title and legend."""
        return rates_figure(cells, means)


# The paper's open question: people who look ahead with a wrong or an estimated learner. Level 2 and
# above imagine the next model. They may think of another penalty than the platform's, or know some
# of the rows only; the model that becomes stable then differs.


@dataclass(frozen=True)
class BeliefsExperiment(LookaheadExperiment):
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

    def cells(
        self, people: LookaheadTable, seed: int, mapper: Mapper | None = None
    ) -> pd.DataFrame:
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

    def draw(self, cells: pd.DataFrame, means: pd.DataFrame) -> Figure:
        """Draw the experiment, without title and legend."""
        return beliefs_figure(cells, means)


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
