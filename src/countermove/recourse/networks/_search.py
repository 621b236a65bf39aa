"""Branch and bound of one person after the other before a network, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countermove._types import Floats, Index, Mask
from countermove.recourse.networks._bounds import (
    Here,
    Lines,
    least_price,
    line_above,
    spread,
    value_of,
)
from countermove.response.compilation import jit

NONE, OPEN = 0, 1
"""How a search ended: with nothing left to look at, or out of nodes."""
ANY, CHEAPEST = 1, 2
"""What is looked for besides a proof: any action that works, or the cheapest (0: none)."""
CLOSE = 1e-6
"""Actions cheaper by less than this share are not looked for."""
GRANTED = 1e-7
"""What an allowed action may lack or exceed in a bound or row, as `ActionSet.contains` grants."""
EARLY, HOPELESS = 150, 0.985
"""After so many nodes a search ends that has closed next to nothing of what it began with."""
FINEST = 1e-6
"""Numbers in a narrower range are not cut any more."""
EDGE = 1e-9
"""Share of a limit on cost below which a node counts as beyond it."""


@jit
def _within_money(limit, room, node):  # type: ignore[no-untyped-def]
    """Shrink the numbers of a node to what the money left pays for; return whether any is left."""
    low, high, _ = node
    spent = 0.0
    for b in range(room.numbers.size):
        j = room.numbers[b]
        d = min(max(0.0, low[j]), high[j])
        spent += room.weights[j] * d * d
    if spent > limit:
        return False
    for b in range(room.numbers.size):
        j = room.numbers[b]
        if room.weights[j] <= 0.0:
            continue
        d = min(max(0.0, low[j]), high[j])
        reach = np.sqrt((limit - spent) / room.weights[j] + d * d) + GRANTED
        low[j], high[j] = max(low[j], -reach), min(high[j], reach)
    return True


@jit
def _largest(row, room, here, node):  # type: ignore[no-untyped-def]
    """Return the largest row . action over a node."""
    low, high, states = node
    total = 0.0
    for b in range(room.numbers.size):
        j = room.numbers[b]
        total += row[j] * high[j] if row[j] > 0.0 else row[j] * low[j]
    for k in range(room.block.size - 1):
        top = -np.inf
        for s in range(room.block[k], room.block[k + 1]):
            if states[s]:
                top = max(top, np.dot(row, here.states[s]))
        total += top
    return total


@jit
def _within_rows(room, here, limit, node):  # type: ignore[no-untyped-def]
    """Shrink the numbers of a node to what the rows leave; return whether any is left."""
    low, high, _ = node
    last = room.A.shape[0] - 1
    for r in range(last + 1):
        offset = limit if room.kinked and r == last else here.b[r]
        if not offset < np.inf:
            continue
        row = room.A[r]
        slack = _largest(row, room, here, node) + offset + GRANTED * (1.0 + abs(offset))
        if slack < 0.0:
            return False
        for b in range(room.numbers.size):
            j = room.numbers[b]
            if row[j] > 0.0:
                low[j] = max(low[j], high[j] - slack / row[j] - GRANTED)
            elif row[j] < 0.0:
                high[j] = min(high[j], low[j] - slack / row[j] + GRANTED)
    return True


@jit
def _on_steps(room, node):  # type: ignore[no-untyped-def]
    """Pull the ends of whole steps in; return whether every column keeps a value."""
    low, high, states = node
    for b in range(room.numbers.size):
        j = room.numbers[b]
        if room.step[j] > 0.0:
            low[j] = np.ceil((low[j] - GRANTED) / room.step[j]) * room.step[j] - GRANTED
            high[j] = np.floor((high[j] + GRANTED) / room.step[j]) * room.step[j] + GRANTED
        if low[j] > high[j]:
            return False
    for k in range(room.block.size - 1):
        left = False
        for s in range(room.block[k], room.block[k + 1]):
            left |= states[s]
        if not left:
            return False
    return True


@jit
def _shrink(limit, room, here, node):  # type: ignore[no-untyped-def]
    """Shrink a node to what can be paid for and is allowed; return whether any is left."""
    if limit < np.inf:
        for s in range(here.squares.size):
            if here.squares[s] > limit:
                node[2][s] = False
        if not _on_steps(room, node) or not _within_money(limit, room, node):
            return False
    return _within_rows(room, here, limit, node) and _on_steps(room, node)


@jit
def _forward(net, here, action, h, z):  # type: ignore[no-untyped-def]
    """Return the score after an action."""
    for i in range(net.sizes[0]):
        total = here.base[i]
        for j in range(action.size):
            total += net.first[i, j] * action[j]
        h[i] = value_of(net.kinds[0], net.leaks[0], total)
    at, start = net.sizes[0], 0
    for layer in range(1, net.sizes.size):
        n_in, n_out = net.sizes[layer - 1], net.sizes[layer]
        W = net.weights[start : start + n_in * n_out].reshape(n_out, n_in)
        z[:n_out] = np.dot(W, h[:n_in])
        for k in range(n_out):
            h[k] = value_of(net.kinds[layer], net.leaks[layer], z[k] + net.offsets[at + k])
        at += n_out
        start += n_in * n_out
    return np.dot(net.head, h[: net.head.size]) + net.bias


@jit
def _price_there(net, room, here, node, given):  # type: ignore[no-untyped-def]
    """Return the price of the nearest allowed action, infinite unless it reaches the goal."""
    limit, goal, action, h, z = given
    low, high, _ = node
    paid, along = 0.0, 0.0
    for b in range(room.numbers.size):
        j = room.numbers[b]
        if room.step[j] > 0.0:
            action[j] = np.round(action[j] / room.step[j]) * room.step[j]
        elif high[j] - low[j] > 4.0 * GRANTED:
            action[j] = min(max(action[j], low[j] + GRANTED), high[j] - GRANTED)
        else:
            action[j] = 0.5 * (low[j] + high[j])
    for j in range(action.size):
        paid += room.weights[j] * action[j] ** 2
        along += room.kink[j] * action[j]
    paid += max(along, 0.0)
    if paid > limit:
        return np.inf
    for r in range(room.A.shape[0] - (1 if room.kinked else 0)):
        left = here.b[r]
        for j in range(action.size):
            left += room.A[r, j] * action[j]
        if left < 0.0:
            return np.inf
    return paid if _forward(net, here, action, h, z) >= goal else np.inf


@jit
def _block_gains(room, here, k, states, way):  # type: ignore[no-untyped-def]
    """Return the least and most gain of a block's states along a line, and how many are left."""
    least, most, count = np.inf, -np.inf, 0
    for s in range(room.block[k], room.block[k + 1]):
        if states[s]:
            gain = np.dot(way, here.states[s])
            least, most, count = min(least, gain), max(most, gain), count + 1
    return least, most, count


