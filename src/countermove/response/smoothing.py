r"""The smoothed step of SERM and its derivatives, compiled.

.. math:: \sigma^*(y) = \tfrac12\sqrt{(y+1)^2+1} - \tfrac12\sqrt{(y-1)^2+1},
          \qquad y = \text{sharpness}\cdot\text{score}

Every form below is rewritten so that no difference of large roots is taken.
"""

from __future__ import annotations

import hashlib
import math
import os
from pathlib import Path
from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

INFLECTION = 1.0340990104843837
"""Where the slope of the step stops being convex: the zero of its third derivative."""

SMALL_STEP = 1e-9
"""A Newton step of this share is the last one needed."""
TIGHT = 3e-16
"""A bracket of this share cannot be halved."""


def forget_stale_kernels(folder: Path) -> None:
    """Drop the compiled kernels of a folder when any of its sources has changed.

    Numba looks at one file at a time, but a kernel has those it calls compiled
    into it, so an edit elsewhere would leave it out of date.
    """
    if not os.access(folder, os.W_OK):
        return
    sources = b"".join(path.read_bytes() for path in sorted(folder.glob("*.py")))
    fingerprint = hashlib.sha256(sources).hexdigest()
    cache = folder / "__pycache__"
    mark = cache / "kernels.sha256"
    if mark.exists() and mark.read_text() == fingerprint:
        return
    cache.mkdir(exist_ok=True)
    for compiled in cache.glob("*.nb[ic]"):
        compiled.unlink(missing_ok=True)
    mark.write_text(fingerprint)


forget_stale_kernels(Path(__file__).parent)


def jit(function: Any) -> Any:
    """Compile a row kernel; no fast-math, so a row's result never depends on its neighbours."""
    return numba.njit(cache=True, error_model="numpy", nogil=True)(function)


@jit
def step(y):  # type: ignore[no-untyped-def]
    """Return the smoothed step at ``y``, in (-1, 1)."""
    above = math.sqrt((y + 1.0) * (y + 1.0) + 1.0)
    below = math.sqrt((y - 1.0) * (y - 1.0) + 1.0)
    return 2.0 * y / (above + below)


@jit
def rise(y):  # type: ignore[no-untyped-def]
    """Return the derivative of the step: even, largest at 0 (1/sqrt 2).

    One formula with two readings and no branch around a root, so that loops over
    people go through the vector unit.
    """
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
