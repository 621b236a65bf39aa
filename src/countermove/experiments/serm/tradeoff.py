"""Trade-off curves: datasets × splits × populations, one curve of strengths each.

A curve is one `trade_off` of the learning room; a figure of a paper is one set of curves.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

import pandas as pd

from countermove.errors import ParameterError
from countermove.execution import Mapper, map_ordered
from countermove.experiments.protocol import Experiment, Measured, Sources
from countermove.experiments.serm.tradeoff_page import tradeoff_figure, tradeoff_page
from countermove.experiments.tables import Sampling, Table, Tables, make_split, present
from countermove.learning.regularisers_social import SocialRegulariser
from countermove.learning.tradeoff import choice_of, mark, trade_off
from countermove.people import Cost

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

logger = logging.getLogger(__name__)

AXES = ["dataset", "split", "response", "training"]


@dataclass(frozen=True)
class TradeOffCurve:
    """One population and how rules are trained for it.

    Parameters
    ----------
    response
        The population, as `StrategicClassifier` takes it.
    strengths
        Of the regulariser; 0 is added.
    settings
        Further arguments of `StrategicClassifier`.
    epochs
        Of every strength above 0; None: as many as the unregularised rule may take.
    training
        What tells the curve from another of the same population, in words.
    """

    response: str
    strengths: Sequence[float]
    settings: Mapping[str, Any] = field(default_factory=dict)
    epochs: int | None = None
    training: str = "usual"


@dataclass(frozen=True, kw_only=True)
class TradeOff(Sampling, Experiment[Sources]):
    """What is traded, against whom, on which rows.

    Parameters
    ----------
    regulariser
        The social measure; its strength is what varies.
    curves
        One per population.
    splits
        Number of random splits.
    cost
        Of a move.
    tolerance
        Accuracy the chosen point may give up, on validation rows.
    """

    regulariser: SocialRegulariser
    curves: Sequence[TradeOffCurve]
    splits: int
    cost: Cost
    tolerance: float = 0.01

    def cells(self, source: Sources, seed: int, mapper: Mapper | None = None) -> pd.DataFrame:
        """Train and measure every strength of every curve."""
        return run_tradeoff(self, source.tables, seed, mapper)

    def means(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return the chosen point of every curve beside its unregularised one."""
        return tradeoff_choices(cells, self.regulariser.kind, self.tolerance)

    def figure(self, found: Measured, means: pd.DataFrame, title: str) -> Figure:
        """Draw accuracy against the measure, the Pareto front marked."""
        return tradeoff_figure(found.cells, self.regulariser.kind, title, self.tolerance)

    def page(self, found: Measured, means: pd.DataFrame, figure: Figure) -> str:
        """Write the figure, and what the chosen strength of every curve bought."""
        return tradeoff_page(found.cells, means, figure, self.regulariser.kind, self.tolerance)


def run_tradeoff(
    plan: TradeOff, tables: Tables, seed: int, mapper: Mapper | None = None
) -> pd.DataFrame:
    """Return one row per dataset, split, population and strength; see `trade_off` and `mark`.

    Curves are given to the ``mapper``'s workers; drawn here, one by one, by default.
    """
    found = dict(present(plan, tables))
    if not found:
        raise ParameterError(
            f"none of the tables of this trade-off is there ({', '.join(plan.datasets)}); "
            "put a file and a schema in place or name other datasets"
        )
    places = list(product(found, range(plan.splits), range(len(plan.curves))))
    curves: list[pd.DataFrame] = map_ordered(
        draw_curve, places, (plan, found, seed), mapper, "curves"
    )
    return pd.concat(curves, ignore_index=True)


def tradeoff_choices(points: pd.DataFrame, kind: str, tolerance: float) -> pd.DataFrame:
    """Return the chosen point of every curve beside its unregularised one.

    Per split, and for ``split`` "all" the one strength chosen by the means over splits: a
    point of accuracy is little more than the noise of one split's validation rows.
    """
    rows = [
        dict(zip(AXES, key, strict=True)) | choice_of(curve, kind)
        for key, curve in points.groupby(AXES, sort=False)
    ]
    whole = [axis for axis in AXES if axis != "split"]
    for key, curves in points.groupby(whole, sort=False):
        means = curves.groupby("strength").mean(numeric_only=True).reset_index()
        joint = choice_of(mark(means, kind, tolerance), kind)
        rows.append(dict(zip(whole, key, strict=True)) | {"split": "all"} | joint)
    return pd.DataFrame(rows)


def draw_curve(
    shared: tuple[TradeOff, Mapping[str, Table], int], place: tuple[str, int, int]
) -> pd.DataFrame:
    """Return one curve of one split of one table: a row per strength."""
    (plan, tables, seed), (name, number, which) = shared, place
    curve, started = plan.curves[which], time.perf_counter()
    split = make_split(plan, tables[name], seed + number)
    settings = {"random_state": seed + number, **curve.settings}
    if name in plan.batch_sizes:
        settings["batch_size"] = plan.batch_sizes[name]
    settings["epochs"] = curve.epochs
    points = trade_off(
        split, plan.regulariser, curve.strengths, curve.response, plan.cost, **settings
    )
    logger.info(
        "%s, split %d, %s: %d strengths in %.1f s",
        name, number, curve.response, len(points), time.perf_counter() - started,
    )  # fmt: skip
    marked = mark(points, plan.regulariser.kind, plan.tolerance)
    where = name, number, curve.response, curve.training
    axes = pd.DataFrame(dict(zip(AXES, where, strict=True)), [0])
    rows: pd.DataFrame = axes.merge(marked, how="cross")
    return rows