@jit
def _cut(room, here, node, way, score):  # type: ignore[no-untyped-def]
    """Return where to cut a node: a column and a value, or a block as -1 - k; nan for nowhere."""
    low, high, states = node
    best, column, value = -1.0, 0, np.nan
    for b in range(room.numbers.size):
        j = room.numbers[b]
        least = room.step[j] if room.step[j] > 0.0 else FINEST
        if high[j] - low[j] >= least and score[j] > best:
            best, column, value = score[j], j, 0.5 * (low[j] + high[j])
            if room.step[j] > 0.0:
                value = (np.floor(value / room.step[j]) + 0.5) * room.step[j]
    for k in range(room.block.size - 1):
        least, most, count = _block_gains(room, here, k, states, way)
        total = 0.0
        for j in range(score.size):
            if np.any(here.states[room.block[k] : room.block[k + 1], j] != 0.0):
                total += score[j]
        if count > 1 and total > best:
            best, column, value = total, -1 - k, 0.5 * (least + most)
    return column, value


@jit
def _child(parent, side, column, value, room, here, way, node):  # type: ignore[no-untyped-def]
    """Write one half of a node."""
    node[0][:], node[1][:], node[2][:] = parent[0], parent[1], parent[2]
    if column >= 0:
        if side == 0:
            node[1][column] = value
        else:
            node[0][column] = value
        return
    first, last = room.block[-1 - column], room.block[-column]
    count = 0
    for s in range(first, last):
        if parent[2][s]:
            gain = np.dot(way, here.states[s])
            # States that gain alike are told apart by their turn.
            upper = gain > value or (gain == value and count % 2 == 0)
            node[2][s] = upper == (side == 0)
            count += 1


