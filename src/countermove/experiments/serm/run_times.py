"""How long strategic training takes, and how much of it people's answers do.

The answer is found again for every batch. The published procedure is stopped
when the average move is small or after a number of steps that grows with the
epochs; ours solves the fixed point itself. Blind training is the yardstick.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from torch import Tensor

from countermove.data.standardise import Standardiser
from countermove.execution import Mapper
from countermove.experiments.protocol import Experiment, Measured, Sources, experiment_page
from countermove.experiments.tables import Sampling, Tables, make_split, present
from countermove.learning.classifier import StrategicClassifier
from countermove.learning.comparison import Split
from countermove.people import QuadraticCost
from countermove.response import NoResponse, Response, ScalarResponse
from countermove.response.base import OnFailure, Responses
from countermove.scores import Score

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure


logger = logging.getLogger(__name__)

SYNTHETIC = "synthetic"
PROTOCOL: dict[str, Any] = {"start": "stay", "normalised": False, "gradient": "last_proxy"}
"""The published people: the raw score, the procedure started at x."""


@dataclass(frozen=True)
class Synthetic:
    """Fabricated rows on which the batch size varies.

    Parameters
    ----------
    rows, features
        Size of the table; three quarters train, one quarter validates.
    batch_sizes
        What varies.
    epochs
        How long each run trains.
    """

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
    """What is timed.

    Parameters
    ----------
    synthetic
        The fabricated table.
    epochs
        Length of the runs on real tables.
    scale, temperature
        Of the quadratic cost and of the smoothed step.
    learning_rate
        Of every run.
    """

    synthetic: Synthetic = field(default_factory=Synthetic)
    epochs: int = 7
    scale: float = 1.0
    temperature: float = 0.5
    learning_rate: float = 0.1

    def ways(self) -> dict[str, Response]:
        """Return the ways to find people's answers, by name."""
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

    def cells(self, source: Sources, seed: int, mapper: Mapper | None = None) -> pd.DataFrame:
        """Train once by every way of finding people's answers; alone, or clocks would be wrong."""
        return measure_run_times(self, source.tables, seed)

    def figure(self, found: Measured, means: pd.DataFrame, title: str) -> Figure:
        """Draw seconds against the batch size, and per table."""
        return run_times_figure(found.cells, title)

    def page(self, found: Measured, means: pd.DataFrame, figure: Figure) -> str:
        """Write the figure as a page."""
        return experiment_page([figure])


def measure_run_times(times: RunTimes, tables: Tables, seed: int) -> pd.DataFrame:
    """Return one row per run: dataset, batch_size, way, epochs, seconds, response_seconds, share.

    ``seconds`` is the whole of training with its validation, ``response_seconds``
    the part that finds people's answers, without their gradients.
    """
    rows = []
    for name, split, batch_size, epochs in _runs(times, tables, seed):
        for way, response in times.ways().items():
            seconds, answering = _timed_fit(times, split, response, batch_size, epochs, seed)
            logger.info("%s, batches of %d, %s: %.2f s", name, batch_size, way, seconds)
            rows.append(
                {
                    "dataset": name,
                    "batch_size": batch_size,
                    "way": way,
                    "epochs": epochs,
                    "seconds": seconds,
                    "response_seconds": answering,
                    "share": answering / seconds,
                }
            )
    return pd.DataFrame(rows)


def _runs(times: RunTimes, tables: Tables, seed: int) -> Iterator[tuple[str, Split, int, int]]:
    fabricated = times.synthetic.split(seed)
    for size in times.synthetic.batch_sizes:
        yield SYNTHETIC, fabricated, size, times.synthetic.epochs
    for name, table in present(times, tables):
        size = times.batch_sizes.get(name, 64)
        yield name, make_split(times, table, seed), size, times.epochs


def _timed_fit(
    times: RunTimes, split: Split, response: Response, batch_size: int, epochs: int, seed: int
) -> tuple[float, float]:
    """Train twice and time the second run: the first compiles kernels and warms caches."""
    for length in (1, epochs):
        clock = Clock(response)
        rule = StrategicClassifier(
            response=clock,
            learning_rate=times.learning_rate,
            batch_size=batch_size,
            max_epochs=length,
            patience=length,
            random_state=seed,
            start="random",
            calibrate=False,
        )
        started = time.perf_counter()
        rule.fit(*split.train, validation=split.validation)
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


WAYS = {
    "blind": ("blind", "#9aa5b1"),
    "exact": ("strategic, fixed point solved", "#00796b"),
    "row": ("procedure, each person until still", "#b7791f"),
    "batch": ("procedure, until the average is still", "#805ad5"),
    "increasing": ("procedure, one more step per epoch", "#c53030"),
}
"""How the ways of finding answers are called and drawn."""


def run_times_figure(cells: pd.DataFrame, title: str) -> Figure:
    """Draw seconds against the batch size on fabricated rows, and per real table."""
    from plotly.graph_objects import Bar, Scatter
    from plotly.subplots import make_subplots

    fabricated = cells["dataset"] == "synthetic"
    figure = make_subplots(
        rows=1,
        cols=3,
        subplot_titles=("synthetic: seconds", "synthetic: share of the answers", "tables: seconds"),
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
    return figure.update_layout(
        title=title, template="plotly_white", legend={"orientation": "h", "y": -0.2}
    )
