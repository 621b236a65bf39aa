"""Bounds of a network over the actions of a node, and the cheapest action they leave, compiled.

Every activation lies between two lines over its range (CROWN), so that the score lies below one
line in the action; what that line asks for at least is a price nobody gets below.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from countermove._types import Floats, Index
from countermove.response.compilation import forget_stale_kernels, jit

forget_stale_kernels(Path(__file__).parent)

RELU, TANH, ELU, SOFTPLUS = range(4)
KINDS = {"relu": RELU, "tanh": TANH, "elu": ELU, "softplus": SOFTPLUS}
NARROW = 1e-7
"""Ranges below this are bounded by a tangent, moved by the square of the width."""
STEP, LONGEST = 1.0 / 64.0, 20.0
"""Of the table of tangents to tanh; beyond, its end is 1 to the last digit."""
DOUBLINGS, HALVINGS = 40, 14
"""Of the worth of a gain, until the cheapest action at it gains enough, and back."""
DUALS = 2
WORTH = 2.5
"""Ranges heed the limit on cost where the corners of a node exceed it so many times."""
"""Prices of distance tried for the range of a line within a limit on cost."""
SHARES = np.array([1.0, 0.0, 0.5])
"""Of the kink of a cost, max(0, v·δ), taken as a line v·δ."""


class Layers(NamedTuple):
    """A network: the hidden layers one after the other, weights flat."""

    sizes: Index
    kinds: Index
    leaks: Floats
    first: Floats  # (neurons, m), weights of the movable columns
    weights: Floats  # of every later layer, row by row
    sizes_of_weights: Floats  # their absolute values
    offsets: Floats  # of all layers; those of the first are with the people
    head: Floats
    bias: float
    tangents: Floats


class PricedRoom(NamedTuple):
    """What a person may do, m columns: numbers between ends, or one of the states of a block."""

    numbers: Index
    step: Floats  # (m,), 0 where any number will do
    block: Index  # first state of each block of listed states, one more at the end
    weights: Floats  # (m,) price of a square
    halves: Floats  # (m,) 1 / (2 price), 0 where squares are free
    kink: Floats  # (m,) price of the positive part of a sum
    kinked: bool
    A: Floats  # A δ + b >= 0, the kink's own row last


class Here(NamedTuple):
    """One person: the first layer where they stand, and their states."""

    base: Floats  # (neurons,)
    states: Floats  # (S, m)
    pushed: Floats  # (S, neurons) what a state adds to the first layer
    squares: Floats  # (S,) prices
    kinks: Floats  # (S,)
    b: Floats  # (rows,)


class Lines(NamedTuple):
    """What a bound writes: of every neuron its range, lines and part in the score."""

    low: Floats
    high: Floats
    slope_up: Floats
    shift_up: Floats
    slope_down: Floats
    shift_down: Floats
    part: Floats
    centre: Floats  # (neurons, m + 2)
    radius: Floats
    way: Floats  # (m,) slope of the line above the score
    best: Floats  # (m,) the cheapest action at which that line reaches what is asked for


@cache
def tangents() -> Floats:
    """Return where a line from (-a, tanh(-a)) touches tanh, or a little beyond, on a grid of a."""
    a = np.arange(0.0, LONGEST + STEP, STEP)
    low, high = np.zeros_like(a), np.full_like(a, 10.0)
    for _ in range(60):
        mid = 0.5 * (low + high)
        tanh = np.tanh(mid)
        short = (1.0 - tanh**2) * (mid + a) > tanh + np.tanh(a)
        low, high = np.where(short, mid, low), np.where(short, high, mid)
    return np.append(high[1:] + 1e-9, high[-1] + 1.0)


@jit
def value_of(kind, leak, z):  # type: ignore[no-untyped-def]
    """Return an activation."""
    if kind == RELU:
        return z if z > 0.0 else leak * z
    if kind == TANH:
        return np.tanh(z)
    if kind == ELU:
        return z if z > 0.0 else np.expm1(z)
    return max(z, 0.0) + np.log1p(np.exp(-abs(z)))


@jit
def _slope_of(kind, z):  # type: ignore[no-untyped-def]
    """Return the derivative of a smooth activation."""
    if kind == TANH:
        t = np.tanh(z)
        return 1.0 - t * t
    if kind == ELU:
        return 1.0 if z > 0.0 else np.exp(z)
    return 1.0 / (1.0 + np.exp(-z)) if z > -700.0 else 0.0


@jit
def _above_tanh(low, high, table):  # type: ignore[no-untyped-def]
    """Return a line above tanh over a range."""
    if high <= 0.0:
        slope = (np.tanh(high) - np.tanh(low)) / (high - low)
        return slope, np.tanh(low) - slope * low
    if low >= 0.0:
        at = 0.5 * (low + high)
    else:
        place = int(-low / STEP)
        if place >= table.size - 1:
            return 0.0, np.tanh(high)
        at = table[place]
        if at >= high:
            slope = (np.tanh(high) - np.tanh(low)) / (high - low)
            if 1.0 - np.tanh(high) ** 2 >= slope:
                return slope, np.tanh(low) - slope * low
            at = high
    t = np.tanh(at)
    slope = 1.0 - t * t
    return slope, t - slope * at


@jit
def relaxed(kind, leak, low, high, table):  # type: ignore[no-untyped-def]
    """Return slope and shift of a line above an activation over a range, and of one below."""
    if kind == RELU:
        if low >= 0.0:
            return 1.0, 0.0, 1.0, 0.0
        if high <= 0.0:
            return leak, 0.0, leak, 0.0
        slope = (high - leak * low) / (high - low)
        return slope, high - slope * high, (1.0 if high > -low else leak), 0.0
    middle = 0.5 * (low + high)
    if high - low < NARROW:
        slope, apart = _slope_of(kind, middle), (high - low) ** 2
        shift = value_of(kind, leak, middle) - slope * middle
        return slope, shift + apart, slope, shift - apart
    if kind == TANH:
        up, above = _above_tanh(low, high, table)
        down, below = _above_tanh(-high, -low, table)
        return up, above, down, -below
    first = value_of(kind, leak, low)
    slope = (value_of(kind, leak, high) - first) / (high - low)
    touch = _slope_of(kind, middle)
    return slope, first - slope * low, touch, value_of(kind, leak, middle) - touch * middle


@jit
def _numbers_top(row, sign, limit, room, low, high):  # type: ignore[no-untyped-def]
    """Return a bound of sign * row . action over the numbers of a node and what they may cost."""
    total, size = 0.0, 0.0
    for b in range(room.numbers.size):
        j = room.numbers[b]
        w = sign * row[j]
        total += w * high[j] if w > 0.0 else w * low[j]
        size += w * w * room.halves[j]
    if not limit < np.inf or size == 0.0:
        return total
    worth = np.sqrt(2.0 * limit / size)
    for _ in range(DUALS):
        # For every worth of a gain: worth * gain <= limit + the most of worth * gain - price.
        bound, paid = limit, 0.0
        for b in range(room.numbers.size):
            j = room.numbers[b]
            w, q = sign * worth * row[j], room.weights[j]
            d = w * room.halves[j]
            if q == 0.0:
                d = np.inf if w > 0.0 else -np.inf
            d = min(max(d, low[j]), high[j])
            part = q * d * d
            bound += w * d - part
            paid += part
        total = min(total, bound / worth)
        if paid > 0.95 * limit:
            break
        worth *= min(np.sqrt(limit / max(paid, 1e-300)), 10.0)
    return total


@jit
def _range(row, sign, limit, room, here, low, high, states):  # type: ignore[no-untyped-def]
    """Return a bound of sign * row . action over a node and what it may cost."""
    total = _numbers_top(row, sign, limit, room, low, high)
    for k in range(room.block.size - 1):
        most = -np.inf
        for s in range(room.block[k], room.block[k + 1]):
            if states[s]:
                gain = 0.0
                for j in range(here.states.shape[1]):
                    gain += row[j] * here.states[s, j]
                most = max(most, sign * gain)
        total += most
    return total


@jit
def _first_layer(net, limit, room, here, low, high, states, lines):  # type: ignore[no-untyped-def]
    """Write the exact ranges of the first layer and lines through them."""
    m = low.size
    for i in range(net.sizes[0]):
        row = net.first[i]
        least = here.base[i] - _numbers_top(row, -1.0, limit, room, low, high)
        most = here.base[i] + _numbers_top(row, 1.0, limit, room, low, high)
        for k in range(room.block.size - 1):
            fewest, largest = np.inf, -np.inf
            for s in range(room.block[k], room.block[k + 1]):
                if states[s]:
                    fewest = min(fewest, here.pushed[s, i])
                    largest = max(largest, here.pushed[s, i])
            least += fewest
            most += largest
        lines.low[i], lines.high[i] = least, most
        for j in range(m):
            lines.centre[i, j] = net.first[i, j]
            lines.radius[i, j] = 0.0
        lines.centre[i, m], lines.radius[i, m] = here.base[i], 0.0


@jit
def _activate(net, layer, at, lines, M, R):  # type: ignore[no-untyped-def]
    """Write the lines of a layer's activations, and their middles and halves, as input."""
    kind, leak, m = net.kinds[layer], net.leaks[layer], lines.way.size
    for i in range(net.sizes[layer]):
        n = at + i
        low, high = lines.low[n], lines.high[n]
        up, above, down, below = relaxed(kind, leak, low, high, net.tangents)
        lines.slope_up[n], lines.shift_up[n] = up, above
        lines.slope_down[n], lines.shift_down[n] = down, below
        for j in range(m + 1):
            most = up * (lines.centre[n, j] + lines.radius[n, j])
            least = down * (lines.centre[n, j] - lines.radius[n, j])
            M[i, j], R[i, j] = 0.5 * (most + least), 0.5 * (most - least)
        M[i, m] += 0.5 * (above + below)
        R[i, m] += 0.5 * (above - below)
        least, most = value_of(kind, leak, low), value_of(kind, leak, high)
        M[i, m + 1], R[i, m + 1] = 0.5 * (most + least), 0.5 * (most - least)


