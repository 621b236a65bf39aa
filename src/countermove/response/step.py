r"""The smoothed step of SERM, its derivatives, and the curve on which it moves people.

.. math:: \sigma^*(y) = \tfrac12\sqrt{(y+1)^2+1} - \tfrac12\sqrt{(y-1)^2+1},
          \qquad y = \text{sharpness}\cdot\text{score}

Compiled forms take no difference of large roots. A stationary point pays
:math:`u = a\,\sigma^{*\prime}(y)`, a the sharpness; the last concave proxy
:math:`u = a\,\sigma_\cup'(y_{last}) + a\,\sigma_\cap'(y)`, its first part held fixed. Without
bounds a person at :math:`y_0` ends where :math:`\psi(y) = y - c\,\sigma^{*\prime}(y) = y_0`, one c
per rule and cost. Where :math:`\psi` folds back two branches are local maxima, parted by a
threshold; it and a short table of each branch are made once, then a row is a few Newton steps.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from countermove._types import Floats
from countermove.response.compilation import jit

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
def rise_and_bend(y):  # type: ignore[no-untyped-def]
    """Return the first and second derivative of the step, with two roots only."""
    # One formula with two readings and no branch around a root, so that loops over people go
    # through the vector unit.
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
def rise(y):  # type: ignore[no-untyped-def]
    """Return the derivative of the step: even, largest at 0 (1/sqrt 2)."""
    return rise_and_bend(y)[0]


@jit
def bend(y):  # type: ignore[no-untyped-def]
    """Return the second derivative of the step: odd, positive below 0."""
    return rise_and_bend(y)[1]


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


class PriceParts(NamedTuple):
    """Derivatives of the price by score, by the last point's score and by sharpness."""

    by_score: Any
    by_last: Any
    by_sharpness: Any


@jit
def price_parts(sharpness, after, last, proxy):  # type: ignore[no-untyped-def]
    """Return one price's derivatives: of the stationary point, or of the last concave proxy."""
    y, before = sharpness * after, sharpness * (last if proxy else after)
    convex, concave, square = half_bend(before + 1.0), half_bend(y - 1.0), sharpness * sharpness
    by_sharpness = convex_rise(before) + before * convex + concave_rise(y) - y * concave
    by_score = square * ((0.0 if proxy else convex) - concave)
    return PriceParts(by_score, square * convex if proxy else 0.0, by_sharpness)


@jit
def price_derivatives(sharpness, after, last, proxy):  # type: ignore[no-untyped-def]
    """Return the same for everybody, each of shape (n,)."""
    parts = np.empty((3, after.shape[0]))
    for i in range(after.shape[0]):
        parts[0, i], parts[1, i], parts[2, i] = price_parts(sharpness, after[i], last[i], proxy)
    return PriceParts(parts[0], parts[1], parts[2])


@jit
def price_rows(sharpness, scores):  # type: ignore[no-untyped-def]
    """Return the slope of the step in score units at every score, and its derivative."""
    price, bent = np.empty(scores.shape[0]), np.empty(scores.shape[0])
    for i in range(scores.shape[0]):
        risen, bent[i] = rise_and_bend(sharpness * scores[i])
        price[i], bent[i] = sharpness * risen, sharpness * sharpness * bent[i]
    return price, bent


def smoothed_step(y: Tensor) -> Tensor:
    """Return the smoothed step of a tensor (for utilities and other torch code)."""
    above, below = torch.sqrt((y + 1.0) ** 2 + 1.0), torch.sqrt((y - 1.0) ** 2 + 1.0)
    return 2.0 * y / (above + below)


def pull_at(a: Tensor, scores: Tensor) -> Tensor:
    """Return the slope of the convex half of the step, in score units."""
    up = a * scores + 1.0
    return 0.5 * a * up / torch.sqrt(1.0 + up * up)


def pull_slope(a: Tensor, scores: Tensor) -> Tensor:
    """Return its derivative."""
    up = a * scores + 1.0
    return 0.5 * a * a * (1.0 + up * up) ** -1.5


NODES = 64
"""Nodes per branch: Newton then starts within about 1e-3 and needs two steps."""
REACHED = 5.0
"""The table spans sinh(REACHED) step units to either side; beyond, Newton starts at y0."""
LEFT_OVER = 1e-14
"""Error, in step units, a Newton step may leave."""
BLOCK_STEPS = 3
"""Newton steps a block of people takes together; one is enough away from the folds."""
GRID = 128
"""Cells of a block's own table on either side of the threshold: a guess within about 1e-7."""
CELLS = 64
"""Equal cells of y0 on either side of the threshold, each with a node to search from."""
HINTED = 8.0
"""Step units the cells span on either side; further out the search is by halving."""


