"""What the fit picture shows, as plain numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from countermove._types import Floats
from countermove.learning.people_estimation.candidates import Candidate
from countermove.learning.people_estimation.observed import Observation

POINTS = 1500
STRIPS = 30
"""People drawn one by one, and strips of gap for the averages."""


def matched_picture(observed: Observation, chosen: Candidate) -> dict[str, Any]:
    """Return points (gap, advance, model), and averages by strip of gap with their errors."""
    n = len(observed.gap)
    some = np.sort(np.linspace(0, n - 1, min(POINTS, n)).astype(np.intp))
    some = some[np.argsort(observed.gap[some], kind="stable")]
    stays = np.where(chosen.inside, chosen.noise.non_movers, 0.0)
    expected = (1.0 - stays) * (1.0 - chosen.noise.strays) * chosen.mean
    edges = np.unique(np.quantile(observed.gap, np.linspace(0.0, 1.0, min(STRIPS, n // 10) + 1)))
    if len(edges) < 2:
        edges = np.array([edges[0], edges[0] + 1.0])
    strip = np.clip(np.searchsorted(edges, observed.gap, side="right") - 1, 0, len(edges) - 2)
    count = np.maximum(np.bincount(strip, minlength=len(edges) - 1), 1)

    def mean(values: Floats) -> Floats:
        return np.bincount(strip, values, minlength=len(edges) - 1) / count

    seen = mean(observed.advance)
    error = np.sqrt(np.maximum(mean(observed.advance**2) - seen**2, 0.0) / count)
    return {
        "kind": "matched",
        "points": {
            "gap": observed.gap[some].tolist(),
            "advance": observed.advance[some].tolist(),
            "model": chosen.mean[some].tolist(),
        },
        "strips": {
            "gap": mean(observed.gap).tolist(),
            "seen": seen.tolist(),
            "error": error.tolist(),
            "model": mean(expected).tolist(),
        },
    }
