"""Theorem 4.2 on cells of score and label, for two deployed thresholds."""

from __future__ import annotations

import numpy as np

from countermove._types import Floats
from countermove.transfer import formulas
from countermove.transfer.sample import Pair, Sample
from countermove.transfer.weights import cell_weights, score_edges


def cell_bounds(
    pairs: tuple[Pair, Pair], thresholds: tuple[float, float]
) -> dict[str, float | None]:
    """Return Theorem 4.2 on cells of score and label, or nothing where people leave them."""
    spreads = [
        cell_weights(pair, _edges(pair.source, t)).variance
        for pair, t in zip(pairs, thresholds, strict=True)
    ]
    own, best = spreads
    if own is None or best is None:
        return {"upper": None, "upper_tighter": None}
    errors = [pairs[0].source.error(t) for t in thresholds]
    return {
        "upper": float(formulas.theorem_4_2(errors[1], own, best)),
        "upper_tighter": float(formulas.theorem_4_2_tighter(errors[0], errors[1], own, best)),
    }


def _edges(source: Sample, threshold: float) -> Floats:
    """Return bins with the threshold among them; one bin where everybody is decided alike."""
    above = source.accepted(threshold)
    if above.all() or not above.any():
        return np.array([threshold])
    return score_edges(source, threshold=threshold)