class Curve(NamedTuple):
    """Two branches as nodes of (y, psi(y), dy/dpsi), split at ``fold``, and the threshold."""

    c: float
    y: Floats
    psi: Floats
    pace: Floats
    fold: int
    threshold: float
    hints: NDArray[np.int64]
    first_cell: float
    per_cell: float
    low_fold: float
    high_fold: float


@jit
def bend_root(target, left, right, rising):  # type: ignore[no-untyped-def]
    """Return where the second derivative of the step passes ``target``, by bisection."""
    for _ in range(80):
        middle = 0.5 * (left + right)
        if (bend(middle) > target) == rising:
            right = middle
        else:
            left = middle
    return 0.5 * (left + right)


@jit
def descend(c, y0, left, right, y):  # type: ignore[no-untyped-def]
    """Solve ``psi(y) = y0`` inside a bracket on which psi rises; Newton guarded by bisection."""
    for _ in range(100):
        risen, bent = rise_and_bend(y)
        miss = y - c * risen - y0
        if miss > 0.0:
            right = y
        else:
            left = y
        slope = 1.0 - c * bent
        ahead = y - miss / slope if slope > 0.0 else right
        newton = left < ahead < right
        if not newton:
            ahead = 0.5 * (left + right)
        move = ahead - y
        y = ahead
        # What Newton leaves is at most |psi''| move^2 / 2 psi', and |psi''| < c.
        if (newton and c * move * move <= LEFT_OVER * slope) or right - left <= TIGHT * abs(y):
            return y, True
        if move == 0.0:
            return y, True
    return y, right - left <= 1e-10 * (1.0 + abs(y))


@jit
def equal_worth(c, low_fold, high_fold):  # type: ignore[no-untyped-def]
    """Return the place at which both branches are worth the same (their gap grows with y0)."""
    least = high_fold - c * rise(high_fold)
    most = low_fold - c * rise(low_fold)
    y0 = 0.5 * (least + most)
    for _ in range(100):
        low, _ = descend(c, y0, y0, low_fold, 0.5 * (y0 + low_fold))
        top = max(abs(y0), 1.0) + c
        high, _ = descend(c, y0, high_fold, top, max(0.5 * high_fold, high_fold + 0.5))
        gap = step(high) - (high - y0) ** 2 / (2.0 * c) - step(low) + (low - y0) ** 2 / (2.0 * c)
        if gap > 0.0:
            most = y0
        else:
            least = y0
        ahead = y0 - gap * c / (high - low)
        if not least < ahead < most:
            ahead = 0.5 * (least + most)
        move = abs(ahead - y0)
        y0 = ahead
        if move <= 1e-15 * (1.0 + abs(y0)):
            break
    return y0


@jit
def make_curve(c, first):  # type: ignore[no-untyped-def]
    """Tabulate the branches for constant ``c``; ``first`` keeps the lower one to its end."""
    y, psi, pace = np.empty(2 * NODES), np.empty(2 * NODES), np.empty(2 * NODES)
    span = math.sinh(REACHED)
    low_fold, high_fold, threshold = -INFLECTION, -INFLECTION, 0.0
    folded = c * bend(-INFLECTION) > 1.0
    if folded:
        far = -INFLECTION - max(2.0 * math.sqrt(math.sqrt(c)), 10.0)
        low_fold = bend_root(1.0 / c, far, -INFLECTION, True)
        high_fold = bend_root(1.0 / c, -INFLECTION, 0.0, False)
        threshold = equal_worth(c, low_fold, high_fold)
        if first:
            threshold = low_fold - c * rise(low_fold)
    else:
        threshold = low_fold - c * rise(low_fold)
    for k in range(NODES):
        reach = math.sinh(REACHED * k / (NODES - 1.0)) / span
        far = max(span, 2.0 * abs(low_fold))
        y[NODES - 1 - k] = low_fold - (far + low_fold) * reach
        y[NODES + k] = high_fold + (far - high_fold) * reach
    for k in range(2 * NODES):
        psi[k] = y[k] - c * rise(y[k])
        slope = 1.0 - c * bend(y[k])
        pace[k] = 1.0 / slope if slope > 1e-3 else 0.0
    hints = np.empty(2 * CELLS, np.int64)
    first_cell, last_cell = threshold - HINTED, threshold + HINTED
    per_cell = (2.0 * CELLS) / (last_cell - first_cell)
    node = 0
    for k in range(2 * CELLS):
        if k == CELLS:
            node = NODES
        end = NODES - 2 if k < CELLS else 2 * NODES - 2
        while node < end and psi[node + 1] <= first_cell + k / per_cell:
            node += 1
        hints[k] = node
    return Curve(
        c, y, psi, pace, NODES, threshold, hints, first_cell, per_cell, low_fold, high_fold
    )


