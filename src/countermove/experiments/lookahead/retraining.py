"""Retraining on people who look ahead: Figure 1, Theorem 3 and the paper's open question.

In Figure 1 the exact learner shows the dynamics; the published one shows what the paper plots,
which is the tolerance of its fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import isnan
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from countermove._types import Floats, Mask
from countermove.dynamics.learners import LogisticLearner
from countermove.dynamics.retraining.loop import Retraining, retrain_until_stable
from countermove.dynamics.retraining.populations import LevelKPopulation
from countermove.dynamics.retraining.stability import linearise, promise, settle
from countermove.errors import ParameterError
from countermove.experiments._drawing import DARK, OTHER, PUBLISHED, RIGHT, coloured, marked
from countermove.experiments.lookahead.people import (
    LookaheadExperiment,
    LookaheadTable,
    Solver,
    accuracy,
    gain_response,
    platform,
    share_words,
)
from countermove.experiments.lookahead.published import PublishedDescent
from countermove.experiments.protocol import Measured, Row, mean_and_spread, records
from countermove.randomness import generator

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Mixture = Mapping[int, float]
MIXTURES: tuple[Mixture, ...] = ({1: 0.9, 2: 0.1}, {1: 0.5, 2: 0.5}, {1: 0.1, 2: 0.9})
"""The paper's."""


