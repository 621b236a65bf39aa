"""Figures 2, 3 and 5: one column, reported at will by a collective or replaced by noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.dynamics.collective.collective import Collective
from countermove.dynamics.collective.coordination import compare
from countermove.dynamics.collective.selfish import SelfishPoint
from countermove.dynamics.collective.utilities import LossUtility, PenalisedLossUtility
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners import LogisticLearner
from countermove.errors import ParameterError
from countermove.experiments._drawing import DOTTED, OTHER, coloured, marked
from countermove.experiments.lookahead.people import (
    LookaheadExperiment,
    LookaheadTable,
    accuracy,
    chosen,
    moved_in_code,
    narrowed,
    platform,
    with_constant,
)
from countermove.experiments.lookahead.published import (
    alignment_in_code,
    climb_in_code,
    stackelberg_in_code,
)
from countermove.experiments.protocol import Measured, Row, mean_and_spread
from countermove.people import ActionSet
from countermove.randomness import generator

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

CONCAVITY_POINTS = 5
"""Points between selfish and best strategy at which concavity is looked at."""
STRIDE = 0.01
"""Members move so far, in deviations, before a refit: the stable point of patient members."""


@dataclass(frozen=True)
class CoordinationExperiment(LookaheadExperiment):
    r"""Figure 2: columns × penalties :math:`\lambda` of :math:`u = \ell - \lambda|\theta|^2`.

    Selfish members make the column useless; a collective can also make it a copy of the model's
    own score, which shrinks the model. How far depends on how far the column may be moved: the
    benefit grows to :math:`\lambda|\theta^*|^2`, which no strategy attains.
    """

    columns: Sequence[str] = ()
    penalties: Sequence[float] = tuple(np.linspace(0.0, 1.0, 10).tolist())
    dropped: Sequence[str] = ()
    reach: float = 1.0
    copies: Sequence[float] = (1.0, 10.0, 100.0)
    max_steps: int = 20
    published: bool = False

    def __post_init__(self) -> None:
        if not self.reach > 0.0 or not self.penalties:
            raise ParameterError(
                "a collective needs at least one penalty and a reach > 0 (nothing is best where "
                f"moves are unbounded); got {list(self.penalties)} and {self.reach}"
            )

    def places(self, given: LookaheadTable) -> tuple[str, ...]:
        """Return the columns."""
        return _names(self, given)

    def rows_at(self, place: str, seed: int, given: LookaheadTable) -> Iterator[Row]:
        """Yield one row per penalty of a column."""
        rows = self._published if self.published else self._exact
        return rows(given, narrowed(given, self.dropped), place)

    def _exact(self, people: LookaheadTable, narrow: LookaheadTable, name: str) -> Iterator[Row]:
        column, learner = narrow.columns([name])[0], LogisticLearner()
        made = self._collective(narrow.crowd, column, learner)
        # The members' own slope does not read the penalty: one stable point serves them all.
        rest = made.selfish_strategy(stride=STRIDE)
        copies = {factor: _copied(narrow.crowd, column, learner, factor) for factor in self.copies}
        start = rest.point.eta
        for penalty in self.penalties:
            problem = replace(made, utility=PenalisedLossUtility(penalty=penalty)).problem
            selfish = replace(rest, point=problem.at(rest.point.eta, rest.point.theta))
            best = problem.maximise(start, max_steps=self.max_steps, tolerance=1e-4, strict=False)
            start = best.eta
            found = compare(problem, best, selfish, CONCAVITY_POINTS)
            length = float(selfish.point.theta @ selfish.point.theta)
            bound = found.theorem_12.value
            yield {
                "column": name,
                "moved": name,
                "penalty": penalty,
                "selfish_utility": selfish.point.value,
                "best_utility": best.value,
                "benefit": found.benefit,
                "benefit_supremum": penalty * length,
                **{
                    f"benefit_copy_{factor:g}": risk - penalty * square - selfish.point.value
                    for factor, (risk, square) in copies.items()
                },
                "alignment": found.alignment,
                "steering": float(np.sum(problem.steered(selfish.point) ** 2)),
                "theorem_12": bound if np.isfinite(bound) else np.nan,
                "theorem_12_kind": found.theorem_12.kind,
                "settled": best.converged,
            }

    def _published(
        self, people: LookaheadTable, narrow: LookaheadTable, name: str
    ) -> Iterator[Row]:
        moved, table = moved_in_code(name, people, narrow), with_constant(narrow)
        column, learner = table.names.index(moved), LogisticLearner(intercept=False)
        made = replace(self._collective(table.crowd, column, learner), allow_constant=True)
        rest = made.selfish_strategy(stride=STRIDE)
        for place, penalty in enumerate(self.penalties):
            # The code changes its rows in place: only the first penalty starts from the people.
            begun = table.crowd if place == 0 else rest.point.whole
            best = stackelberg_in_code(begun, column, penalty)
            selfish = _value(rest, learner, penalty)
            yield {
                "column": name,
                "moved": moved,
                "penalty": penalty,
                "selfish_utility": selfish,
                "best_utility": best,
                "benefit": best - selfish,
                "alignment": alignment_in_code(rest.point.whole, rest.point.theta, penalty),
            }

    def _collective(self, crowd: Crowd, column: int, learner: LogisticLearner) -> Collective:
        reach = np.full(crowd.d, self.reach)
        return Collective(
            crowd,
            PenalisedLossUtility(),
            learner,
            columns=(column,),
            actions=ActionSet(lower=-reach, upper=reach),
            allow_constant=self.published,
        )

    def draw(self, found: Measured, means: pd.DataFrame) -> Figure:
        """Draw the benefit and its supremum over the penalty, and the alignment beside it."""
        from plotly.subplots import make_subplots

        alignment = "alignment, as published" if "steering" not in found.cells else "alignment Φ"
        figure = make_subplots(
            rows=1, cols=2, subplot_titles=("benefit of coordination", alignment)
        )
        for name, part, colour in coloured(found.cells, "moved"):
            figure.add_trace(marked(part, "penalty", "benefit", str(name), colour), row=1, col=1)
            if "benefit_supremum" in part:
                limit = marked(
                    part, "penalty", "benefit_supremum", f"{name}: supremum", colour, **DOTTED
                )
                figure.add_trace(limit, row=1, col=1)
            turned = marked(part, "penalty", "alignment", str(name), colour, showlegend=False)
            figure.add_trace(turned, row=1, col=2)
        return figure.update_xaxes(title="weight of the model's squared length")


def _value(rest: SelfishPoint, learner: LogisticLearner, penalty: float) -> float:
    theta = rest.point.theta
    return learner.risk(theta, rest.point.whole) - penalty * float(theta @ theta)


def _copied(
    crowd: Crowd, column: int, learner: LogisticLearner, factor: float
) -> tuple[float, float]:
    """Return loss and squared length once the column holds ``factor`` times the others' score."""
    others = [j for j in range(crowd.d) if j != column]
    without = Crowd(crowd.X[:, others], crowd.y, crowd.weight)
    score = learner.scores(learner.fit(without), without.X)
    X = crowd.X.copy()
    X[:, column] = factor * score
    moved = crowd.moved(X)
    # Nothing is learnt from a copy of what is known: the fit is flat along one direction, and
    # the learner takes the shortest of the models that fit alike.
    theta = _shortest(learner.fit(without), column, factor)
    return learner.risk(theta, moved), float(theta @ theta)