@jit
def _next_layer(net, layer, at, start, limit, room, here, node, lines, M, R):  # type: ignore[no-untyped-def]
    """Write the ranges and lines of a later layer; the better of lines and intervals counts."""
    lo, hi, states = node
    n_in, n_out, m = net.sizes[layer - 1], net.sizes[layer], lo.size
    W = net.weights[start : start + n_in * n_out].reshape(n_out, n_in)
    V = net.sizes_of_weights[start : start + n_in * n_out].reshape(n_out, n_in)
    centre, radius = lines.centre[at : at + n_out], lines.radius[at : at + n_out]
    centre[:] = np.dot(W, M[:n_in])
    radius[:] = np.dot(V, R[:n_in])
    row = lines.best
    for k in range(n_out):
        n, shift = at + k, net.offsets[at + k]
        centre[k, m] += shift
        for j in range(m):
            row[j] = centre[k, j] + radius[k, j]
        most = centre[k, m] + radius[k, m] + _range(row, 1.0, limit, room, here, lo, hi, states)
        for j in range(m):
            row[j] = centre[k, j] - radius[k, j]
        least = centre[k, m] - radius[k, m] - _range(row, -1.0, limit, room, here, lo, hi, states)
        most = min(most, centre[k, m + 1] + radius[k, m + 1] + shift)
        least = max(least, centre[k, m + 1] - radius[k, m + 1] + shift)
        lines.low[n], lines.high[n] = min(least, most), max(least, most)