@jit
def _sift(heap, keys, size):  # type: ignore[no-untyped-def]
    """Take the node of the least key off the heap; return it."""
    top = heap[0]
    last = heap[size - 1]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size - 1:
            break
        if child + 1 < size - 1 and keys[heap[child + 1]] < keys[heap[child]]:
            child += 1
        if keys[heap[child]] >= keys[last]:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = last
    return top


@jit
def _rise(heap, keys, size, slot):  # type: ignore[no-untyped-def]
    """Put a node on the heap."""
    at = size
    while at > 0:
        above = (at - 1) // 2
        if keys[heap[above]] <= keys[slot]:
            break
        heap[at] = heap[above]
        at = above
    heap[at] = slot


class Tree(NamedTuple):
    """The nodes of one person's search, and the heap of those still to be cut."""

    low: Floats
    high: Floats
    states: Mask
    way: Floats
    key: Floats  # what an action in the node costs at least
    cut: Index
    cut_at: Floats
    share: Floats  # of all that the search began with
    heap: Index


class Work(NamedTuple):
    """What every node writes over, and how far the search is."""

    lines: Lines
    M: Floats
    R: Floats
    h: Floats
    z: Floats
    score: Floats
    action: Floats
    best: Floats  # the cheapest action met
    old: tuple[Floats, Floats, Mask]
    limit: Floats  # (1,)
    left: Floats  # (1,) share that is on the heap
    counts: Index  # nodes looked at, nodes on the heap, whether an action was met


@jit
def _visit(net, room, here, asked, key, share, slot, tries, tree, work):  # type: ignore[no-untyped-def]
    """Look at a node; return whether it was kept."""
    threshold, goal = asked
    limit, lines = work.limit[0], work.lines
    node = (tree.low[slot], tree.high[slot], tree.states[slot])
    if not _shrink(limit, room, here, node):
        return False
    work.counts[0] += 1
    constant = line_above(net, limit, room, here, node, lines, work.M, work.R)
    price = max(least_price(threshold - constant, limit, room, here, node, lines), key)
    if price > limit or price == np.inf:
        return False
    if tries > 0:
        work.action[:] = lines.best
        given = (limit, goal, work.action, work.h, work.z)
        paid = _price_there(net, room, here, node, given)
        if paid < np.inf:
            work.best[:] = work.action
            work.counts[2], work.limit[0] = 1, paid * (1.0 - CLOSE)
    spread(node, lines, work.score)
    tree.cut[slot], tree.cut_at[slot] = _cut(room, here, node, lines.way, work.score)
    tree.way[slot], tree.key[slot], tree.share[slot] = lines.way, price, share
    _rise(tree.heap, tree.key, work.counts[1], slot)
    work.counts[1] += 1
    work.left[0] += share
    return True


