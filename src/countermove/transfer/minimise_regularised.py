r"""Training on the source with a penalty that stands in for the people's answer (App. F).

Under target shift the error after deployment weighs the classes by :math:`p(h)` instead of
:math:`p`. A bonus for accepting, :math:`-\alpha\,E_u[(h+1)/2]` with equal classes in
:math:`u`, shifts the weights by :math:`\alpha/2`. The paper prints it as a penalty (+).
"""

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
    r"""Return :math:`\alpha^* = 2\,(p(h_T) - p)`.

    The regularised source risk then weighs the classes by :math:`p(h_T)`. Its minimiser is
    the best rule for the people :math:`h_T` meets, not :math:`h_T` itself, which also
    counts how :math:`p(h)` moves.
    """
    for name, share in (("p", favourable), ("p(hT)", favourable_best)):
        if not 0.0 <= share <= 1.0:
            raise ParameterError(f"{name} must lie in [0, 1], got {share!r}")
    return 2.0 * (favourable_best - favourable)


def regularised_risk(
    problem: ThresholdProblem, threshold: float | Floats, strength: float, sign: Sign = "corrected"
) -> Floats:
    r"""Return the source risk with the regulariser.

    .. math:: p\,\mathrm{FNR} + (1 - p)\,\mathrm{FPR}
        \mp \alpha\,\tfrac12(\mathrm{TPR} + \mathrm{FPR})

    with minus if corrected and plus as published.
    """
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
