"""From the direction of moves to the price of each feature."""

from __future__ import annotations

import math

import numpy as np

from countermove._types import Floats
from countermove.learning.people_estimation.candidates import Candidate
from countermove.learning.people_estimation.direction import Direction
from countermove.learning.people_estimation.observed import Observation
from countermove.learning.people_estimation.result import WeightEstimate

DEAR = 1e4
"""Price, in units of the scale, of a feature nobody moves although the rule would pay for it."""
UNEQUAL = 0.01
"""p-value below which features are not priced alike."""


def shape_of(observed: Observation, direction: Direction) -> Floats:
    r"""Return weights :math:`q_j = u_j / b_j`, shape (d,), one unit of advance costing 1.

    Features without a reason to move, whose price the rows do not tell, get 1; features
    nobody moves get a price at which nobody would.
    """
    usable = direction.usable
    slope, along = observed.slope[usable], direction.along[usable]
    with np.errstate(divide="ignore"):
        prices = np.where(along * slope > 0.0, slope / along, DEAR)
    prices = np.minimum(prices, DEAR)
    # The same line, scaled so that a unit of advance costs one.
    prices *= float(np.sum(slope**2 / prices))
    weights = np.ones(len(usable))
    weights[usable] = prices
    return weights


def weight_estimates(
    observed: Observation,
    direction: Direction,
    shape: Floats,
    chosen: Candidate,
    scales: Floats | None,
    z: float,
) -> tuple[WeightEstimate, ...]:
    """Return one price per feature, with intervals that carry the scale's uncertainty too.

    Parameters
    ----------
    observed, direction, shape, chosen
        The deployment, the line people moved along, its weights, the fitted model.
    scales
        Original units per standardised unit, shape (d,), if known.
    z
        Standard errors to either side.
    """
    if chosen.scale is None or chosen.scale_interval is None:
        return ()
    ends = chosen.scale_interval
    slack = math.log(ends.high / ends.low) / 2 if ends.closed else math.inf
    found = []
    for j, name in enumerate(observed.names):
        value = float(chosen.scale * shape[j])
        use = float(direction.along[j] * np.sign(observed.slope[j]))
        error = z * float(direction.deviation[j])
        known = bool(direction.usable[j]) and use > error
        low, high = 0.0, math.inf
        if direction.usable[j] and use + error > 0.0:
            part = math.log1p(error / use) if known else 0.0
            low = chosen.scale * abs(float(observed.slope[j])) / (use + error)
            low *= math.exp(part - math.hypot(part, slack))
        if known:
            part = -math.log1p(-error / use)
            high = value * math.exp(math.hypot(part, slack))
        unit = None if scales is None else value / float(scales[j]) ** 2
        found.append(WeightEstimate(name, value, low, high, known, unit))
    return tuple(found)
