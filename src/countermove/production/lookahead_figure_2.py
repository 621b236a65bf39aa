r"""Figure 2: the benefit of coordination as members care more about the model's length.

:math:`u = \ell - \lambda|\theta|^2`, one column reported at will. Selfish members make
the column useless; a collective can also make it a copy of the model's own score,
which shrinks the model. How far depends on how far the column may be moved: the
benefit grows to :math:`\lambda|\theta^*|^2`, which no strategy attains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from countermove._types import Floats
from countermove.dynamics.collective import Collective
from countermove.dynamics.coordination import compare
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners import LogisticLearner
from countermove.dynamics.play import SelfishPoint
from countermove.dynamics.utilities import PenalisedLossUtility
from countermove.errors import ParameterError
from countermove.people import ActionSet
from countermove.production.lookahead_columns import (
    chosen,
    moved_in_code,
    narrowed,
    with_constant,
)
from countermove.production.lookahead_published import (
    alignment_in_code,
    stackelberg_in_code,
)
from countermove.production.lookahead_table import LookaheadTable

CONCAVITY_POINTS = 5
"""Points between selfish and best strategy at which concavity is looked at."""
STRIDE = 0.01
"""Members move so far, in deviations, before a refit: the stable point of patient members."""


@dataclass(frozen=True)
class CoordinationExperiment:
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
    penalties: Sequence[float] = tuple(np.linspace(0.0, 1.0, 10))
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

    def cells(self, people: LookaheadTable, seed: int) -> pd.DataFrame:
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
