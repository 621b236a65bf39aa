"""What the rows cannot tell, and what speaks against the model."""

from __future__ import annotations

import math

import numpy as np

from countermove._types import Floats
from countermove.errors import shown
from countermove.learning.people_estimation.candidates import Candidate
from countermove.learning.people_estimation.direction import Direction
from countermove.learning.people_estimation.movement import scale_of
from countermove.learning.people_estimation.observed import Observation

WIDE = 20.0
"""An interval whose ends differ by more than this factor tells nothing one could train on."""
STRAYS = 0.02
"""Share of people moving for reasons of their own that is worth a word."""
SCATTER = 1.5
"""Off-line moves this many times the records' noise are no noise."""
OFF_LINE = 1e-3
"""Share of the moves' energy off the line that is not rounding, where records are exact."""


def nothing_to_learn(observed: Observation, difficulty: Floats) -> tuple[str, ...]:
    """Return why nobody could have shown anything, before any model is fitted."""
    refused = observed.gap > 0.0
    if not refused.any():
        return (f"all {len(refused)} people were approved before they moved: nobody had a gap",)
    if not np.isfinite(difficulty[refused]).any():
        return (
            f"none of the {int(refused.sum())} refused people has an allowed move that reaches "
            "approval",
        )
    return ()


def not_identified(chosen: Candidate, difficulty: Floats, alpha: float) -> tuple[str, ...]:
    """Return why the chosen model leaves the cost open."""
    if chosen.name == "none":
        return (_nobody(difficulty, alpha),)
    if chosen.name == "drift":
        return ("people moved as much where the rule gave them no reason as where it did",)
    ends = chosen.scale_interval
    assert ends is not None
    if ends.low == 0.0:
        return (
            "everybody within sight of approval moved, so that nobody shows where it stops being "
            f"worth it: all moves are censored, and the scale is only known to be at most "
            f"{ends.high:.4g}",
        )
    if not math.isfinite(ends.high):
        return (f"hardly anybody moved: the scale is only known to be at least {ends.low:.4g}",)
    if ends.high > WIDE * ends.low:
        return (
            f"the interval of the scale, {ends.low:.3g} to {ends.high:.3g}, is too wide to train "
            "on; more people, or a rule with other gaps, would narrow it",
        )
    return ()


def doubts(
    observed: Observation, chosen: Candidate, direction: Direction | None
) -> tuple[str, ...]:
    """Return what speaks against the model apart from its fit along the rule."""
    found = []
    rows, columns = observed.changed_fixed()
    if len(rows):
        found.append(
            f"Features that cannot change did, in {len(rows)} of {len(observed.X)} people "
            f"({shown(map(repr, columns))}; rows {shown(rows)}): measurement noise, a mistake in "
            "the schema, or other people under the same keys."
        )
    if chosen.noise.strays > STRAYS:
        found.append(
            f"{chosen.noise.strays:.1%} of the people moved for reasons the model does not know."
        )
    if direction is not None and _off_line(observed, direction):
        found.append(
            "People did not move along one line, as they would under a quadratic cost with the "
            "same weights for everybody: the cost has another shape, or differs between people. "
            "Scale and reach hold for rules like this one only."
        )
    return tuple(found)


def _nobody(difficulty: Floats, alpha: float) -> str:
    """Say what staying tells: a low cost would have moved one of the nearest, if half answer."""
    near = np.sort(difficulty[(difficulty > 0.0) & np.isfinite(difficulty)])
    count = math.ceil(math.log(alpha) / math.log(0.5))
    text = "nobody moved: high costs and people who never answer rules look the same"
    if len(near) >= count:
        least = scale_of(float(near[count - 1]))
        text += f" (if at least half of them would answer, the scale is at least {least:.4g})"
    return text


def _off_line(observed: Observation, direction: Direction) -> bool:
    """Tell whether moves scatter around their line by more than the records' noise."""
    if observed.recorded_exactly:
        return direction.scatter > OFF_LINE * direction.energy
    moves = (observed.X_after - observed.X)[:, direction.usable]
    if direction.usable.sum() < 2:
        return False
    along = direction.along[direction.usable]
    along = along / np.linalg.norm(along)
    # Whoever went back, if anywhere, did not answer: they show the records' noise across the line.
    still = observed.advance <= 0.0
    if not still.any():
        return False
    across = moves[still] - np.outer(moves[still] @ along, along)
    noise = float(np.sum(across**2)) / (len(across) * (len(along) - 1))
    return direction.scatter > SCATTER * noise
