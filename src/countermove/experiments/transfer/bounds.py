"""Lemma A.3 held against draws, and how tight every bound is (App. G)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from countermove._types import Floats
from countermove.experiments._drawing import AGAIN, DARK, PUBLISHED, RIGHT, line
from countermove.experiments.protocol import Measured, Row
from countermove.experiments.transfer import TransferExperiment
from countermove.experiments.transfer.known_answers import (
    Checked,
    proposition_5_3_both,
    random_law,
    strategic_bounds,
    target_bounds,
)
from countermove.randomness import generator
from countermove.transfer.minimise import GaussianClasses
from countermove.transfer.shifts import Replicator, UniformResponse

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

READINGS = ("x + B", "τ + |B − x|, as printed", "τ + B")
"""Where the interval ends on which a mover lands."""


@dataclass(frozen=True)
class LemmaExperiment(TransferExperiment):
    """Thresholds of people uniform on [0, 1] with one budget."""

    thresholds: Sequence[float] = (0.5, 0.05, 0.95)
    budget: float = 0.2
    draws: int = 4_000_000
    bins: int = 50

    def places(self, given: Any) -> list[tuple[float, str]]:
        """Return thresholds and readings."""
        return list(product(self.thresholds, READINGS))

    def rows_at(self, place: tuple[float, str], seed: int, given: Any) -> list[Row]:
        """Return one row per bin: density drawn, lemma, closed form."""
        threshold, reading = place
        answer = UniformResponse(threshold, self.budget)
        rng = generator(seed, f"lemma {threshold} {reading}")
        drawn, beyond = self._drawn(answer, reading, rng)
        densities = drawn, self._binned(answer.printed_weights), self._binned(answer.weights)
        left = np.arange(self.bins) / self.bins
        return [
            {"threshold": threshold, "reading": reading, "bin": where}
            | dict(zip(("drawn", "lemma", "closed_form"), values, strict=True))
            | {"beyond": beyond}
            for where, *values in zip(left, *densities, strict=True)
        ]

    def _binned(self, weights: Any) -> Floats:
        fine = (np.arange(200 * self.bins) + 0.5) / (200 * self.bins)
        return np.asarray(weights(fine).reshape(self.bins, 200).mean(axis=1))

    def _drawn(
        self, people: UniformResponse, reading: str, rng: np.random.Generator
    ) -> tuple[Floats, float]:
        """Return the density of people in every bin, and the share that lands beyond 1."""
        x = rng.random(self.draws)
        gap = people.threshold - x
        succeeds = (gap > 0) & (gap <= self.budget)
        succeeds &= rng.random(self.draws) < 1.0 - gap / self.budget
        longest = {
            READINGS[0]: self.budget - gap,
            READINGS[1]: np.abs(self.budget - x),
            READINGS[2]: np.full(self.draws, self.budget),
        }[reading]
        landed = np.where(succeeds, people.threshold + rng.random(self.draws) * longest, x)
        counts, _ = np.histogram(landed, bins=self.bins, range=(0.0, 1.0))
        return counts * self.bins / self.draws, float(np.mean(landed > 1.0))

    def means(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return one row per threshold and reading: largest deviation, moments of the weights."""
        rows = []
        for _, part in cells.groupby(["threshold", "reading"], sort=False):
            threshold, reading = float(part["threshold"].iloc[0]), part["reading"].iloc[0]
            people = UniformResponse(threshold, self.budget)
            mean, variance = people.mean_and_variance()
            printed_mean, printed_variance = people.mean_and_variance(printed=True)
            rows.append(
                {
                    "threshold": threshold,
                    "reading": reading,
                    "deviation_from_lemma": float((part["drawn"] - part["lemma"]).abs().max()),
                    "beyond": part["beyond"].iloc[0],
                    "mean_weight_printed": printed_mean,
                    "variance_printed": printed_variance,
                    "mean_weight": mean,
                    "variance": variance,
                    "two_thirds_of_budget": 2.0 * self.budget / 3.0,
                }
            )
        return pd.DataFrame(rows)

    def draw(self, found: Measured, means: pd.DataFrame) -> Figure:
        """Draw densities after response, one panel per threshold."""
        from plotly.subplots import make_subplots

        groups = list(found.cells.groupby("threshold", sort=False))
        titles = [f"threshold {threshold:g}" for threshold, _ in groups]
        figure = make_subplots(rows=1, cols=len(groups), subplot_titles=titles)
        for column, (_, panel) in enumerate(groups, start=1):
            lines = [
                (reading, "drawn", f"drawn, lands up to {reading}", {"color": colour})
                for reading, colour in zip(READINGS, (RIGHT, PUBLISHED, AGAIN), strict=True)
            ] + [
                (READINGS[0], name, label, {"dash": dash, "width": 1})
                for name, label, dash in (
                    ("lemma", "Lemma A.3 as printed", "dot"),
                    ("closed_form", "closed form with edges", "solid"),
                )
            ]
            for reading, name, label, stroke in lines:
                part = panel[panel["reading"] == reading]
                group = label if name == "drawn" else name
                trace = line(
                    part["bin"], part[name], label, DARK, legendgroup=group,
                    showlegend=column == 1, line=stroke | {"shape": "hv"},
                )  # fmt: skip
                figure.add_trace(trace, row=1, col=column)
            figure.update_xaxes(title="feature", row=1, col=column)
        return figure.update_yaxes(title="density after response", row=1, col=1)


