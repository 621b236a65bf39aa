r"""How far each person climbs, where everybody has a reach of their own; compiled.

.. math:: \max_{g \ge 0} \sigma^*(\kappa (s + g)) - g^2/\rho^2

The slope of the step is a bell in :math:`g`, the marginal cost a line from zero: they meet
once or three times, and the outer two meetings are the local maxima.
"""

from __future__ import annotations

import math

import numpy as np

from countermove.response.smoothing import jit, rise, step

STRIDE = 0.05
"""Of the search for a change of sign, in units of the step's argument: finer than its bell."""
HALVINGS = 60


@jit
def uphill(gain, now, reach, sharpness):  # type: ignore[no-untyped-def]
    """Return the marginal utility of score times the squared reach."""
    return reach * reach * sharpness * rise(sharpness * (now + gain)) - 2.0 * gain


@jit
def bisected(low, high, now, reach, sharpness):  # type: ignore[no-untyped-def]
    """Return where the marginal utility turns from positive to negative in a bracket."""
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if uphill(middle, now, reach, sharpness) > 0.0:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@jit
def first_peak(now, reach, sharpness, most, stride):  # type: ignore[no-untyped-def]
    """Return the lowest local maximum."""
    low = 0.0
    while low < most:
        high = min(low + stride, most)
        if uphill(high, now, reach, sharpness) <= 0.0:
            return bisected(low, high, now, reach, sharpness)
        low = high
    return most


@jit
def last_peak(now, reach, sharpness, most, stride):  # type: ignore[no-untyped-def]
    """Return the highest local maximum."""
    high = most
    while high > 0.0:
        low = max(high - stride, 0.0)
        if uphill(low, now, reach, sharpness) > 0.0:
            return bisected(low, high, now, reach, sharpness)
        high = low
    return 0.0


@jit
def climbed_rows(now, reach, sharpness, first):  # type: ignore[no-untyped-def]
    """Return everybody's gain: the first local maximum, or the better of both."""
    gain = np.zeros(now.shape[0])
    for i in range(now.shape[0]):
        if not reach[i] > 0.0:
            continue
        # Nothing beyond pays: the step has a height of two.
        most = math.sqrt(2.0) * reach[i]
        stride = STRIDE / sharpness[i]
        low = first_peak(now[i], reach[i], sharpness[i], most, stride)
        gain[i] = low
        if first:
            continue
        high = last_peak(now[i], reach[i], sharpness[i], most, stride)
        here = step(sharpness[i] * (now[i] + low)) - (low / reach[i]) ** 2
        there = step(sharpness[i] * (now[i] + high)) - (high / reach[i]) ** 2
        if there > here:
            gain[i] = high
    return gain
