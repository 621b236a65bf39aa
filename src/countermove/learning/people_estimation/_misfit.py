"""Whether the rows identify the cost, and whether the chosen model fits them: if not, how."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.errors import shown
from countermove.learning.people_estimation._candidates import LEAST_ERROR, Advances, Candidate
from countermove.learning.people_estimation._moves import scale_of
from countermove.learning.people_estimation.observation import Observation
from countermove.randomness import generator

if TYPE_CHECKING:
    from countermove.learning.people_estimation._moves import Direction


WIDE = 20.0
"""An interval whose ends differ by more than this factor is of no use for training."""
STRAYS = 0.02
"""Share of people moving for reasons of their own that is reported."""
SCATTER = 1.5
"""Off-line moves this many times the records' noise are not noise."""
OFF_LINE = 1e-3
"""Share of the moves' energy off the line that is not rounding, where records are exact."""
PLACES = 6
STRIPS = 10
PER_CELL = 8
"""Cells: at most 10 strips of gap with 6 places each, and no fewer than 8 people expected."""
DRIFT = 0.01
"""Of everybody, per unit of gap, that is worth a word."""
SHARP = 1e-5
"""Of the spread: noise below this is rounding."""
REJECTED = 1e-3
"""p-value below which a model is said not to fit: one true model in a thousand is refused."""
PRICES_REJECTED = 0.01
"""The same for prices, whose tests are named: one true model in a hundred is refused."""


def nothing_to_learn(observed: Observation, difficulty: Floats) -> tuple[str, ...]:
    """Return why the rows can show nothing, before any model is fitted."""
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
        reason = "people moved as much where the rule gave them no reason as where it did"
        if abs(chosen.drift[1]) > DRIFT:
            reason += f", by {chosen.drift[1]:+.2g} per unit of gap (regression to the mean)"
        return (reason,)
    ends = chosen.scale_interval
    assert ends is not None
    if ends.low == 0.0 and not math.isfinite(ends.high):
        return ("the likelihood hardly depends on the scale: both ends of its interval are open",)
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
    """Say what staying shows: a low cost would have moved one of the nearest, if half respond."""
    near = np.sort(difficulty[(difficulty > 0.0) & np.isfinite(difficulty)])
    count = math.ceil(math.log(alpha) / math.log(0.5))
    text = "nobody moved: high costs and people who never respond to rules look the same"
    if len(near) >= count:
        least = scale_of(float(near[count - 1]))
        text += f" (if at least half of them would respond, the scale is at least {least:.4g})"
    return text


def _off_line(observed: Observation, direction: Direction) -> bool:
    """Return whether moves scatter around their line by more than the records' noise."""
    if observed.recorded_exactly:
        return direction.scatter > OFF_LINE * direction.energy
    moves = observed.moves[:, direction.usable]
    if direction.usable.sum() < 2:
        return False
    along = direction.along[direction.usable]
    along = along / np.linalg.norm(along)
    # Whoever went back, if anywhere, did not respond: they show the records' noise across the line.
    still = observed.moves @ observed.slope <= 0.0
    if not still.any():
        return False
    across = moves[still] - np.outer(moves[still] @ along, along)
    noise = float(np.sum(across**2)) / (len(across) * (len(along) - 1))
    return direction.scatter > SCATTER * noise


@dataclass(frozen=True)
class Misfit:
    """One way in which people are not as the model says."""

    # "stop short", "two prices", "awareness by gap", "price by group" or "elsewhere".
    name: str
    words: str
    p_value: float  # allowing for the number of tests


@dataclass(frozen=True)
class GoodnessOfFit:
    """How well a model fits."""

    p_value: float
    misplaced: float  # share of people who would have to be elsewhere for the counts to be equal
    strip: tuple[float, float]  # gaps (from, to) where it fits worst
    counts: NDArray[np.int64]  # people per strip and place
    level: float = REJECTED
    misfits: tuple[Misfit, ...] = ()

    @property
    def rejected(self) -> bool:
        """Whether the model does not fit."""
        return self.p_value < self.level


def goodness_of_fit(gap: Floats, seen: Advances, model: Candidate) -> GoodnessOfFit:
    """Test a fitted model on the people it was fitted to."""
    # If it fits, everybody's place in their own predicted distribution is uniform on (0, 1),
    # whatever their gap: a chi-square test of equal counts in cells of gap by place. Conservative:
    # no degrees are taken off for what was fitted.
    return by_place(gap, _places(seen, model))


def by_place(gap: Floats, places: Floats) -> GoodnessOfFit:
    """Test that places are uniform whatever the gap."""
    n = len(gap)
    strips = max(1, min(STRIPS, n // (PLACES * PER_CELL)))
    edges = np.unique(np.quantile(gap, np.linspace(0.0, 1.0, strips + 1)))
    strip = np.clip(np.searchsorted(edges, gap, side="right") - 1, 0, max(len(edges) - 2, 0))
    place = np.minimum((places * PLACES).astype(np.int64), PLACES - 1)
    counts = np.zeros((max(len(edges) - 1, 1), PLACES), dtype=np.int64)
    np.add.at(counts, (strip, place), 1)
    expected = counts.sum(axis=1, keepdims=True) / PLACES
    return _test(counts, np.broadcast_to(expected, counts.shape), edges)


def _test(counts: NDArray[np.int64], expected: Floats, edges: Floats) -> GoodnessOfFit:
    from scipy.stats import chi2

    parts = (counts - expected) ** 2 / np.maximum(expected, 1e-12)
    freedom = counts.shape[0] * (counts.shape[1] - 1)
    worst = int(np.argmax(parts.sum(axis=1)))
    return GoodnessOfFit(
        p_value=float(chi2.sf(float(parts.sum()), freedom)),
        misplaced=float(0.5 * np.abs(counts - expected).sum() / counts.sum()),
        strip=(float(edges[worst]), float(edges[min(worst + 1, len(edges) - 1)])),
        counts=counts,
    )


def _places(seen: Advances, model: Candidate) -> Floats:
    """Return where in their predicted distribution people are; an atom is spread at random."""
    from scipy.special import ndtr

    noise, mean = model.noise, model.mean
    share = np.where(model.inside, noise.non_movers, 1.0)
    if model.name == "drift":
        share = np.full(len(mean), noise.non_movers if seen.exact else 0.0)
    error = noise.optimisation_error * np.abs(mean)
    floor = max(noise.measurement, LEAST_ERROR * seen.spread)
    rng = generator(0, "places at an atom")
    deviation = np.hypot(error, floor)
    moving = ndtr((seen.values - mean) / deviation)
    # Without noise to speak of everybody who moves is at one point: an atom too.
    sharp = np.maximum(deviation, np.abs(seen.values - mean)) < SHARP * seen.spread
    moving = np.where(sharp, rng.random(len(mean)), moving)
    straying = ndtr(seen.values / math.hypot(seen.spread, 0.0 if seen.exact else floor))
    moved = noise.strays * straying + (1.0 - noise.strays) * (1.0 - share) * moving
    stayed = (1.0 - noise.strays) * share
    if not seen.exact:
        result: Floats = moved + stayed * ndtr(seen.values / floor)
        return result
    atom = np.where(seen.still, rng.random(len(mean)), (seen.values > 0.0).astype(np.float64))
    spread: Floats = moved + stayed * atom
    return spread