# Appendix G: random populations with known answers, bound over truth.

NOTHING = 1e-6
"""Quantities below count as 0: a ratio with them says nothing."""


@dataclass(frozen=True)
class TightnessExperiment(TransferExperiment):
    """Random populations of covariate shift, and as many of target shift with either fitness."""

    populations: int = 2_000
    budget: float = 0.2

    def places(self, given: Any) -> list[None]:
        """Return one place: the populations are drawn one after the other."""
        return [None]

    def rows_at(self, place: None, seed: int, given: Any) -> Iterator[Row]:
        """Yield one row per population and bound: shift, name, bound, truth, violated."""
        rng = generator(seed, "tightness")
        for _ in range(self.populations):
            found = {
                "covariate": strategic_bounds(random_law(rng), self.budget),
                "target": random_target(rng),
                "two random rules": proposition_5_3_both(rng.uniform(0.02, 0.98), _rates(rng)),
            }
            for shift, bounds in found.items():
                for held in bounds:
                    yield {"shift": shift, **asdict(held), "violated": held.violated}

    def means(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return one row per bound: violations, means, and how close it comes to the truth."""
        rows = []
        for (shift, name), part in cells.groupby(["shift", "name"], sort=False):
            bound, truth = part["bound"].to_numpy(), part["truth"].to_numpy()
            some = (bound > NOTHING) & (truth > NOTHING)
            # Share of an upper bound that the truth reached, or of the truth that a lower bound
            # reached: 1 would be tight, above 1 is a violation.
            upper, share = part["upper"].iloc[0], truth[some] / bound[some]
            if not upper:
                share = 1.0 / share
            rows.append(
                {
                    "shift": shift,
                    "bound": name,
                    "side": "upper" if upper else "lower",
                    "printed_false": bool(part["printed_false"].iloc[0]),
                    "populations": len(part),
                    "violations": int(part["violated"].sum()),
                    "mean_bound": float(bound.mean()),
                    "mean_truth": float(truth.mean()),
                    "nothing_said": float(np.mean(~some)),
                    "typical": float(np.median(bound[some] / truth[some])) if some.any() else None,
                    "closest": float(share.max()) if some.any() else None,
                }
            )
        return pd.DataFrame(rows)

    def draw(self, found: Measured, means: pd.DataFrame) -> Figure:
        """Draw how close every bound came to the truth; beyond 1 it was violated."""
        from plotly.graph_objects import Bar, Figure

        bars = Bar(
            x=means["closest"].fillna(0.0).clip(upper=3.0).tolist(),
            y=[f"{b} ({s})" for b, s in zip(means["bound"], means["shift"], strict=True)],
            orientation="h",
            marker_color=[PUBLISHED if v else RIGHT for v in means["violations"]],
            text=[
                f"{v} of {n} violated"
                for v, n in zip(means["violations"], means["populations"], strict=True)
            ],
        )
        figure = Figure([bars]).add_vline(x=1.0, line_dash="dot")
        figure.update_yaxes(autorange="reversed").update_layout(height=600)
        title = "largest share of the bound that the truth reached (cut at 3)"
        return figure.update_xaxes(title=title)


def random_target(rng: np.random.Generator) -> list[Checked]:
    """Return the bounds of one random target shift, fitness accuracy in half of the cases."""
    table = rng.uniform(0.05, 1.0, (2, 2))
    random = Replicator(((table[0, 0], table[0, 1]), (table[1, 0], table[1, 1])))
    replicator = Replicator() if rng.random() < 0.5 else random
    classes = GaussianClasses((0.0, rng.uniform(0.2, 4.0)))
    return target_bounds(rng.uniform(0.05, 0.95), replicator, classes, np.linspace(-2.0, 5.0, 141))


def _rates(rng: np.random.Generator) -> tuple[tuple[float, float], tuple[float, float]]:
    one, other = rng.uniform(0.02, 0.98, (2, 2)).tolist()
    return (one[0], one[1]), (other[0], other[1])