@jit
def _prove_one(net, room, here, asked, budget, tries, tree, work):  # type: ignore[no-untyped-def]
    """Search one person's actions; return how that ended and the price nobody gets below."""
    _visit(net, room, here, asked, 0.0, 1.0, 0, tries, tree, work)
    used, counts = 1, work.counts
    while True:
        if counts[2] and tries == ANY:
            return NONE, 0.0
        top = tree.heap[0]
        if counts[1] == 0 or tree.key[top] > work.limit[0]:
            # Nodes beyond the limit were dropped: nothing is left below it.
            return NONE, work.limit[0] / (1.0 + EDGE)
        hopeless = counts[0] >= EARLY and work.left[0] > HOPELESS
        if counts[0] >= budget or hopeless or np.isnan(tree.cut_at[top]):
            return OPEN, min(tree.key[top], work.limit[0])
        slot = _sift(tree.heap, tree.key, counts[1])
        counts[1] -= 1
        work.left[0] -= tree.share[slot]
        old, key, share = work.old, tree.key[slot], 0.5 * tree.share[slot]
        old[0][:], old[1][:], old[2][:] = tree.low[slot], tree.high[slot], tree.states[slot]
        cut, at, way = tree.cut[slot], tree.cut_at[slot], tree.way[slot].copy()
        for side in range(2):
            place = slot if side == 0 else used
            node = (tree.low[place], tree.high[place], tree.states[place])
            _child(old, side, cut, at, room, here, way, node)
            kept = _visit(net, room, here, asked, key, share, place, tries, tree, work)
            used += 1 if kept and side == 1 else 0


@jit
def _rooms(net, m, n_states, budget):  # type: ignore[no-untyped-def]
    """Return the arrays of a search."""
    rows, widest, size = int(net.sizes.sum()), int(net.sizes.max()), budget + 3
    lines = Lines(
        np.empty(rows), np.empty(rows), np.empty(rows), np.empty(rows), np.empty(rows),
        np.empty(rows), np.empty(rows), np.zeros((rows, m + 2)), np.zeros((rows, m + 2)),
        np.empty(m), np.empty(m),
    )  # fmt: skip
    tree = Tree(
        np.empty((size, m)), np.empty((size, m)), np.empty((size, n_states), np.bool_),
        np.empty((size, m)), np.empty(size), np.empty(size, np.int64), np.empty(size),
        np.empty(size), np.zeros(size, np.int64),
    )  # fmt: skip
    work = Work(
        lines, np.empty((widest, m + 2)), np.empty((widest, m + 2)), np.empty(widest),
        np.empty(widest), np.empty(m), np.empty(m), np.empty(m),
        (np.empty(m), np.empty(m), np.empty(n_states, np.bool_)), np.empty(1), np.empty(1),
        np.empty(3, np.int64),
    )  # fmt: skip
    return tree, work


@jit
def prove_rows(net, room, people, asked, budget, tries, out):  # type: ignore[no-untyped-def]
    """Search every person's actions; write how it ended, the price nobody gets below, an action."""
    base, low, high, states, allowed, b = people
    thresholds, goal, limits = asked
    n, m = low.shape
    n_states = states.shape[1]
    tree, work = _rooms(net, m, n_states, budget)
    for i in range(n):
        squares, kinks = np.zeros(n_states), np.zeros(n_states)
        pushed = np.zeros((n_states, net.sizes[0]))
        for s in range(n_states):
            pushed[s] = np.dot(net.first, states[i, s])
            squares[s] = np.dot(room.weights, states[i, s] ** 2)
            kinks[s] = np.dot(room.kink, states[i, s])
        here = Here(base[i], states[i], pushed, squares, kinks, b[i])
        tree.low[0], tree.high[0] = low[i] - GRANTED, high[i] + GRANTED
        tree.states[0] = allowed[i]
        work.limit[0], work.left[0], work.counts[:] = limits[i] * (1.0 + EDGE), 0.0, 0
        ended, least = _prove_one(
            net, room, here, (thresholds[i], goal[i]), budget, tries, tree, work
        )
        out[0][i], out[1][i], out[3][i] = ended, least, work.counts[0]
        out[2][i], out[4][i] = work.best, work.counts[2] == 1
