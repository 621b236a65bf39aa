"""A promise to people who were estimated fails no more often than it says, both errors together.

Every draw estimates people from one deployment and promises to others on calibration rows.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from countermove.learning.people_estimation import estimate_people, simulate_deployment
from countermove.recourse import calibrate_after_response
from countermove.response import Response

from .people_deployments import log
from .test_pare_promises import (
    DIFFERENT,
    POPULATION,
    around,
    box,
    most_failures,
    score,  # noqa: F401
    share_refused,
)

SEEN, HELD = 500, 1500
"""People of the deployment, and calibration rows: the estimate is the smaller of the two."""
MISS_RATE, LIMIT = 0.1, 0.5


def estimated(rule, seed: int, confidence: float) -> Response:
    """Return people as estimated from what those of one deployment did."""
    X, ids = POPULATION.sample(SEEN, seed=50_000 + seed)[0], np.arange(SEEN)
    after = simulate_deployment(rule, X, DIFFERENT.with_seed(seed + 1))
    found = estimate_people(rule, X, after, key=(ids, ids))
    return found.population(force=True, confidence=confidence)


def broken_and_kept(score, promise: str, draws: int, confidence: float) -> tuple[int, float]:  # noqa: F811
    """Return how many draws promise falsely, and the share of draws that promise anything."""

    def truth(cut: float) -> float:
        return share_refused(cut, LIMIT if promise == "can" else 0.0)

    cuts = around(truth, MISS_RATE, below=2.0)
    false = np.array([truth(cut) > MISS_RATE for cut in cuts])
    broken, kept = 0, 0
    for seed in range(draws):
        people = estimated(score, seed, confidence)
        X = POPULATION.sample(HELD, seed=90_000 + seed)[0]
        found = calibrate_after_response(
            score, X, people, expit(cuts), miss_rate=MISS_RATE, actions=box(LIMIT), promise=promise
        )
        broken += bool((found.passed & false).any())
        kept += bool(found.passed[0])
    log.info("%s | %s | %d | broken %d, kept %d", promise, confidence, draws, broken, kept)
    return broken, kept / draws


@pytest.mark.validity
@pytest.mark.parametrize("draws", [pytest.param(12, marks=pytest.mark.quick_validity), 500])
@pytest.mark.parametrize("promise", ["can", "will"])
def test_estimate_and_promise_together_fail_as_rarely_as_stated(score, draws, promise):  # noqa: F811
    broken, kept = broken_and_kept(score, promise, draws, 0.975)
    assert broken <= most_failures(draws, 0.05)
    assert kept > 0.5
