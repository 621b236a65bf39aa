"""How long strategic training takes, and how much of it finding people's response does.

The response is found again for every batch. The published procedure is stopped
when the average move is small or after a number of steps that grows with the
epochs; ours solves the fixed point itself. Blind training is the yardstick.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import pandas as pd
from torch import Tensor

from countermove.data.standardise import Standardiser
from countermove.experiments._drawing import BELOW, GREY, OCHRE, PUBLISHED, RIGHT, VIOLET
from countermove.experiments.protocol import Experiment, Measured, Row, Sources
from countermove.experiments.tables import Sampling, make_split, present
from countermove.learning.classifier import StrategicClassifier
from countermove.learning.comparison import Split
from countermove.people import QuadraticCost
from countermove.response import NoResponse, Response, ScalarResponse
from countermove.response.base import OnFailure, Responses
from countermove.scores import Score

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


logger = logging.getLogger(__name__)

SYNTHETIC = "synthetic"
WAYS = {
    "blind": ("blind", GREY),
    "exact": ("strategic, fixed point solved", RIGHT),
    "row": ("procedure, each person until still", OCHRE),
    "batch": ("procedure, until the average is still", VIOLET),
    "increasing": ("procedure, one more step per epoch", PUBLISHED),
}
"""How the ways of finding the response are called and drawn."""

PROTOCOL: dict[str, Any] = {"start": "stay", "normalised": False, "gradient": "last_proxy"}
"""The published people: the raw score, the procedure started at x."""


@dataclass(frozen=True)
class Synthetic:
    """Fabricated rows on which the batch size varies; three quarters train, the rest validate."""

    rows: int = 1024
    features: int = 5
    batch_sizes: Sequence[int] = tuple(2**k for k in range(9))
    epochs: int = 5

    def split(self, seed: int) -> Split:
        """Return standardised rows of two noisy clouds; nothing is held back for a test."""
        from sklearn.datasets import make_classification

        X, labels = make_classification(
            self.rows, self.features, n_informative=self.features, n_redundant=0, random_state=seed
        )
        X = Standardiser.fit(X, [f"x{j}" for j in range(self.features)]).transform(X)
        y, cut = np.where(labels == 1, 1.0, -1.0), 3 * self.rows // 4
        return Split((X[:cut], y[:cut]), (X[cut:], y[cut:]), (X[:0], y[:0]))


@dataclass(frozen=True, kw_only=True)
class RunTimes(Sampling, Experiment[Sources]):
    """Every way to find people's response, timed on fabricated rows and on tables."""

    alone: ClassVar[bool] = True  # or clocks would be wrong
    layout: ClassVar[Row] = {"legend": BELOW}

    synthetic: Synthetic = field(default_factory=Synthetic)
    epochs: int = 7
    scale: float = 1.0
    temperature: float = 0.5
    learning_rate: float = 0.1

    def ways(self) -> dict[str, Response]:
        """Return the ways to find people's response, by name."""
        cost = QuadraticCost(self.scale)

        def stopped(stopping: Any) -> Response:
            return ScalarResponse(
                cost, None, self.temperature, polish=False, stopping=stopping, **PROTOCOL
            )

        return {
            "blind": NoResponse(cost),
            "exact": ScalarResponse(cost, None, self.temperature, **PROTOCOL),
            "row": stopped("row"),
            "batch": stopped("batch"),
            "increasing": stopped("increasing"),
        }

    def given(self, source: Sources, seed: int) -> list[TimedRun]:
        """Return the rows of every run: fabricated ones by batch size, then the tables."""
        made, own = self.synthetic.split(seed), self.synthetic
        runs = [TimedRun(SYNTHETIC, made, size, own.epochs) for size in own.batch_sizes]
        for name, table in present(self.datasets, source.tables, self.skip_missing).items():
            split = make_split(self, table, seed)
            runs.append(TimedRun(name, split, self.batch_sizes.get(name, 64), self.epochs))
        return runs

    def places(self, given: list[TimedRun]) -> list[tuple[TimedRun, str]]:
        """Return every run in every way."""
        return list(product(given, self.ways()))

    def rows_at(self, place: tuple[TimedRun, str], seed: int, given: list[TimedRun]) -> list[Row]:
        """Return one row: the seconds of training, and those that find people's response."""
        run, way = place
        seconds, responding = _timed_fit(self, run, self.ways()[way], seed)
        logger.info("%s, batches of %d, %s: %.2f s", run.name, run.batch_size, way, seconds)
        return [
            {
                "dataset": run.name,
                "batch_size": run.batch_size,
                "way": way,
                "epochs": run.epochs,
                "seconds": seconds,
                # Without gradients; ``seconds`` is the whole of training with its validation.
                "response_seconds": responding,
                "share": responding / seconds,
            }
        ]

    def draw(self, found: Measured, means: pd.DataFrame) -> Figure:
        """Draw seconds against the batch size on fabricated rows, and per real table."""
        from plotly.graph_objects import Bar, Scatter
        from plotly.subplots import make_subplots

        cells = found.cells
        fabricated = cells["dataset"] == SYNTHETIC
        figure = make_subplots(
            rows=1,
            cols=3,
            subplot_titles=(
                "synthetic: seconds",
                "synthetic: share of the response",
                "tables: seconds",
            ),
        )
        for way, (label, colour) in WAYS.items():
            of_way = cells["way"] == way
            line = cells[fabricated & of_way]
            look = {"name": label, "legendgroup": way, "marker": {"color": colour}}
            sizes = line["batch_size"].tolist()
            figure.add_trace(Scatter(x=sizes, y=line["seconds"].tolist(), **look), row=1, col=1)
            shares = Scatter(x=sizes, y=line["share"].tolist(), showlegend=False, **look)
            figure.add_trace(shares, row=1, col=2)
            bars = cells[~fabricated & of_way]
            seconds = Bar(
                x=bars["dataset"].tolist(), y=bars["seconds"].tolist(), showlegend=False, **look
            )
            figure.add_trace(seconds, row=1, col=3)
        for column in (1, 2):
            figure.update_xaxes(title="batch size", type="log", dtick=0.30103, row=1, col=column)
        figure.update_yaxes(type="log", row=1, col=1)
        figure.update_yaxes(range=[0, 1], tickformat=".0%", row=1, col=2)
        return figure

    def shown(self, found: Measured, means: pd.DataFrame) -> Row:
        """Show the figure alone."""
        return {}


