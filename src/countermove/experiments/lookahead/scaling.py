r"""Figure 4: a fixed strategy at growing size, and the alignment that says when to stop.

People with the unfavourable outcome shift some columns towards the others' mean, so
that the model comes close to one they want; beyond some size they push it too far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.dynamics.collective.balls import Ball
from countermove.dynamics.collective.bilevel import Point
from countermove.dynamics.collective.collective import Collective
from countermove.dynamics.collective.coordination import scaling
from countermove.dynamics.collective.utilities import TargetModelUtility
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners import LogisticLearner
from countermove.errors import ParameterError
from countermove.experiments._drawing import DARK, DOTTED, coloured, marked
from countermove.experiments.lookahead.people import (
    LookaheadExperiment,
    LookaheadTable,
    chosen,
    narrowed,
)
from countermove.experiments.protocol import Measured, Row
from countermove.randomness import generator

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

DIFFERENCE = 1e-4
"""Step in the participation by which slopes are checked."""


@dataclass(frozen=True)
class ScalingExperiment(LookaheadExperiment):
    r"""Strengths :math:`\eta` × sizes (× trials).

    Members shift columns S by :math:`\eta\,E[x_S \mid \text{favourable}]`. Everybody counts by the
    share; ``published`` draws the members, and those of the target model, as the code does.
    """

    columns: Sequence[str] = ()
    strengths: Sequence[float] = (0.559, 0.34, 0.2159)
    participation: Sequence[float] = tuple(np.linspace(0.1, 0.99, 20).tolist())
    target_participation: float = 0.3
    target_strength: float = 0.552
    dropped: Sequence[str] = ()
    outliers: float = 10.0
    published: bool = False
    trials: int = 3

    def __post_init__(self) -> None:
        wrong = [share for share in self.participation if not 0.0 < share <= 1.0]
        if wrong or self.trials < 1 or not self.strengths or not self.participation:
            raise ParameterError(
                "name at least one strength, trial and participation, the latter in (0, 1]; got "
                f"{list(self.strengths)}, {self.trials} and {list(self.participation)}"
            )

    def given(self, source: LookaheadTable, seed: int) -> tuple[LookaheadTable, Floats]:
        """Return the people without outliers, and the model that members want."""
        kept = self._kept(source)
        rng = generator(seed, "scaling target")
        rows = self._drawn(kept, self.target_participation, rng) if self.published else None
        base = self._collective(kept, self.target_participation, None, rows)
        return kept, base.at(self._move(kept, self.target_strength)).theta

    def places(self, given: tuple[LookaheadTable, Floats]) -> list[tuple[float, float, int]]:
        """Return strengths, sizes and trials."""
        trials = range(self.trials if self.published else 1)
        return list(product(self.strengths, self.participation, trials))

    def means(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return, per strength, where growing stops paying and what the ends are worth."""
        return pd.DataFrame(
            [
                {"strength": strength, **self._summary(part)}
                for strength, part in cells.groupby("strength", sort=False)
            ]
        )

    def _summary(self, part: pd.DataFrame) -> Row:
        mean = part.groupby("participation", sort=True).mean(numeric_only=True).reset_index()
        right = np.sign(mean["slope"]) == np.sign(mean["slope_by_differences"])
        printed = np.sign(-mean["psi_printed"]) == np.sign(mean["slope_by_differences"])
        code = np.sign(-mean["psi_in_code"]) == np.sign(mean["slope_by_differences"])
        return {
            "stops_paying_at": crossing(mean["participation"], mean["psi"]),
            "stops_paying_in_code": crossing(mean["participation"], mean["psi_in_code"]),
            "utility_smallest": float(mean["utility"].iloc[0]),
            "utility_largest": float(mean["utility"].iloc[-1]),
            "sizes": len(mean),
            "signs_right": int(right.sum()),
            "signs_printed": int(printed.sum()),
            "signs_in_code": int(code.sum()),
            "slope_error": float((mean["slope"] / mean["slope_by_differences"] - 1.0).abs().max()),
        }

    def rows_at(
        self, place: tuple[float, float, int], seed: int, given: tuple[LookaheadTable, Floats]
    ) -> list[Row]:
        """Return one row: the utility, and every reading of its slope in the size."""
        (strength, share, trial), (people, target) = place, given
        eta, exact = self._move(people, strength), self._collective(people, share, target, None)
        near = exact.problem.at(eta, target)
        slopes = scaling(exact, near)
        played = (exact, near)
        if self.published:
            rows = self._drawn(
                people, share, generator(seed, f"scaling {strength} {share} {trial}")
            )
            drawn = self._collective(people, share, target, rows)
            played = (drawn, drawn.problem.at(eta, near.theta))
        up, down = min(share + DIFFERENCE, 1.0), share - DIFFERENCE
        ends = [exact.of_size(size).problem.at(eta, near.theta).value for size in (up, down)]
        return [
            {
                "strength": strength,
                "participation": share,
                "trial": trial,
                "utility": played[1].value,
                "slope": slopes.slope,
                "slope_by_differences": (ends[0] - ends[1]) / (up - down),
                "psi": slopes.psi,  # of the opposite sign
                "psi_printed": slopes.psi_published,  # Proposition 7 as printed
                "psi_in_code": _psi_in_code(*played, target),
            }
        ]

    def _kept(self, people: LookaheadTable) -> LookaheadTable:
        narrow = narrowed(people, self.dropped)
        moved = narrow.crowd.X[:, list(narrow.columns(chosen(self.columns, narrow)))]
        near: NDArray[np.bool_] = np.all(np.abs(moved) < self.outliers, axis=1)
        return narrow.of_rows(near)

    def _move(self, people: LookaheadTable, strength: float) -> Floats:
        crowd, columns = people.crowd, list(people.columns(chosen(self.columns, people)))
        favoured = crowd.of_rows(crowd.y == 1.0)
        mean: Floats = favoured.mean(favoured.X[:, columns])
        return strength * mean[None, :]

    def _drawn(self, people: LookaheadTable, share: float, rng: np.random.Generator) -> Any:
        eligible = np.flatnonzero(people.crowd.y == 0.0)
        size = max(1, int(share * len(eligible)))
        return np.sort(rng.choice(eligible, size, replace=False))

    def _collective(
        self, people: LookaheadTable, share: float, target: Floats | None, rows: Any
    ) -> Collective:
        crowd, columns = people.crowd, people.columns(chosen(self.columns, people))
        return Collective(
            Crowd(crowd.X, crowd.y),
            TargetModelUtility(np.zeros(crowd.d + 1) if target is None else target),
            _learner(crowd),
            columns=columns,
            uniform=True,
            ball=Ball(max(1.0, 2.0 * max(self.strengths)) * self.outliers * len(columns)),
            participants=crowd.y == 0.0 if rows is None else rows,
            participation=share if rows is None else 1.0,
        )

    def draw(self, found: Measured, means: pd.DataFrame) -> Figure:
        """Draw the alignment of a fixed strategy and the utility over the size."""
        from plotly.subplots import make_subplots

        figure = make_subplots(
            rows=1, cols=2, subplot_titles=("alignment Ψ", "utility of a member")
        )
        mean = found.cells.groupby(["strength", "participation"], as_index=False, sort=False).mean(
            numeric_only=True
        )
        for strength, part, colour in coloured(mean, "strength"):
            label = f"strength {strength:g}"
            figure.add_trace(marked(part, "participation", "psi", label, colour), row=1, col=1)
            printed = marked(
                part, "participation", "psi_printed", f"{label}, as printed", colour, **DOTTED
            )
            figure.add_trace(printed, row=1, col=1)
            worth = marked(part, "participation", "utility", label, colour, showlegend=False)
            figure.add_trace(worth, row=1, col=2)
            stops = means.loc[means["strength"] == strength, "stops_paying_at"]
            if len(stops) and stops.iloc[0] == stops.iloc[0]:
                figure.add_vline(float(stops.iloc[0]), line={"color": colour, "dash": "dash"})
        figure.add_hline(0.0, line={"color": DARK, "width": 1}, row=1, col=1)
        return figure.update_xaxes(title="participation of those with the unfavourable outcome")


def crossing(sizes: Any, values: Any) -> float:
    """Return where values first turn positive, between sizes by a straight line; NaN if never."""
    at, found = np.asarray(sizes, np.float64), np.asarray(values, np.float64)
    turns = np.flatnonzero((found[:-1] < 0.0) & (found[1:] >= 0.0))
    if not turns.size:
        return float("nan")
    i = int(turns[0])
    return float(at[i] - found[i] * (at[i + 1] - at[i]) / (found[i + 1] - found[i]))


def _psi_in_code(sized: Collective, point: Point, target: Floats) -> float:
    # The published code's number: the utility's slope without its 2, the learner's with its sign
    # turned and the penalty's weight 1 instead of 1/n, and H + I.
    members, theta = sized.space.members_at(point.eta), point.theta
    learner = _learner(sized.base)
    loss_slope = -members.mean(learner.row_gradients(theta, members)) + theta
    hessian = learner.hessian(theta, point.whole) + np.eye(len(theta))
    return float((target - theta) @ np.linalg.solve(hessian, loss_slope))


def _learner(crowd: Crowd) -> LogisticLearner:
    """Return the published learner: C = 1, so 1/n, on the intercept too."""
    return LogisticLearner(1.0 / crowd.n, penalise_intercept=True)
