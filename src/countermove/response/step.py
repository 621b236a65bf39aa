r"""The smoothed step of SERM and its derivatives, compiled.

.. math:: \sigma^*(y) = \tfrac12\sqrt{(y+1)^2+1} - \tfrac12\sqrt{(y-1)^2+1},
          \qquad y = \text{sharpness}\cdot\text{score}

Every compiled form is rewritten so that no difference of large roots is taken. With a the
sharpness, the stationary point pays :math:`u = a\,\sigma^{*\prime}(y)`, the last concave proxy
:math:`u = a\,\sigma_\cup'(y_{last}) + a\,\sigma_\cap'(y)`, its first part held fixed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from countermove._types import Floats
from countermove.response._compile import jit

INFLECTION = 1.0340990104843837
"""Where the slope of the step stops being convex: the zero of its third derivative."""

SMALL_STEP = 1e-9
"""A Newton step of this share is the last one needed."""
TIGHT = 3e-16
"""A bracket of this share cannot be halved."""


@jit
def step(y):  # type: ignore[no-untyped-def]
    """Return the smoothed step at ``y``, in (-1, 1)."""
    above = math.sqrt((y + 1.0) * (y + 1.0) + 1.0)
    below = math.sqrt((y - 1.0) * (y - 1.0) + 1.0)
    return 2.0 * y / (above + below)


@jit
def rise(y):  # type: ignore[no-untyped-def]
    """Return the derivative of the step: even, largest at 0 (1/sqrt 2)."""
    # One formula with two readings and no branch around a root, so that loops over people go
    # through the vector unit.
    y = abs(y)
    up, down = y + 1.0, y - 1.0
    over, under = math.sqrt(1.0 + up * up), math.sqrt(1.0 + down * down)
    first, second = up * under, down * over
    near = y < 1.0
    above = first - second if near else 4.0 * y
    return 0.5 * above / (over * under * (1.0 if near else first + second))


@jit
def convex_rise(y):  # type: ignore[no-untyped-def]
    """Return the derivative of the convex half, ``sqrt((y+1)^2+1)/2``."""
    return 0.5 * (y + 1.0) / math.sqrt(1.0 + (y + 1.0) * (y + 1.0))


@jit
def concave_rise(y):  # type: ignore[no-untyped-def]
    """Return the derivative of the concave half, ``-sqrt((y-1)^2+1)/2``."""
    return -0.5 * (y - 1.0) / math.sqrt(1.0 + (y - 1.0) * (y - 1.0))


@jit
def half_bend(t):  # type: ignore[no-untyped-def]
    """Return ``(1 + t^2)^(-3/2) / 2``."""
    square = 1.0 + t * t
    return 0.5 / (square * math.sqrt(square))


@jit
def bend(y):  # type: ignore[no-untyped-def]
    """Return the second derivative of the step: odd, positive below 0."""
    return half_bend(y + 1.0) - half_bend(y - 1.0)


@jit
def rise_and_bend(y):  # type: ignore[no-untyped-def]
    """Return the first and second derivative of the step with two roots only (see `rise`)."""
    size = abs(y)
    up, down = size + 1.0, size - 1.0
    over, under = math.sqrt(1.0 + up * up), math.sqrt(1.0 + down * down)
    first, second = up * under, down * over
    near = size < 1.0
    above = first - second if near else 4.0 * size
    share = 1.0 / (over * under)
    risen = 0.5 * share * above / (1.0 if near else first + second)
    inverse, other = under * share, over * share
    bent = 0.5 * (inverse * inverse * inverse - other * other * other)
    return risen, (bent if y >= 0.0 else -bent)


@jit
def price_rows(sharpness, scores):  # type: ignore[no-untyped-def]
    """Return the slope of the step in score units at every score, and its derivative."""
    price, bent = np.empty(scores.shape[0]), np.empty(scores.shape[0])
    for i in range(scores.shape[0]):
        price[i] = sharpness * rise(sharpness * scores[i])
        bent[i] = sharpness * sharpness * bend(sharpness * scores[i])
    return price, bent


def smoothed_step(y: Tensor) -> Tensor:
    """Return the smoothed step of a tensor (for utilities and other torch code)."""
    above, below = torch.sqrt((y + 1.0) ** 2 + 1.0), torch.sqrt((y - 1.0) ** 2 + 1.0)
    return 2.0 * y / (above + below)


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


def last_proxy_price(sharpness: float, after: Floats, last: Floats) -> PriceParts:
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
