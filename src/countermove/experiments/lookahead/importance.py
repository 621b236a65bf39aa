"""Figure 5: what a model loses when one column is replaced by noise, under the right names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners import LogisticLearner
from countermove.errors import ParameterError
from countermove.execution import Mapper
from countermove.experiments.lookahead.experiment import LookaheadExperiment
from countermove.experiments.lookahead.figures import importance_figure
from countermove.experiments.lookahead.people import (
    LookaheadTable,
    accuracy,
    platform,
)
from countermove.experiments.protocol import mean_and_spread
from countermove.randomness import generator

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


@dataclass(frozen=True)
class ImportanceExperiment(LookaheadExperiment):
    """Columns × splits.

    Parameters
    ----------
    columns
        Those replaced, one at a time, by standard normal draws; none: all.
    seeds
        Splits into training and test people.
    test_share
        Of the people.
    """

    columns: Sequence[str] = ()
    seeds: Sequence[int] = tuple(range(10))
    test_share: float = 0.2

    def __post_init__(self) -> None:
        if not 0.0 < self.test_share < 1.0:
            raise ParameterError(f"the share of test people is in (0, 1), got {self.test_share}")

    def cells(
        self, people: LookaheadTable, seed: int, mapper: Mapper | None = None
    ) -> pd.DataFrame:
        """Return one row per split and column: accuracy with it, without it, and the drop."""
        return pd.DataFrame(
            [
                {"seed": number, **row}
                for number in self.seeds
                for row in self._split(people, generator(seed, f"importance {number}"))
            ]
        )

    def means(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return mean drops over splits, the largest first."""
        found = mean_and_spread(cells, ["column"], ["drop", "accuracy", "accuracy_without"])
        return found.sort_values("drop", ascending=False, ignore_index=True)

    def _split(self, people: LookaheadTable, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
        crowd, learner = people.crowd, platform(people, penalise_intercept=False)
        order = rng.permutation(crowd.n)
        held = max(1, round(self.test_share * crowd.n))
        test, train = crowd.of_rows(order[:held]), crowd.of_rows(order[held:])
        base = learner.fit(train)
        before = _judged(learner, base, test)
        for name in self.columns or people.names:
            j = people.columns([name])[0]
            noisy_train, noisy_test = (_replaced(part, j, rng) for part in (train, test))
            after = _judged(learner, learner.fit(noisy_train, start=base), noisy_test)
            yield {
                "column": name,
                "accuracy": before,
                "accuracy_without": after,
                "drop": before - after,
            }

    def draw(self, cells: pd.DataFrame, means: pd.DataFrame) -> Figure:
        """Draw the experiment, without title and legend."""
        return importance_figure(cells, means)


def _replaced(crowd: Crowd, column: int, rng: np.random.Generator) -> Crowd:
    X = crowd.X.copy()
    X[:, column] = rng.normal(size=crowd.n)
    return crowd.moved(X)


def _judged(learner: LogisticLearner, theta: np.ndarray[Any, Any], crowd: Crowd) -> float:
    return accuracy(learner.scores(theta, crowd.X), crowd.y)
