r"""Figure 3: what a collective against the learner gains, by its size.

:math:`u = \ell`: members report one column so that the model fits *them* badly. A few
of them move against a model that stays; many make the column useless, no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.dynamics.collective.collective import Collective
from countermove.dynamics.collective.utilities import LossUtility
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners import LogisticLearner
from countermove.errors import ParameterError
from countermove.execution import Mapper
from countermove.experiments.lookahead.experiment import LookaheadExperiment
from countermove.experiments.lookahead.figures import size_figure
from countermove.experiments.lookahead.people import (
    LookaheadTable,
    chosen,
    moved_in_code,
    narrowed,
    with_constant,
)
from countermove.experiments.protocol import mean_and_spread
from countermove.people import ActionSet
from countermove.randomness import generator

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


@dataclass(frozen=True)
class SizeExperiment(LookaheadExperiment):
    """Columns × sizes × draws of the members.

    Parameters
    ----------
    columns
        Those reported at will, one at a time, under their right names; none: all that people
        can change.
    participation
        Shares of everybody, in (0, 1].
    seeds
        Draws of the members.
    reach
        How far a member may move the column, in deviations: as far as 250 steps of 0.01, the
        paper's search, could.
    dropped
        Columns left out.
    max_steps, tolerance
        Of the search for the best strategy.
    published
        Move the columns the published code moves, with its learner of 100 steps and its search.
    """

    columns: Sequence[str] = ()
    participation: Sequence[float] = tuple(np.linspace(0.01, 0.99, 10).tolist())
    seeds: Sequence[int] = (0,)
    reach: float = 2.5
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

    def cells(
        self, people: LookaheadTable, seed: int, mapper: Mapper | None = None
    ) -> pd.DataFrame:
        """Return one row per column, size and draw.

        ``gain`` is what the strategy adds to the utility of the *same* members; the utility alone
        depends on whom the draw took (a few people have losses near 100). ``gain_of_all`` is the
        gain of everybody together in closed form: the loss without the column less the loss.
        """
        narrow = narrowed(people, self.dropped)
        names = chosen(self.columns, people if self.published else narrow)
        rows = self._published if self.published else self._exact
        return pd.DataFrame([row for name in names for row in rows(people, narrow, name, seed)])

    def means(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return means over draws, and their standard deviations."""
        values = [name for name in ("utility", "gain", "gain_of_all") if name in cells]
        return mean_and_spread(cells, ["column", "moved", "participation"], values)

    def _exact(
        self, people: LookaheadTable, narrow: LookaheadTable, name: str, seed: int
    ) -> Iterator[dict[str, Any]]:
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
    ) -> Iterator[dict[str, Any]]:
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

    def draw(self, cells: pd.DataFrame, means: pd.DataFrame) -> Figure:
        """Draw the experiment, without title and legend."""
        return size_figure(cells, means)


def gain_of_all(crowd: Crowd, column: int, learner: LogisticLearner) -> float:
    """Return the loss without a column less the loss with it."""
    without = Crowd(np.delete(crowd.X, column, axis=1), crowd.y, crowd.weight)
    return learner.risk(learner.fit(without), without) - learner.risk(learner.fit(crowd), crowd)


# Figure 3 as the paper's code computes it: a learner of 100 steps, unrolled,
#     theta_{t+1} = theta_t - a_t grad risk(theta_t), theta_0 = 0, a_t = max(0.001, 1/(t+1)).
# The gradient goes backwards through all steps; nothing here has converged.

RATES = np.maximum(0.001, 1.0 / np.arange(1, 101))
"""The learner's steps."""
CLIMBS, LENGTH = 25, 0.1
"""The code climbs 250 Adam steps of 0.01. A tenth as many of ten times the length come within a few
hundredths of its archived utilities; all 250 were not tried."""


def descent(crowd: Crowd) -> list[Floats]:
    """Return all models of the learner's 100 steps."""
    path = [np.zeros(crowd.d)]
    for rate in RATES:
        residual = LogisticLearner.chances(crowd.X @ path[-1]) - crowd.y
        path.append(path[-1] - rate * (residual @ crowd.X) / crowd.n)
    return path


def utility_and_slope(crowd: Crowd, column: int, rows: NDArray[np.intp]) -> tuple[float, Floats]:
    """Return the members' mean loss at the last model, and its slope in their column."""
    learner, path = LogisticLearner(intercept=False), descent(crowd)
    members = crowd.of_rows(rows)
    theta = path[-1]
    own, _ = learner.loss_slopes(theta, members)
    slope = own[:, column] / len(rows)
    adjoint: Floats = members.mean(learner.row_gradients(theta, members))
    for rate, before in zip(RATES[::-1], path[-2::-1], strict=True):
        chance = LogisticLearner.chances(crowd.X @ before)
        first, second = chance - crowd.y, chance * (1.0 - chance)
        along = crowd.X @ adjoint
        bent = second * along
        pull = first[rows] * adjoint[column] + bent[rows] * before[column]
        slope -= rate * pull / crowd.n
        adjoint = adjoint - rate * (bent @ crowd.X) / crowd.n
    return float(np.mean(learner.losses(theta, members))), slope


def climb_in_code(crowd: Crowd, column: int, rows: NDArray[np.intp]) -> float:
    """Return the members' utility after the code's search, with Adam."""
    X = crowd.X.copy()
    first, second = np.zeros(len(rows)), np.zeros(len(rows))
    for step in range(1, CLIMBS + 1):
        _, slope = utility_and_slope(crowd.moved(X), column, rows)
        first = 0.9 * first + 0.1 * slope
        second = 0.999 * second + 0.001 * slope**2
        mean, spread = first / (1.0 - 0.9**step), np.sqrt(second / (1.0 - 0.999**step))
        X[rows, column] += LENGTH * mean / (spread + 1e-8)
    learner, after = LogisticLearner(intercept=False), crowd.moved(X)
    return float(np.mean(learner.losses(descent(after)[-1], after.of_rows(rows))))