@jit
def _backwards(net, here, lines):  # type: ignore[no-untyped-def]
    """Write the line above the score, from the head back to the actions; return its constant."""
    depth = net.sizes.size
    at, start, constant = lines.low.size, net.weights.size, net.bias
    for layer in range(depth - 1, -1, -1):
        size = net.sizes[layer]
        at -= size
        if layer == depth - 1:
            lines.part[at : at + size] = net.head
        part = lines.part[at : at + size].copy()
        for k in range(size):
            n = at + k
            if part[k] > 0.0:
                constant += part[k] * lines.shift_up[n]
                part[k] *= lines.slope_up[n]
            else:
                constant += part[k] * lines.shift_down[n]
                part[k] *= lines.slope_down[n]
        if layer == 0:
            lines.way[:] = np.dot(part, net.first)
            return constant + np.dot(part, here.base)
        constant += np.dot(part, net.offsets[at : at + size])
        before = net.sizes[layer - 1]
        start -= size * before
        W = net.weights[start : start + size * before].reshape(size, before)
        lines.part[at - before : at] = np.dot(part, W)
    return constant


@jit
def line_above(net, limit, room, here, node, lines, M, R):  # type: ignore[no-untyped-def]
    """Write the slope of a line above the score over a node; return its constant."""
    low, high, states = node
    corner = 0.0
    for b in range(room.numbers.size):
        j = room.numbers[b]
        corner += room.weights[j] * max(low[j] * low[j], high[j] * high[j])
    limit = limit if corner > WORTH * limit else np.inf
    _first_layer(net, limit, room, here, low, high, states, lines)
    at, start = 0, 0
    for layer in range(net.sizes.size):
        if layer > 0:
            _next_layer(net, layer, at, start, limit, room, here, node, lines, M, R)
            start += net.sizes[layer] * net.sizes[layer - 1]
        _activate(net, layer, at, lines, M, R)
        at += net.sizes[layer]
    return _backwards(net, here, lines)


