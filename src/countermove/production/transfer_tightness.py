"""How tight every bound is (App. G): random populations with known answers, bound over truth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from countermove.production.transfer_experiments import TransferExperiment
from countermove.randomness import generator
from countermove.transfer.known_answers import (
    Held,
    proposition_5_3_both,
    random_law,
    strategic_bounds,
    target_bounds,
)
from countermove.transfer.minimise import GaussianClasses
from countermove.transfer.shifts import Replicator

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
