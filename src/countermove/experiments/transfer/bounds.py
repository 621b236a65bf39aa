"""Lemma A.3 held against draws, and how tight every bound is (App. G)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from countermove._types import Floats
from countermove.experiments.transfer.experiment import TransferExperiment
from countermove.experiments.transfer.figures import lemma_figure, tightness_figure
from countermove.experiments.transfer.known_answers import (
    Held,
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
    """Thresholds of people uniform on [0, 1] with one budget.

    Parameters
    ----------
    thresholds, budget
        Of the rule and of the people.
    draws
        People per threshold and reading.
    bins
        Of the histogram.
    """

    thresholds: Sequence[float] = (0.5, 0.05, 0.95)
    budget: float = 0.2
    draws: int = 4_000_000
    bins: int = 50

    def places(self) -> list[tuple[float, str]]:
        """Return thresholds and readings."""
        return list(product(self.thresholds, READINGS))

    def measured(self, place: tuple[float, str], seed: int, people: None) -> list[dict[str, Any]]:
        """Return one row per bin of a threshold and reading: density drawn, lemma, closed form."""
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

    def draw(self, cells: pd.DataFrame, means: pd.DataFrame) -> Figure:
        """Draw the experiment, without title and legend."""
        return lemma_figure(cells, means)


# Appendix G: random populations with known answers, bound over truth.

NOTHING = 1e-6
"""Quantities below count as 0: a ratio with them says nothing."""


@dataclass(frozen=True)
class TightnessExperiment(TransferExperiment):
    """Random populations of either shift.

    Parameters
    ----------
    populations
        Of covariate shift, and as many of target shift with either fitness.
    budget
        Of the strategic people.
    """

    populations: int = 2_000
    budget: float = 0.2

    def places(self) -> list[None]:
        """Return one place: the populations are drawn one after the other."""
        return [None]

    def measured(self, place: None, seed: int, people: None) -> list[dict[str, Any]]:
        """Return one row per population and bound: shift, name, bound, truth, violated."""
        return list(self._cells(seed))

    def _cells(self, seed: int) -> Iterator[dict[str, Any]]:
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
        """Return one row per bound: violations, means, and how close it comes to the truth.

        ``closest`` is the largest share of an upper bound that the truth reached (of a lower
        bound: the largest share of the truth that the bound reached); 1 would be tight, above 1
        is a violation. ``typical`` is the median of bound over truth where neither is 0.
        """
        rows = []
        for (shift, name), part in cells.groupby(["shift", "name"], sort=False):
            bound, truth = part["bound"].to_numpy(), part["truth"].to_numpy()
            some = (bound > NOTHING) & (truth > NOTHING)
            share = truth[some] / bound[some]
            if not part["upper"].iloc[0]:
                share = 1.0 / share
            rows.append(
                {
                    "shift": shift,
                    "bound": name,
                    "side": "upper" if part["upper"].iloc[0] else "lower",
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

    def draw(self, cells: pd.DataFrame, means: pd.DataFrame) -> Figure:
        """Draw the experiment, without title and legend."""
        return tightness_figure(cells, means)


def random_target(rng: np.random.Generator) -> list[Held]:
    """Return the bounds of one random target shift, fitness accuracy in half of the cases."""
    table = rng.uniform(0.05, 1.0, (2, 2))
    random = Replicator(((table[0, 0], table[0, 1]), (table[1, 0], table[1, 1])))
    replicator = Replicator() if rng.random() < 0.5 else random
    classes = GaussianClasses((0.0, rng.uniform(0.2, 4.0)))
    return target_bounds(rng.uniform(0.05, 0.95), replicator, classes, np.linspace(-2.0, 5.0, 141))


def _rates(rng: np.random.Generator) -> tuple[tuple[float, float], tuple[float, float]]:
    one, other = rng.uniform(0.02, 0.98, (2, 2)).tolist()
    return (one[0], one[1]), (other[0], other[1])
