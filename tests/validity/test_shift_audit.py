"""Where nobody coordinates, the audit of a shift raises an alarm no more often than it says."""

import numpy as np
import pytest

from countermove.dynamics.collective.shift_audit import audit_shift

RUNS, LEVEL = 400, 0.1
CEILING = LEVEL + 3.0 * np.sqrt(LEVEL * (1.0 - LEVEL) / RUNS)


def people(rng, n=30):
    return rng.gamma(2.0, size=(n, 3)), np.arange(n) % 3


def matched(rng):
    X, y = people(rng)
    return X, X + rng.laplace(size=X.shape) * rng.gamma(1.0, size=(len(X), 1)), y, None


def drifting(rng):
    X, y = people(rng)
    return X, X + 1.0 + rng.gamma(1.0, size=X.shape), y, None


def sampled(rng):
    (X, y), (Z, z) = people(rng), people(rng, 45)
    return X, Z, y, z


@pytest.mark.validity
@pytest.mark.quick_validity
@pytest.mark.parametrize(
    ("draw", "null"), [(matched, "no_shift"), (drifting, "same_for_all"), (sampled, "no_shift")]
)
def test_false_alarms(draw, null):
    rng = np.random.default_rng(0)
    alarms = 0
    for run in range(RUNS):
        X, Z, y, z = draw(rng)
        alarms += audit_shift(
            X, Z, y, z, null=null, false_alarm=LEVEL, rearrangements=49, seed=run
        ).alarm
    assert alarms / RUNS <= CEILING


@pytest.mark.validity
@pytest.mark.parametrize(("shift", "least"), [(0.3, 0.15), (1.0, 0.95)])
def test_power(shift, least):
    """One class of thirty moves by some spreads: the larger, the surer the alarm."""
    rng, alarms = np.random.default_rng(1), 0
    for run in range(100):
        X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
        moved = X + rng.normal(scale=0.5, size=X.shape)
        moved[y == 1, 0] += shift
        alarms += audit_shift(X, moved, y, false_alarm=0.05, rearrangements=99, seed=run).alarm
    assert alarms / 100 >= least