class TimedRun(NamedTuple):
    """One training that is timed."""

    name: str
    split: Split
    batch_size: int
    epochs: int


def _timed_fit(
    times: RunTimes, run: TimedRun, response: Response, seed: int
) -> tuple[float, float]:
    """Train twice and time the second run: the first compiles kernels and warms caches."""
    for length in (1, run.epochs):
        clock = Clock(response)
        rule = StrategicClassifier(
            response=clock,
            loss="hinge",
            optimiser="adam",
            selection="none",
            standardise=False,
            learning_rate=times.learning_rate,
            batch_size=run.batch_size,
            max_epochs=length,
            patience=length,
            random_state=seed,
            start="random",
            calibrate=False,
        )
        started = time.perf_counter()
        rule.fit(*run.split.train, validation=run.split.validation)
        seconds = time.perf_counter() - started
    return seconds, sum(clock.spent)


class Clock(Response):
    """A response that counts the seconds it takes to find training scores."""

    def __init__(self, response: Response, spent: list[float] | None = None) -> None:
        super().__init__(response.cost, response.actions)
        self.response, self.name = response, response.name
        self.spent: list[float] = [] if spent is None else spent

    def for_epoch(self, epoch: int) -> Self:
        """Return the epoch's response on the same clock."""
        return type(self)(self.response.for_epoch(epoch), self.spent)

    def respond(self, score: Score, X: Any, on_failure: OnFailure = "raise") -> Responses[Any]:
        """Return where people move to."""
        return self.response.respond(score, X, on_failure)

    def scores_after(self, score: Score, X: Tensor) -> Tensor:
        """Return the training signal and note how long it took."""
        started = time.perf_counter()
        scores = self.response.scores_after(score, X)
        self.spent.append(time.perf_counter() - started)
        return scores