@jit
def _at_price(worth, share, room, here, node, lines, action):  # type: ignore[no-untyped-def]
    """Write the action of the largest worth * line - price; return that and the line's gain."""
    low, high, states = node
    total, gain = 0.0, 0.0
    for b in range(room.numbers.size):
        j = room.numbers[b]
        pull = worth * lines.way[j] - share * room.kink[j]
        if room.weights[j] > 0.0:
            d = min(max(pull / (2.0 * room.weights[j]), low[j]), high[j])
        elif pull != 0.0:
            d = high[j] if pull > 0.0 else low[j]
        else:
            d = min(max(0.0, low[j]), high[j])
        action[j] = d
        total += pull * d - room.weights[j] * d * d
        gain += lines.way[j] * d
    for k in range(room.block.size - 1):
        most, chosen, along = -np.inf, -1, 0.0
        for s in range(room.block[k], room.block[k + 1]):
            if states[s]:
                g = np.dot(lines.way, here.states[s])
                left = worth * g - here.squares[s] - share * here.kinks[s]
                if left > most:
                    most, chosen, along = left, s, g
        total += most
        gain += along
        for j in range(action.size):
            if here.states[chosen, j] != 0.0:
                action[j] = here.states[chosen, j]
    return total, gain


@jit
def _at_share(share, need, limit, room, here, node, lines):  # type: ignore[no-untyped-def]
    """Return what gaining ``need`` costs at least with so much of the kink taken as a line."""
    lines.best[:] = 0.0
    total, gain = _at_price(0.0, share, room, here, node, lines, lines.best)
    best = max(-total, 0.0)
    if gain >= need:
        return best
    size = 1e-300
    for b in range(room.numbers.size):
        j = room.numbers[b]
        size += lines.way[j] ** 2 / max(room.weights[j], 1e-9)
    near, far, found = 0.0, 2.0 * (need - gain) / size, False
    for turn in range(DOUBLINGS + HALVINGS):
        if not found and turn >= DOUBLINGS:
            break
        worth = 0.5 * (near + far) if found else far
        total, gain = _at_price(worth, share, room, here, node, lines, lines.best)
        best = max(best, worth * need - total)
        if best > limit or (found and far - near <= 1e-4 * far):
            break
        if gain >= need:
            far, found = worth, True
        elif found:
            near = worth
        else:
            near, far = far, 2.0 * far
    _at_price(far, share, room, here, node, lines, lines.best)
    return best


@jit
def least_price(need, limit, room, here, node, lines):  # type: ignore[no-untyped-def]
    """Return what an action costs at least at which the line gains ``need``, inf where none does.

    By the dual of that problem: every price per gain gives a bound, also one that is not optimal.
    """
    low, high, states = node
    if _range(lines.way, 1.0, limit, room, here, low, high, states) < need:
        return np.inf
    if not room.kinked:
        return _at_share(0.0, need, limit, room, here, node, lines)
    best = 0.0
    for t in range(SHARES.size):
        best = max(best, _at_share(SHARES[t], need, limit, room, here, node, lines))
        if best > limit:
            break
    return best


@jit
def spread(node, lines, score):  # type: ignore[no-untyped-def]
    """Write how much of the looseness of the lines each column is to blame for."""
    low, high, _ = node
    score[:] = 0.0
    for n in range(lines.low.size):
        width = lines.high[n] - lines.low[n]
        if width <= NARROW:
            continue
        middle = 0.5 * (lines.low[n] + lines.high[n])
        apart = (lines.slope_up[n] - lines.slope_down[n]) * middle
        apart += lines.shift_up[n] - lines.shift_down[n]
        blame = abs(lines.part[n]) * apart / width
        if blame > 0.0:
            for j in range(low.size):
                score[j] += blame * abs(lines.centre[n, j]) * (high[j] - low[j])
