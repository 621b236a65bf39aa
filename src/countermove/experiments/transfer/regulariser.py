"""App. F's regulariser: a bonus for accepting that stands in for people's response."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from countermove._types import Floats
from countermove.errors import ParameterError
from countermove.transfer.minimise import ThresholdProblem, smallest_on_interval

Sign = Literal["corrected", "published"]


@dataclass(frozen=True)
class Regularised:
    """The minimiser of a regularised source risk: threshold, and its error once deployed."""

    threshold: float
    induced_risk: float
    at_bound: bool


def best_strength(favourable: float, favourable_best: float) -> float:
    """Return 2 (p(h_T) - p), with which the source risk weighs the classes by p(h_T)."""
    # Its minimiser is the best rule for the people h_T meets, not h_T itself, which also counts how
    # p(h) moves.
    for name, share in (("p", favourable), ("p(hT)", favourable_best)):
        if not 0.0 <= share <= 1.0:
            raise ParameterError(f"{name} must lie in [0, 1], got {share!r}")
    return 2.0 * (favourable_best - favourable)


def regularised_risk(
    problem: ThresholdProblem, threshold: float | Floats, strength: float, sign: Sign = "corrected"
) -> Floats:
    """Return the source risk less (as published: plus) the strength times (TPR + FPR) / 2."""
    # Under target shift the error after deployment weighs the classes by p(h) instead of p; the
    # bonus shifts the weights by half the strength.
    if sign not in ("corrected", "published"):
        raise ParameterError(f"sign is 'corrected' or 'published', got {sign!r}")
    true_positive, false_positive = problem.classes.rates(np.asarray(threshold, np.float64))
    p = problem.favourable
    accepted = 0.5 * (true_positive + false_positive)
    source = p * (1.0 - true_positive) + (1.0 - p) * false_positive
    return np.asarray(source - (strength if sign == "corrected" else -strength) * accepted)


def minimise_regularised(
    problem: ThresholdProblem,
    strength: float,
    sign: Sign = "corrected",
    bounds: tuple[float, float] = (-5.0, 5.0),
) -> Regularised:
    """Return the threshold that training with the regulariser gives."""
    threshold, _ = smallest_on_interval(
        lambda theta: regularised_risk(problem, theta, strength, sign), bounds
    )
    return Regularised(
        threshold=threshold,
        induced_risk=float(problem.risk(threshold)),
        at_bound=threshold in bounds,
    )
