"""What an auditor reads about refits: how much advice outlasts one, and what that costs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from countermove.recourse._audit_groups import share
from countermove.recourse.lasting import NONE_KEPT
from countermove.recourse.recommend import FOUND, Advice


def lasting_audit(advice: Advice, confidence: float | None, known: bool) -> dict[str, Any]:
    """Return how much advice outlasts a refit, and what that costs beside the cheapest action."""
    # `known` says whether the rule knows its covariance; nothing else is said without it.
    given = advice.status == FOUND
    facts: dict[str, Any] = {
        "confidence": confidence,
        "reason": None if known else NONE_KEPT,
        "advised": int(given.sum()),
        "lasting": None,
        "median_survival": None,
        "median_survival_without": None,
        "median_cost_ratio": None,
        "uncertain_weight": None,
    }
    if not known or not given.any():
        return facts
    facts |= {
        "median_survival": float(np.median(advice.survival[given])),
        "uncertain_weight": asdict(share(advice.uncertain_weight[given])),
    }
    if confidence is None:
        return facts
    lasts = given & advice.lasting
    ratio = 1.0 + advice.lasting_extra[lasts] / advice.least_cost[lasts]
    return facts | {
        "lasting": asdict(share(advice.lasting[given])),
        "median_survival_without": float(np.median(advice.survival_without[given])),
        "median_cost_ratio": float(np.median(ratio)) if ratio.size else None,
    }