@jit
def locate(curve, y0):  # type: ignore[no-untyped-def]
    """Return a bracket of where a person at ``y0`` ends, in step units, and a guess inside."""
    low, high = (0, curve.fold - 1) if y0 <= curve.threshold else (curve.fold, 2 * curve.fold - 1)
    if y0 < curve.psi[low]:
        if low == 0:
            return y0, curve.y[0], y0
        return curve.y[low], curve.y[low + 1], curve.y[low]
    if y0 >= curve.psi[high]:
        if high == curve.fold - 1:
            return curve.y[high - 1], curve.y[high], curve.y[high]
        top = y0 + curve.c * rise(y0)
        return max(y0, curve.y[high]), top + 1e-300, y0
    cell = (y0 - curve.first_cell) * curve.per_cell
    if 0.0 <= cell < 2.0 * CELLS:
        low = max(low, curve.hints[int(cell)])
        while curve.psi[low + 1] <= y0:
            low += 1
        high = low + 1
    while high - low > 1:
        middle = (low + high) // 2
        if curve.psi[middle] <= y0:
            low = middle
        else:
            high = middle
    width = curve.psi[high] - curve.psi[low]
    t = (y0 - curve.psi[low]) / width
    left, right = curve.y[low], curve.y[high]
    guess = left + t * (right - left)
    if curve.pace[low] > 0.0 and curve.pace[high] > 0.0:
        # Cubic through both nodes with their slopes.
        a = curve.pace[low] * width - (right - left)
        b = -curve.pace[high] * width + (right - left)
        guess += t * (1.0 - t) * (a * (1.0 - t) + b * t)
    return left, right, guess


@jit
def follow(curve, y0):  # type: ignore[no-untyped-def]
    """Return where a person at ``y0`` ends, in step units, and whether it converged."""
    left, right, guess = locate(curve, y0)
    return descend(curve.c, y0, left, right, guess)


@jit
def make_grid(curve, wanted):  # type: ignore[no-untyped-def]
    """Tabulate a cubic per equal cell of y0 around the threshold: a guess without a search."""
    width = HINTED / GRID
    cubics = np.empty((2 * GRID if wanted else 0, 4))
    for k in range(cubics.shape[0]):
        # The threshold itself belongs to the lower branch, so the upper one starts just beyond.
        near = curve.threshold + (k - GRID) * width
        far = near + width
        if k >= GRID:
            near += 1e-9 * (1.0 + abs(near))
        left, _ = follow(curve, near)
        right, _ = follow(curve, far)
        rise_left = width / max(1.0 - curve.c * bend(left), 0.1)
        rise_right = width / max(1.0 - curve.c * bend(right), 0.1)
        cubics[k, 0], cubics[k, 1] = left, rise_left
        cubics[k, 2] = 3.0 * (right - left) - 2.0 * rise_left - rise_right
        cubics[k, 3] = 2.0 * (left - right) + rise_left + rise_right
    return cubics


@jit
def follow_block(curve, grid, y0, m, y, done):  # type: ignore[no-untyped-def]
    """Write where each of ``m`` people ends into ``y``, and into ``done`` whether it converged."""
    # All take the same Newton steps side by side and whoever has arrived stands still, so
    # nobody's result depends on the others. The few that do not arrive go alone.
    per_cell = GRID / HINTED
    if grid.shape[0] == 0:
        for p in range(m):
            y[p], done[p] = follow(curve, y0[p])
        return
    for p in range(m):
        done[p] = False
        cell = (y0[p] - curve.threshold) * per_cell + GRID
        inside = (cell >= 0.0) & (cell < 2.0 * GRID)
        k = int(cell) if inside else 0
        t = cell - k
        cubic = grid[k, 0] + t * (grid[k, 1] + t * (grid[k, 2] + t * grid[k, 3]))
        y[p] = cubic if inside else y0[p]
    for _ in range(BLOCK_STEPS):
        waiting = 0
        for p in range(m):
            risen, bent = rise_and_bend(y[p])
            slope = 1.0 - curve.c * bent
            move = (y[p] - curve.c * risen - y0[p]) / slope
            ahead = y[p] - move
            y[p] = y[p] if done[p] else ahead
            arrived = (slope > 0.0) & (curve.c * move * move <= LEFT_OVER * slope)
            below = y0[p] <= curve.threshold
            own = (below & (ahead <= curve.low_fold)) | (~below & (ahead >= curve.high_fold))
            done[p] |= arrived & own
            waiting += not done[p]
        if waiting == 0:
            return
    for p in range(m):
        if not done[p]:
            y[p], done[p] = follow(curve, y0[p])