@dataclass(frozen=True)
class RetrainingExperiment(LookaheadExperiment):
    r"""Figure 1: mixtures × seeds × rounds; people move by :math:`\epsilon w_S`."""

    mixtures: Sequence[Mixture] = field(default=MIXTURES)
    response_strength: float = 0.5
    columns: Sequence[str] = ()
    rounds: int = 25
    seeds: Sequence[int] = tuple(range(10))
    solver: Solver = "exact"
    # Everybody has one level at random, as in the paper, or counts at every level with its share.
    groups: Literal["drawn", "weights"] = "drawn"
    # Fitted to the people before any deployment, or where the published descent stops.
    start: Literal["fitted", "published"] | None = None
    penalty: float | None = None
    penalise_intercept: bool = True

    def given(self, source: LookaheadTable, seed: int) -> tuple[LookaheadTable, Floats]:
        """Return the people and the first model."""
        return source, self._start(source)

    def places(self, given: Any) -> list[tuple[Mixture, int]]:
        """Return mixtures and seeds; one seed is enough where everybody counts at every level."""
        return list(product(self.mixtures, self.seeds[: None if self.groups == "drawn" else 1]))

    def rows_at(
        self, place: tuple[Mixture, int], seed: int, given: tuple[LookaheadTable, Floats]
    ) -> list[Row]:
        """Return one row per round, with the distance between models in a row."""
        (shares, number), (people, start) = place, given
        learner = platform(people, self.solver, self.penalty, self.penalise_intercept)
        response = gain_response(people, self.columns, self.response_strength)
        moved = people.columns(self.columns or people.changeable)
        population = (
            LevelKPopulation.drawn(
                people.crowd, response, shares, generator(seed, f"levels {number}")
            )
            if self.groups == "drawn"
            else LevelKPopulation(people.crowd, response, shares)
        )
        run = retrain_until_stable(
            learner, population, start, rounds=self.rounds, tolerance=0.0,
            on_divergence="report", theory=False,
        )  # fmt: skip
        table = run.table()[["round", "gap", "risk"]]
        # What the paper plots: over the length of the first model on the columns people change.
        scaled = table["gap"] / float(np.linalg.norm(start[list(moved)]))
        named = table.assign(gap_scaled=scaled, status=run.status, mixture=share_words(shares))
        return records(named.assign(seed=number))

    def means(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return averages over seeds per mixture and round, with standard deviations."""
        kept = cells.dropna(subset=["gap"])
        return mean_and_spread(kept, ["mixture", "round"], ["gap", "gap_scaled", "risk"])

    def _start(self, people: LookaheadTable) -> Floats:
        learner = platform(people, self.solver, self.penalty, self.penalise_intercept)
        if (self.start or {"exact": "fitted"}.get(self.solver, "published")) == "published":
            return PublishedDescent(learner.penalty).fit(people.crowd)
        return learner.fit(people.crowd)

    def draw(self, found: Measured, means: pd.DataFrame) -> Figure:
        """Draw the gaps over rounds on a logarithmic scale, with one standard deviation."""
        from plotly.graph_objects import Figure

        figure = Figure()
        for mixture, part, colour in coloured(means[means["gap_scaled"] > 0.0], "mixture"):
            trace = marked(part, "round", "gap_scaled", str(mixture), colour)
            spread = part["gap_scaled_sd"].fillna(0.0)
            # A logarithmic axis has no room for a mean less its deviation where that is below 0.
            below = spread.clip(upper=0.9 * part["gap_scaled"])
            trace.error_y = {
                "array": spread.tolist(), "arrayminus": below.tolist(), "symmetric": False,
                "thickness": 1,
            }  # fmt: skip
            figure.add_trace(trace)
        figure.update_yaxes(
            type="log", exponentformat="power", title="gap over length of the first model",
        )  # fmt: skip
        return figure.update_xaxes(title="round").update_layout(height=600)


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
    """Theorem 3: response strengths × mixtures, with exact fits and exact shares."""

    mixtures: Sequence[Mixture] | None = None
    response_strengths: Sequence[float] = (10.0, 50.0)
    columns: Sequence[str] = ()
    respond_below: str | None = None  # none: the second column that divides people (paper: age)
    rounds: int = 40
    penalty: float | None = None
    penalise_intercept: bool = False

    def places(self, given: LookaheadTable) -> Sequence[float]:
        """Return the response strengths."""
        return self.response_strengths

    def rows_at(self, place: float, seed: int, given: LookaheadTable) -> Iterator[Row]:
        """Yield one row per mixture; nothing is drawn."""
        learner = platform(given, "exact", self.penalty, self.penalise_intercept)
        alone = self._population(given, place, {1: 1.0})
        path = self._run(learner, alone).thetas
        holds = promise(learner, alone, path).holds
        # Where level 1 alternates, its stable model lies between the last two.
        home = settle(learner, alone, path[-2:].mean(axis=0))
        values = np.linalg.eigvals(linearise(learner, alone, home).matrix)
        for shares in self.mixtures or RATE_MIXTURES:
            population = self._population(given, place, shares)
            run = self._run(learner, population)
            # Theorem 3's sum with the eigenvalues of level 1 at its stable model, above 1 where
            # retraining leaves it; none with people of level 0, whose stable model is another.
            sums = [sum(share * value**k for k, share in shares.items() if k) for value in values]
            predicted = None if shares.get(0) else float(np.abs(sums).max())
            scores = learner.scores(run.theta, given.crowd.X)
            yield {
                "response_strength": place,
                "mixture": share_words(shares),
                "status": run.status,
                "rounds": len(run.gaps),
                "measured": run.measured.rate,
                "predicted": predicted,
                "radius": linearise(learner, population, run.theta).radius if run.stable else None,
                "distance": float(np.linalg.norm(run.theta - home)),
                "risk": float(run.risks[-1]),
                "accuracy_before": accuracy(scores, given.crowd.y),
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
        who = _below_median(people, self.respond_below)
        return LevelKPopulation(people.crowd, response, shares, who=who)

    def draw(self, found: Measured, means: pd.DataFrame) -> Figure:
        """Draw measured and predicted rates, and how far stable models lie from level 1's."""
        from plotly.graph_objects import Bar
        from plotly.subplots import make_subplots

        strengths = list(dict.fromkeys(means["response_strength"]))
        figure = make_subplots(
            rows=2, cols=len(strengths), shared_xaxes=True, vertical_spacing=0.08,
            subplot_titles=[f"response strength {value:g}" for value in strengths],
        )  # fmt: skip
        for column, strength in enumerate(strengths, start=1):
            part = means[means["response_strength"] == strength]
            where = part["mixture"].tolist()
            for name, label, colour in (
                ("measured", "above: last ratio of gaps", DARK),
                ("predicted", "predicted from level 1 (above 1: unstable)", OTHER),
                ("radius", "spectral radius at the stable model", RIGHT),
            ):
                bar = Bar(
                    x=where, y=_numbers(part[name]), name=label, legendgroup=label,
                    showlegend=column == 1, marker_color=colour, hovertext=part["status"].tolist(),
                )  # fmt: skip
                figure.add_trace(bar, row=1, col=column)
            apart = Bar(
                x=where, y=_numbers(part["distance"]),
                name="below: distance from level 1's stable model",
                legendgroup="apart", showlegend=column == 1, marker_color=PUBLISHED,
                hovertext=part["status"].tolist(),
            )  # fmt: skip
            figure.add_trace(apart, row=2, col=column)
        figure.update_yaxes(title="rate a round", row=1, col=1)
        figure.update_yaxes(title="distance", row=2, col=1)
        return figure.update_layout(height=750, barmode="group")


# The paper's open question: people who look ahead with a wrong or an estimated learner. Level 2 and
# above imagine the next model. They may think of another penalty than the platform's, or know some
# of the rows only; the model that becomes stable then differs.


@dataclass(frozen=True)
class BeliefsExperiment(LookaheadExperiment):
    """Wrong penalties, and samples of rows, against people who know the learner."""

    shares: Mapping[int, float] = field(default_factory=lambda: {2: 1.0})
    response_strength: float = 10.0
    columns: Sequence[str] = ()
    respond_below: str | None = None
    believed_penalties: Sequence[float] = (10.0, 100.0, 1000.0)  # multiples of the true one
    believed_rows: Sequence[int] = (1_000, 3_000, 10_000)
    seeds: Sequence[int] = tuple(range(5))
    rounds: int = 100

    def given(self, source: LookaheadTable, seed: int) -> tuple[LookaheadTable, Retraining]:
        """Return the people, and the retraining of people who know the learner."""
        return source, self._run(self._learner(source), self._population(source))

    def places(self, given: Any) -> list[tuple[str, float, int]]:
        """Return beliefs: the right one, wrong penalties, samples of rows by seed."""
        return [
            ("right", 1.0, 0),
            *(("penalty", factor, 0) for factor in self.believed_penalties),
            *(("rows", float(size), seed) for size in self.believed_rows for seed in self.seeds),
        ]

    def rows_at(
        self, place: tuple[str, float, int], seed: int, given: tuple[LookaheadTable, Retraining]
    ) -> list[Row]:
        """Return one row: how far the stable model is from the right one, what people gain."""
        (belief, value, number), (people, known) = place, given
        learner, population = self._learner(people), self._population(people)
        if belief == "penalty":
            believed = replace(learner, penalty=value * learner.penalty)
            population = replace(population, believed_learner=believed)
        if belief == "rows":
            rng, n = generator(seed, f"believed rows {int(value)} {number}"), people.crowd.n
            rows = np.sort(rng.permutation(n)[: min(int(value), n)])
            population = replace(population, believed_rows=rows)
        run = known if belief == "right" else self._run(learner, population)
        found = _facts(run, known, population, learner)
        return [{"belief": belief, "value": value, "seed": number, **found}]

    def means(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return averages over seeds per belief."""
        return mean_and_spread(cells, ["belief", "value"], ["distance", "gain", "risk", "measured"])

    def _learner(self, people: LookaheadTable) -> LogisticLearner:
        return platform(people, penalise_intercept=False)

    def _run(self, learner: LogisticLearner, population: LevelKPopulation) -> Retraining:
        return retrain_until_stable(
            learner, population, rounds=self.rounds, tolerance=1e-12, on_divergence="report",
            theory=False,
        )  # fmt: skip

    def _population(self, people: LookaheadTable) -> LevelKPopulation:
        response = gain_response(people, self.columns, self.response_strength)
        who = _below_median(people, self.respond_below)
        population = LevelKPopulation(people.crowd, response, self.shares, who=who)
        if population.top < 2:
            raise ParameterError(
                f"only people of level 2 or more look ahead; the shares are {dict(self.shares)}"
            )
        return population

    def draw(self, found: Measured, means: pd.DataFrame) -> Figure:
        """Draw how far wrong beliefs take the stable model, and what people gain."""
        from plotly.graph_objects import Bar
        from plotly.subplots import make_subplots

        names = [
            "right" if belief == "right"
            else f"{value:g} × penalty" if belief == "penalty" else f"{value:g} rows"
            for belief, value in zip(means["belief"], means["value"], strict=True)
        ]  # fmt: skip
        titles = "distance from the stable model of people who know", "gain of a person"
        figure = make_subplots(rows=1, cols=2, subplot_titles=titles)
        for column, (name, colour) in enumerate((("distance", DARK), ("gain", RIGHT)), start=1):
            bar = Bar(
                x=names, y=_numbers(means[name]), marker_color=colour, showlegend=False,
                error_y={"array": means[f"{name}_sd"].fillna(0.0).tolist()},
            )  # fmt: skip
            figure.add_trace(bar, row=1, col=column)
        return figure


def _facts(
    run: Retraining, known: Retraining, population: LevelKPopulation, learner: LogisticLearner
) -> Row:
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


FEW = 0.05
"""A share of people below which a cut divides nobody off."""


def _below_median(people: LookaheadTable, column: str | None) -> Mask:
    """Return who responds: people below the median of a column, which must divide them."""
    # By default the second column, the paper's age, or the first after it that divides people: of
    # a binary column nobody, or next to everybody, may lie below the median.
    order = (*people.names[1:], people.names[0]) if column is None else (column,)
    for name in order:
        values = people.crowd.X[:, people.columns([name])[0]]
        below: Mask = values < np.median(values)
        if FEW <= below.mean() <= 1.0 - FEW:
            return below
    where = "every column" if column is None else repr(column)
    raise ParameterError(
        f"the median of {where} divides nobody off (it has few values), so that nobody, or "
        "everybody, would respond; give respond_below a column with more values"
    )


def _numbers(values: pd.Series) -> list[float | None]:
    return [None if isnan(value) else float(value) for value in values.astype(float)]
