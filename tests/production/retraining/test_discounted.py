"""Rules that forget at several speeds, and are moved on to the newest month."""

from __future__ import annotations

import numpy as np
from tests.production.retraining.known_worlds import DriftingWorld

from countermove.production.retraining.discounted import DiscountedFits, Remembered
from countermove.production.retraining.policy import DriftActs
from countermove.production.retraining.set_back import as_seen


def test_a_rule_on_a_steady_course_is_moved_on_to_the_newest_month():
    """Twelve months of a law that turns at one pace: the memory's lag is made up for."""
    world = DriftingWorld("rotation", 38)
    months = [world.people_of(month, 4000, 1) for month in range(13)]
    draws = np.random.default_rng(38)
    tables = [as_seen(X, np.where(draws.random(len(X)) < p, 1.0, -1.0)) for X, p in months]
    ages = [float(12 - month) for month in range(13)]
    nobody = [np.zeros(4000, dtype=bool)] * 13
    given = (tables, ages, nobody, [np.ones(4000)] * 13, np.zeros(6), 12.0, 0, DriftActs())
    found = DiscountedFits(*given)._fits(None, np.zeros(6), 40)
    law = world.law(12)[0]

    def angle(theta):
        cosine = theta[:-1] @ law / np.linalg.norm(theta[:-1])
        return np.degrees(np.arccos(min(cosine, 1.0)))

    assert angle(found[Remembered(0.7)]) > 8.0
    assert angle(found[Remembered(0.7, True)]) < 0.5 * angle(found[Remembered(0.7)])
    assert set(found) == {Remembered(g) for g in (0.1, 0.4, 0.7, 1.0)} | {
        Remembered(g, True) for g in (0.1, 0.4, 0.7)
    }
