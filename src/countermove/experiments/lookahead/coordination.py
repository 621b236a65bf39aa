r"""Figure 2: the benefit of coordination as members care more about the model's length.

:math:`u = \ell - \lambda|\theta|^2`, one column reported at will. Selfish members make
the column useless; a collective can also make it a copy of the model's own score,
which shrinks the model. How far depends on how far the column may be moved: the
benefit grows to :math:`\lambda|\theta^*|^2`, which no strategy attains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from countermove._types import Floats
from countermove.dynamics.collective.collective import Collective
from countermove.dynamics.collective.coordination import compare
from countermove.dynamics.collective.selfish import SelfishPoint
from countermove.dynamics.collective.utilities import PenalisedLossUtility
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners import LogisticLearner
from countermove.errors import ParameterError
from countermove.execution import Mapper
from countermove.experiments.lookahead.experiment import LookaheadExperiment
from countermove.experiments.lookahead.figures import coordination_figure
from countermove.experiments.lookahead.people import (
    LookaheadTable,
    chosen,
    moved_in_code,
    narrowed,
    with_constant,
)
from countermove.people import ActionSet

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

CONCAVITY_POINTS = 5
"""Points between selfish and best strategy at which concavity is looked at."""
STRIDE = 0.01
"""Members move so far, in deviations, before a refit: the stable point of patient members."""


@dataclass(frozen=True)
class CoordinationExperiment(LookaheadExperiment):
    r"""Columns × penalties.

    Parameters
    ----------
    columns
        Those reported at will, one at a time, under their right names; none: all that people
        can change.
    penalties
        :math:`\lambda` in the members' utility.
    dropped
        Columns left out.
    reach
        How far a member may move the column, in deviations.
    copies
        Factors M of the strategy that reports M times the score of the other columns.
    max_steps
        Steps of the search for the best strategy, at each penalty.
    published
        Move the columns the published code moves, and compute what it computes: a learner that
        stops after 200 steps, and a gradient contracted over the wrong index.
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

    def cells(
        self, people: LookaheadTable, seed: int, mapper: Mapper | None = None
    ) -> pd.DataFrame:
        """Return one row per column and penalty (see `means`)."""
        narrow = narrowed(people, self.dropped)
        rows = self._published if self.published else self._exact
        names = chosen(self.columns, people if self.published else narrow)
        return pd.DataFrame([row for name in names for row in rows(people, narrow, name)])

    def means(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return the cells: nothing is drawn."""
        return cells

    def _exact(
        self, people: LookaheadTable, narrow: LookaheadTable, name: str
    ) -> Iterator[dict[str, Any]]:
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
    ) -> Iterator[dict[str, Any]]:
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

    def draw(self, cells: pd.DataFrame, means: pd.DataFrame) -> Figure:
        """Draw the experiment, without title and legend."""
        return coordination_figure(cells, means)


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


# What the paper's code computes, errors included: a learner of 200 gradient steps from a model of
# ones, and an implicit gradient whose mixed derivative is contracted over the features instead of
# over the parameters.

STEPS, RATE = 200, 0.1
"""The code's learner."""
SMALL = 0.03
"""Below this penalty the code climbs longer and with longer steps."""
USUAL = np.full(5, 2.0)
"""The code climbs 200 steps of 0.05. The column moves little: 5 and 10 steps as long in all led to
utilities within 1e-4 of each other; all 200 were not tried."""
LONG = np.linspace(200.0, 1.0, 50)
"""In place of the code's 500 steps from 20 down to 0.1, likewise."""


def descent(crowd: Crowd) -> Floats:
    """Return the model after 200 gradient steps of 0.1, no penalty.

    The code starts from ones; its label is the opposite of ours, and so is the start.
    """
    chances = LogisticLearner.chances
    theta = -np.ones(crowd.d)
    for _ in range(STEPS):
        theta = theta - RATE * ((chances(crowd.X @ theta) - crowd.y) @ crowd.X) / crowd.n
    return theta


def stackelberg_in_code(crowd: Crowd, column: int, penalty: float) -> float:
    """Return the utility that the code reports for the best strategy."""
    learner = LogisticLearner(intercept=False)
    X = crowd.X.copy()
    for step in LONG if penalty < SMALL else USUAL:
        here = crowd.moved(X)
        theta = descent(here)
        own, _ = learner.loss_slopes(theta, here)
        wrong = contracted_wrongly(here, theta, penalty)
        X[:, column] += step * (own[:, column] / crowd.n - wrong[:, column])
    theta = descent(crowd.moved(X))
    return learner.risk(theta, crowd.moved(X)) - penalty * float(theta @ theta)


def alignment_in_code(crowd: Crowd, theta: Floats, penalty: float) -> float:
    """Return what the code plots as the alignment: a squared length over *all* columns."""
    return float(np.sum(contracted_wrongly(crowd, theta, penalty) ** 2))


def contracted_wrongly(crowd: Crowd, theta: Floats, penalty: float) -> Floats:
    r"""Return :math:`\frac1n (r_i v_j + w_i x_{ij}\, \theta \cdot v)`, shape (n, d).

    The right one has :math:`w_i (x_i \cdot v)\,\theta_j` as its second term.
    """
    learner = LogisticLearner(intercept=False)
    wish = learner.gradient(theta, crowd) - 2.0 * penalty * theta
    v = learner.solve(theta, crowd, wish)
    chance = learner.chances(crowd.X @ theta)
    first, second = chance - crowd.y, chance * (1.0 - chance)
    found: Floats = np.outer(first, v) + (second * float(theta @ v))[:, None] * crowd.X
    return found / crowd.n