def _shortest(theta: Floats, column: int, factor: float) -> Floats:
    r"""Return the shortest model of score :math:`(1 - cM)\,\theta_{-j}\cdot x + c\,x_j`."""
    square = float(theta @ theta)
    weight = factor * square / (1.0 + factor**2 * square)
    return np.insert((1.0 - weight * factor) * theta, column, weight)


@dataclass(frozen=True)
class SizeExperiment(LookaheadExperiment):
    r"""Figure 3: columns × sizes × draws of the members, with :math:`u = \ell`.

    Members report one column so that the model fits *them* badly. A few of them move against a
    model that stays; many make the column useless, no more.
    """

    columns: Sequence[str] = ()
    participation: Sequence[float] = tuple(np.linspace(0.01, 0.99, 10).tolist())
    seeds: Sequence[int] = (0,)
    reach: float = 2.5  # as far as 250 steps of 0.01, the paper's search, could
    dropped: Sequence[str] = ()
    max_steps: int = 30
    tolerance: float = 1e-4
    published: bool = False

    def __post_init__(self) -> None:
        wrong = [share for share in self.participation if not 0.0 < share <= 1.0]
        if wrong or not self.reach > 0.0 or not self.seeds:
            raise ParameterError(
                "participation lies in (0, 1], the reach is > 0 (nothing is best where moves are "
                "unbounded), and there is a seed; got "
                f"{list(self.participation)}, {self.reach} and {list(self.seeds)}"
            )

    def places(self, given: LookaheadTable) -> tuple[str, ...]:
        """Return the columns."""
        return _names(self, given)

    def rows_at(self, place: str, seed: int, given: LookaheadTable) -> Iterator[Row]:
        """Yield one row per size and draw of a column."""
        rows = self._published if self.published else self._exact
        return rows(given, narrowed(given, self.dropped), place, seed)

    def means(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return means over draws, and their standard deviations."""
        values = [name for name in ("utility", "gain", "gain_of_all") if name in cells]
        return mean_and_spread(cells, ["column", "moved", "participation"], values)

    def _exact(
        self, people: LookaheadTable, narrow: LookaheadTable, name: str, seed: int
    ) -> Iterator[Row]:
        crowd, column, learner = narrow.crowd, narrow.columns([name])[0], LogisticLearner()
        base, limit = learner.fit(crowd), gain_of_all(crowd, column, learner)
        reach = np.full(crowd.d, self.reach)
        for share, number, rows in self._draws(crowd, seed):
            sized = Collective(
                crowd,
                LossUtility(),
                learner,
                columns=(column,),
                actions=ActionSet(lower=-reach, upper=reach),
                participants=rows,
            )
            # What the strategy adds to the utility of the *same* members; the utility alone depends
            # on whom the draw took (a few people have losses near 100).
            before = float(np.mean(learner.losses(base, crowd.of_rows(rows))))
            best = sized.optimal_strategy(
                max_steps=self.max_steps, tolerance=self.tolerance, strict=False
            )
            yield {
                "column": name,
                "moved": name,
                "participation": share,
                "draw": number,
                "utility_before": before,
                "utility": best.value,
                "gain": best.value - before,
                "gain_of_all": limit,
                "settled": best.converged,
            }

    def _published(
        self, people: LookaheadTable, narrow: LookaheadTable, name: str, seed: int
    ) -> Iterator[Row]:
        moved, table = moved_in_code(name, people, narrow), with_constant(narrow)
        column = table.names.index(moved)
        for share, number, rows in self._draws(table.crowd, seed):
            utility = climb_in_code(table.crowd, column, rows)
            yield {
                "column": name,
                "moved": moved,
                "participation": share,
                "draw": number,
                "utility": utility,
            }

    def _draws(self, crowd: Crowd, seed: int) -> Iterator[tuple[float, int, NDArray[np.intp]]]:
        for share in self.participation:
            for number in self.seeds:
                rng = generator(seed, f"members {share} {number}")
                size = max(1, int(share * crowd.n))
                yield share, number, np.sort(rng.choice(crowd.n, size, replace=False))

    def draw(self, found: Measured, means: pd.DataFrame) -> Figure:
        """Draw the gain (the utility, as published) over the size, on a logarithmic scale."""
        from plotly.graph_objects import Figure

        value = "gain" if "gain" in means else "utility"
        figure = Figure()
        for name, part, colour in coloured(means, "moved"):
            trace = marked(part, "participation", value, str(name), colour)
            figure.add_trace(
                trace.update(error_y={"array": part[f"{value}_sd"].fillna(0.0).tolist()})
            )
            if "gain_of_all" in part:
                limit = marked(
                    part, "participation", "gain_of_all", f"{name}: everybody", colour, **DOTTED
                )
                figure.add_trace(limit)
        titles = {"gain": "gain of a member's loss", "utility": "members' loss"}
        figure.update_yaxes(title=titles[value], type="log" if value == "gain" else "linear")
        return figure.update_xaxes(title="participation")


def gain_of_all(crowd: Crowd, column: int, learner: LogisticLearner) -> float:
    """Return the loss without a column less the loss with it."""
    without = Crowd(np.delete(crowd.X, column, axis=1), crowd.y, crowd.weight)
    return learner.risk(learner.fit(without), without) - learner.risk(learner.fit(crowd), crowd)


@dataclass(frozen=True)
class ImportanceExperiment(LookaheadExperiment):
    """Figure 5: the accuracy lost when a column is replaced by noise, columns × splits."""

    columns: Sequence[str] = ()
    seeds: Sequence[int] = tuple(range(10))
    test_share: float = 0.2

    def __post_init__(self) -> None:
        if not 0.0 < self.test_share < 1.0:
            raise ParameterError(f"the share of test people is in (0, 1), got {self.test_share}")

    def places(self, given: LookaheadTable) -> Sequence[int]:
        """Return the splits."""
        return self.seeds

    def means(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return mean drops over splits, the largest first."""
        found = mean_and_spread(cells, ["column"], ["drop", "accuracy", "accuracy_without"])
        return found.sort_values("drop", ascending=False, ignore_index=True)

    def rows_at(self, place: int, seed: int, given: LookaheadTable) -> Iterator[Row]:
        """Yield one row per column: accuracy with it, without it, and the drop."""
        rng = generator(seed, f"importance {place}")
        crowd, learner = given.crowd, platform(given, penalise_intercept=False)
        order = rng.permutation(crowd.n)
        held = max(1, round(self.test_share * crowd.n))
        test, train = crowd.of_rows(order[:held]), crowd.of_rows(order[held:])
        base = learner.fit(train)
        before = _judged(learner, base, test)
        for name in self.columns or given.names:
            j = given.columns([name])[0]
            noisy_train, noisy_test = (_replaced(part, j, rng) for part in (train, test))
            after = _judged(learner, learner.fit(noisy_train, start=base), noisy_test)
            yield {
                "seed": place,
                "column": name,
                "accuracy": before,
                "accuracy_without": after,
                "drop": before - after,
            }

    def draw(self, found: Measured, means: pd.DataFrame) -> Figure:
        """Draw the drops, with one standard deviation."""
        from plotly.graph_objects import Bar, Figure

        bars = Bar(
            x=means["drop"].tolist(), y=means["column"].tolist(), orientation="h",
            marker_color=OTHER, error_x={"array": means["drop_sd"].fillna(0.0).tolist()},
        )  # fmt: skip
        figure = Figure([bars]).update_yaxes(autorange="reversed")
        return figure.update_xaxes(title="test accuracy lost when the column is noise")


def _replaced(crowd: Crowd, column: int, rng: np.random.Generator) -> Crowd:
    X = crowd.X.copy()
    X[:, column] = rng.normal(size=crowd.n)
    return crowd.moved(X)


def _judged(learner: LogisticLearner, theta: Floats, crowd: Crowd) -> float:
    return accuracy(learner.scores(theta, crowd.X), crowd.y)


def _names(
    experiment: CoordinationExperiment | SizeExperiment, people: LookaheadTable
) -> tuple[str, ...]:
    # The published code has numbers of columns where the paper has names.
    among = people if experiment.published else narrowed(people, experiment.dropped)
    return chosen(experiment.columns, among)
