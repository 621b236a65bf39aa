"""Examples of advice, feature by feature in original units, as the paper's Table 6 shows them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from countermove.production.recourse_measures import Parts
from countermove.recourse.advice import FOUND, Advice
from countermove.recourse.phrases import NOTHING
from countermove.recourse.words import sentences

COLUMNS = (
    "person",
    "feature",
    "before",
    "after",
    "change",
    "unit",
    "probability",
    "probability_after",
    "words",
)
"""Of the table of examples, after those that name the cell."""


def examples_of(
    advice: Advice, X: NDArray[np.float64], parts: Parts, count: int
) -> list[dict[str, Any]]:
    """Return what ``count`` people are advised, one row per feature that changes.

    They are spread evenly over the costs of the advice: one is the median, three are
    the cheapest quarter's end, the median and the dearest quarter's.

    Parameters
    ----------
    advice, X
        What was advised to these people, shape (n, d), standardised units.
    parts
        Their schema and units.
    count
        How many people; 0 shows nobody.
    """
    found = np.flatnonzero(advice.status == FOUND)
    if not count or not found.size:
        return []
    shares = (np.arange(count) + 1.0) / (count + 1.0)
    ranked = found[np.argsort(advice.cost[found], kind="stable")]
    picked = dict.fromkeys(ranked[np.round(shares * (len(ranked) - 1)).astype(int)].tolist())
    words = sentences(advice, X, parts.schema, parts.standardiser)
    before = parts.standardiser.inverse(X)
    action = parts.standardiser.action_to_original(advice.action)
    moved = np.abs(advice.action) > NOTHING
    columns = parts.schema.model_features()
    return [
        {
            "person": i,
            "feature": columns[j].name,
            "before": before[i, j],
            "after": before[i, j] + action[i, j],
            "change": action[i, j],
            "unit": parts.schema.feature(columns[j].source).unit or "",
            "probability": advice.probability_before[i],
            "probability_after": advice.probability_after[i],
            "words": words[i],
        }
        for i in picked
        for j in np.flatnonzero(moved[i]).tolist()
    ]
