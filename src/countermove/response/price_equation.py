r"""The two price equations of the smoothed response and their derivatives.

With sharpness :math:`a` and :math:`y = a z`, the stationary point pays
:math:`u = a\,\sigma^{*\prime}(y)`; the last concave proxy pays
:math:`u = a\,\sigma_\cup'(y_{last}) + a\,\sigma_\cap'(y)` its first part held fixed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countermove._types import Floats


class PriceParts(NamedTuple):
    """Derivatives of the price by score, by the last point's score and by sharpness."""

    by_score: Floats
    by_last: Floats
    by_sharpness: Floats


def smoothed_step_price(sharpness: float, after: Floats) -> PriceParts:
    """Return the derivatives of the stationarity of the full smoothed objective."""
    y = sharpness * after
    bend = _half_bend(y + 1.0) - _half_bend(y - 1.0)
    rise = _convex_rise(y) + _concave_rise(y)
    return PriceParts(sharpness**2 * bend, np.zeros_like(y), rise + y * bend)


def last_proxy(sharpness: float, after: Floats, last: Floats) -> PriceParts:
    """Return the derivatives of the stationarity of the last concave proxy."""
    y, before = sharpness * after, sharpness * last
    convex, concave = _half_bend(before + 1.0), -_half_bend(y - 1.0)
    by_sharpness = _convex_rise(before) + before * convex + _concave_rise(y) + y * concave
    return PriceParts(sharpness**2 * concave, sharpness**2 * convex, by_sharpness)


def _half_bend(t: Floats) -> Floats:
    result: Floats = 0.5 * (1.0 + t * t) ** -1.5
    return result


def _convex_rise(y: Floats) -> Floats:
    result: Floats = 0.5 * (y + 1.0) / np.sqrt(1.0 + (y + 1.0) ** 2)
    return result


def _concave_rise(y: Floats) -> Floats:
    result: Floats = -0.5 * (y - 1.0) / np.sqrt(1.0 + (y - 1.0) ** 2)
    return result
