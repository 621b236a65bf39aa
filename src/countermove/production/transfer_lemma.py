"""Lemma A.3 held against draws: where strategic people end up, under three readings of Setup 4."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from countermove._types import Floats
from countermove.production.transfer_experiments import TransferExperiment
from countermove.randomness import generator
from countermove.transfer.shifts import UniformResponse

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

    thresholds: Sequence[float] = (0.5,)
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
