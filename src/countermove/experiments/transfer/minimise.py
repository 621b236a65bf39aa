"""Minimising the induced risk: Figure 7's grid, the regulariser's sign, the bandits of App. E.2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from countermove.experiments._drawing import DARK, OTHER, PUBLISHED, RIGHT, coloured, line
from countermove.experiments.protocol import Measured, Row
from countermove.experiments.transfer import TransferExperiment
from countermove.experiments.transfer.known_answers import MeanEstimation
from countermove.experiments.transfer.regulariser import best_strength, minimise_regularised
from countermove.randomness import generator
from countermove.transfer.bandit import Method, bandit_descent
from countermove.transfer.minimise import (
    GaussianClasses,
    ThresholdProblem,
    minimise_induced_risk,
)
from countermove.transfer.shifts import Replicator

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Utility = tuple[tuple[float, float], tuple[float, float]]

UTILITIES: Mapping[str, Utility] = {
    "accuracy": ((1.0, 0.0), (0.0, 1.0)),
    "accepted good thrive": ((0.5, 0.5), (0.2, 1.0)),
    "acceptance pays": ((0.3, 1.0), (0.2, 0.8)),
    "only accepted good thrive": ((0.2, 0.2), (0.2, 1.0)),
}
"""``utility[label][decision]``, each −1 then +1."""


@dataclass(frozen=True)
class ReplicatorExperiment(TransferExperiment):
    """Utility matrices × shares of label +1 (Figure 7), with App. F's regulariser beside."""

    utilities: Mapping[str, Utility] = field(default_factory=lambda: UTILITIES)
    shares: Sequence[float] = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
    bounds: tuple[float, float] = (-5.0, 5.0)
    classes: GaussianClasses = field(default_factory=GaussianClasses)

    def places(self, given: Any) -> list[tuple[str, float]]:
        """Return utilities and shares."""
        return list(product(self.utilities, self.shares))

    def rows_at(self, place: tuple[str, float], seed: int, given: Any) -> list[Row]:
        """Return one row per utility and share: thresholds, accuracies, gain, regularised rules."""
        name, share = place
        return [{"utility": name, "share": share, **self._cell(self.utilities[name], share)}]

    def _cell(self, utility: Utility, share: float) -> Row:
        problem = ThresholdProblem(share, Replicator(utility), self.classes)
        found = minimise_induced_risk(problem, self.bounds)
        before = 1.0 - float(problem.risk(problem.source_best))
        strength = best_strength(share, float(problem.share(found.threshold)))
        corrected, published = (
            minimise_regularised(problem, strength, sign, self.bounds)
            for sign in ("corrected", "published")
        )
        return {
            "threshold_source": problem.source_best,
            "accuracy_source": before,
            "threshold_best": found.threshold,
            "accuracy_best": 1.0 - found.risk,
            "gain_per_cent": 100.0 * (1.0 - found.risk - before) / before,
            "at_bound": found.at_bound,
            "accuracy_exact": 1.0 - found.exact[1],
            "threshold_from_source": found.descents[0].threshold,
            "accuracy_from_source": 1.0 - found.descents[0].risk,
            "share_best": float(problem.share(found.threshold)),
            "strength": strength,
            "threshold_corrected": corrected.threshold,
            "accuracy_corrected": 1.0 - corrected.induced_risk,
            "threshold_published": published.threshold,
            "accuracy_published": 1.0 - published.induced_risk,
        }

    def means(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return the averages over shares per utility."""
        measured = ["accuracy_source", "accuracy_best", "gain_per_cent", "at_bound"]
        signs = ["accuracy_corrected", "accuracy_published"]
        return cells.groupby("utility", sort=False)[measured + signs].mean().reset_index()

    def draw(self, found: Measured, means: pd.DataFrame) -> Figure:
        """Draw the gain against the accuracy of h_S (Figure 7), and the regulariser's two signs."""
        from plotly.graph_objects import Scatter
        from plotly.subplots import make_subplots

        cells = found.cells
        titles = "gain of the induced-optimal threshold", "App. F: accuracy once deployed"
        figure = make_subplots(rows=1, cols=2, subplot_titles=titles)
        for name, part, colour in coloured(cells, "utility"):
            points = Scatter(
                x=part["accuracy_source"].tolist(),
                y=part["gain_per_cent"].tolist(),
                text=[f"p = {share:g}" for share in part["share"]],
                mode="markers",
                name=str(name),
                marker={"color": colour, "size": 9},
            )
            figure.add_trace(points, row=1, col=1)
        utility = cells["utility"].iloc[-1]
        last = cells[cells["utility"] == utility]
        for name, label, colour in (
            ("accuracy_source", "no regulariser", DARK),
            ("accuracy_best", "best possible", OTHER),
            ("accuracy_corrected", "regulariser, right sign", RIGHT),
            ("accuracy_published", "regulariser, sign as printed", PUBLISHED),
        ):
            shown = {"legendgroup": label, "showlegend": True}
            figure.add_trace(line(last["share"], last[name], label, colour, **shown), row=1, col=2)
        figure.update_xaxes(title="accuracy of h_S once deployed", row=1, col=1)
        figure.update_yaxes(title="gain, per cent", row=1, col=1)
        return figure.update_xaxes(title=f"share of label +1, utility “{utility}”", row=1, col=2)


@dataclass(frozen=True)
class BanditExperiment(TransferExperiment):
    """Bandit descents on a mean that moves along with the guess."""

    population: MeanEstimation = field(default_factory=MeanEstimation)
    steps: Mapping[Method, Sequence[float]] = field(
        default_factory=lambda: {
            "one_point": (5e-4,),
            "one_point_baseline": (5e-4, 1.5e-3),
            "two_point": (3e-3,),
        }
    )
    deployments: int = 20_000
    probe: float = 0.3
    radius: float = 5.0
    runs: int = 10

    def places(self, given: Any) -> list[tuple[Method, float, int]]:
        """Return methods, their steps and runs."""
        pairs = [(method, step) for method in self.steps for step in self.steps[method]]
        return [(*pair, run) for pair in pairs for run in range(self.runs)]

    def rows_at(self, place: tuple[Method, float, int], seed: int, given: Any) -> list[Row]:
        """Return one row per method and run: how far from the optimum it ended."""
        method, step, run = place
        end = bandit_descent(
            self.population.watch,
            np.zeros(len(self.population.optimum)),
            generator(seed, f"{method} {step} {run}"),
            method=method,
            deployments=self.deployments,
            step=step,
            probe=self.probe,
            radius=self.radius,
        )
        distance = self.population.distance(end)
        where = {"method": method, "step": step, "run": run}
        return [where | {"deployments": end.deployments, "distance": distance}]

    def means(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return mean and standard deviation of the distance per method and step."""
        grouped = cells.groupby(["method", "step"], sort=False)["distance"]
        return grouped.agg(mean="mean", spread="std", runs="size").reset_index()

    def draw(self, found: Measured, means: pd.DataFrame) -> Figure:
        """Draw how far from the optimum every run ended."""
        from plotly.graph_objects import Box, Figure

        boxes = [
            Box(
                y=part["distance"].tolist(),
                name=f"{part['method'].iloc[0].replace('_', ' ')}, step {part['step'].iloc[0]:g}",
                boxpoints="all",
            )
            for _, part in found.cells.groupby(["method", "step"], sort=False)
        ]
        return Figure(boxes).update_yaxes(title="distance to the optimum", rangemode="tozero")
