r"""Whether the chosen model fits at all.

If it does, everybody's place in their own predicted distribution is uniform on (0, 1), whatever
their gap. People are counted in cells of gap by place; a chi-square test asks for equal counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.learning.people_estimation.candidates import Candidate
from countermove.learning.people_estimation.noise import LEAST_ERROR, Advances
from countermove.randomness import generator

PLACES = 6
STRIPS = 10
PER_CELL = 8
"""Cells: at most 10 strips of gap with 6 places each, and no fewer than 8 people expected."""
SHARP = 1e-5
"""Of the spread: noise below this is rounding."""
REJECTED = 1e-3
"""p-value below which the model is said not to fit: one true model in a thousand is refused."""


@dataclass(frozen=True)
class Fit:
    """How well a model fits.

    Attributes
    ----------
    p_value
        Of the chi-square test; conservative, as no degrees are taken off for what was fitted.
    misplaced
        Share of people who would have to be elsewhere for the counts to be equal.
    strip
        Gaps (from, to) where it fits worst.
    counts
        People per strip and place.
    """

    p_value: float
    misplaced: float
    strip: tuple[float, float]
    counts: NDArray[np.int64]

    @property
    def rejected(self) -> bool:
        """Whether the model does not fit."""
        return self.p_value < REJECTED


def goodness_of_fit(gap: Floats, seen: Advances, model: Candidate) -> Fit:
    """Test a fitted model on the people it was fitted to."""
    places = _places(seen, model)
    n = len(gap)
    strips = max(1, min(STRIPS, n // (PLACES * PER_CELL)))
    edges = np.unique(np.quantile(gap, np.linspace(0.0, 1.0, strips + 1)))
    strip = np.clip(np.searchsorted(edges, gap, side="right") - 1, 0, max(len(edges) - 2, 0))
    place = np.minimum((places * PLACES).astype(np.int64), PLACES - 1)
    counts = np.zeros((max(len(edges) - 1, 1), PLACES), dtype=np.int64)
    np.add.at(counts, (strip, place), 1)
    expected = counts.sum(axis=1, keepdims=True) / PLACES
    return _test(counts, np.broadcast_to(expected, counts.shape), edges)


def _test(counts: NDArray[np.int64], expected: Floats, edges: Floats) -> Fit:
    from scipy.stats import chi2

    parts = (counts - expected) ** 2 / np.maximum(expected, 1e-12)
    freedom = counts.shape[0] * (counts.shape[1] - 1)
    worst = int(np.argmax(parts.sum(axis=1)))
    return Fit(
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
